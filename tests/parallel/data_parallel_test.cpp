#include "parallel/data_parallel.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim.h>

#include "core/error.h"
#include "core/message_of.h"
#include "parallel/fixture_model.h"
#include "parallel/parameter_hash.h"
#include "parallel/replica_step.h"

namespace cohort::parallel {
namespace {

using test::FixtureNet;
using test::FixtureNetImpl;
using test::kInputs;
using test::kOutputs;
using test::squared_error;

// Relative. Shares and the whole batch are the same sums in another order, in float32.
constexpr double kTolerance = 1e-5;

const DeviceId kCpu{};

// The models are tiny: a second thread inside their operations only waits. And the plain model must add up in the same
// order as a replica, which has one thread.
class OneThread : public ::testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
[[maybe_unused]] const auto* const one_thread = ::testing::AddGlobalTestEnvironment(new OneThread);

Batch make_batch(int step, int count) {
  Batch batch;
  batch.add("x", test::fixture_input(step, 0, count));
  batch.add("y", test::fixture_target(step, 0, count));
  batch.sample_ids = torch::arange(count) + 1000 * step;
  return batch;
}

FixtureNet make_net(bool norm = false, bool extra = false) {
  FixtureNet net(norm, extra);
  test::fill_parameters(*net, 0);
  return net;
}

void expect_close(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LE((a - b).abs().max().item<double>(), kTolerance * b.abs().max().item<double>() + 1e-12);
}

void expect_same_gradients(torch::nn::Module& a, torch::nn::Module& b) {
  const auto p = a.parameters();
  const auto q = b.parameters();
  ASSERT_EQ(p.size(), q.size());
  for (std::size_t i = 0; i < p.size(); ++i) expect_close(p[i].grad(), q[i].grad());
}

class DataParallelBothWays : public ::testing::TestWithParam<const char*> {
 protected:
  DataParallelSettings settings() const {
    DataParallelSettings s;
    s.reduction = GetParam();
    s.bucket_cap_mb = s.first_bucket_cap_mb = 0.0005;  // several buckets in a small model
    return s;
  }
};
INSTANTIATE_TEST_SUITE_P(Reductions, DataParallelBothWays, ::testing::Values("shared", "buckets"));

TEST_P(DataParallelBothWays, TwoReplicasMatchOneProcessThatAccumulatesTheTwoHalves) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-2));
  torch::optim::Adam plain_optimizer(plain->parameters(), torch::optim::AdamOptions(1e-2));
  for (int step = 0; step < 50; ++step) {
    const Batch batch = make_batch(step, 16);
    dp.zero_grad();
    const double loss = dp.forward_backward(batch, squared_error, {}).item<double>();
    optimizer.step();
    dp.parameters_changed();

    plain_optimizer.zero_grad();
    double expected = 0;
    for (int half = 0; half < 2; ++half) {
      const at::Tensor part = squared_error(*plain, batch.slice(8 * half, 8));
      (part / 2).backward();
      expected += part.item<double>() / 2;
    }
    plain_optimizer.step();
    ASSERT_NEAR(loss, expected, kTolerance * expected) << "step " << step;
  }
}

TEST_P(DataParallelBothWays, UnevenSharesCountBySamples) {
  for (const std::size_t replicas : {2U, 3U, 4U}) {
    auto net = make_net();
    auto plain = make_net();
    DataParallel dp(net.ptr(), std::vector<DeviceId>(replicas, kCpu), settings());
    const Batch batch = make_batch(1, 13);
    const at::Tensor loss = dp.forward_backward(batch, squared_error, {});
    const at::Tensor whole = squared_error(*plain, batch);
    whole.backward();
    expect_close(loss, whole.detach());
    expect_same_gradients(*net, *plain);
  }
}

TEST_P(DataParallelBothWays, AccumulatesWithoutSynchronisation) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  for (int micro = 0; micro < 3; ++micro) {
    const BackwardOptions options{.synchronise = micro == 2, .weight = 1.0 / 3};
    dp.forward_backward(make_batch(micro, 10), squared_error, options);
    (squared_error(*plain, make_batch(micro, 10)) / 3).backward();
    if (micro < 2) {
      EXPECT_TRUE(dp.replica(1).parameters()[0].grad().defined()) << "gradients stay with the replica until the last";
    }
  }
  expect_same_gradients(*net, *plain);
  EXPECT_FALSE(dp.replica(1).parameters()[0].grad().defined());
}

TEST_P(DataParallelBothWays, AccumulationEndsWithASmallerBatchThanDevices) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu, kCpu}, settings());
  dp.forward_backward(make_batch(0, 9), squared_error, {.synchronise = false});
  dp.forward_backward(make_batch(1, 2), squared_error, {.synchronise = true});
  squared_error(*plain, make_batch(0, 9)).backward();
  squared_error(*plain, make_batch(1, 2)).backward();
  expect_same_gradients(*net, *plain);
}

TEST_P(DataParallelBothWays, LossScaleMultipliesGradientsButNotTheReportedLoss) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  const at::Tensor loss = dp.forward_backward(make_batch(0, 8), squared_error, {.loss_scale = torch::tensor(64.0f)});
  const at::Tensor whole = squared_error(*plain, make_batch(0, 8));
  (whole * 64).backward();
  expect_close(loss, whole.detach());
  expect_same_gradients(*net, *plain);
}

TEST_P(DataParallelBothWays, RepeatedRunsHaveTheSameBits) {
  const auto run = [&] {
    auto net = make_net(true);
    DataParallel dp(net.ptr(), {kCpu, kCpu, kCpu}, settings());
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 20; ++step) {
      dp.zero_grad();
      dp.forward_backward(make_batch(step, 17), squared_error, {});
      optimizer.step();
      dp.parameters_changed();
    }
    return parameter_hash(*net);
  };
  const std::uint64_t first = run();
  for (int repetition = 0; repetition < 3; ++repetition) EXPECT_EQ(run(), first);
}

TEST_P(DataParallelBothWays, ParametersUsedByOneReplicaOnlyAndByNone) {
  auto net = make_net(false, true);
  auto plain = make_net(false, true);
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  // The extra layer serves the second half of the batch only, then nobody.
  const auto partly = [&](torch::nn::Module& model, const Batch& batch) {
    dynamic_cast<FixtureNetImpl&>(model).use_extra = batch.sample_ids[0].item<std::int64_t>() == 4;
    return squared_error(model, batch);
  };
  dp.forward_backward(make_batch(0, 8), partly, {});
  for (int half = 0; half < 2; ++half) (partly(*plain, make_batch(0, 8).slice(4 * half, 4)) / 2).backward();
  expect_same_gradients(*net, *plain);

  dp.zero_grad();
  const auto never = [](torch::nn::Module& model, const Batch& batch) {
    dynamic_cast<FixtureNetImpl&>(model).use_extra = false;
    return squared_error(model, batch);
  };
  dp.forward_backward(make_batch(0, 8), never, {});
  EXPECT_TRUE(net->a->weight.grad().defined());
  EXPECT_FALSE(net->extra->weight.grad().defined()) << "an optimizer skips parameters without a gradient";
}

TEST_P(DataParallelBothWays, FrozenParametersStayFrozenInReplicas) {
  auto net = make_net();
  net->b->weight.set_requires_grad(false);
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  EXPECT_FALSE(dp.replica(1).named_parameters()["b.weight"].requires_grad());
  dp.forward_backward(make_batch(0, 8), squared_error, {});
  EXPECT_FALSE(net->b->weight.grad().defined());
  EXPECT_TRUE(net->b->bias.grad().defined());
}

TEST_P(DataParallelBothWays, LoadedWeightsReachTheReplicas) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  {
    const torch::NoGradGuard no_grad;
    net->a->weight.copy_(test::numbers(77, net->a->weight.sizes()));     // in place, as an optimizer does
    net->c->weight.set_data(test::numbers(78, net->c->weight.sizes()));  // with other memory
  }
  dp.parameters_changed();
  EXPECT_TRUE(torch::equal(dp.replica(1).named_parameters()["a.weight"], net->a->weight));
  EXPECT_TRUE(torch::equal(dp.replica(1).named_parameters()["c.weight"], net->c->weight));
  auto plain = make_net();
  {
    const torch::NoGradGuard no_grad;
    plain->a->weight.copy_(net->a->weight);
    plain->c->weight.copy_(net->c->weight);
  }
  dp.forward_backward(make_batch(0, 8), squared_error, {});
  squared_error(*plain, make_batch(0, 8)).backward();
  expect_same_gradients(*net, *plain);
}

TEST_P(DataParallelBothWays, ExceptionNamesTheReplicaAndLeavesItUsable) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  const auto fails_in_second = [](torch::nn::Module& model, const Batch& batch) {
    if (batch.sample_ids[0].item<std::int64_t>() == 4) throw std::runtime_error("no such token");
    return squared_error(model, batch);
  };
  EXPECT_EQ(message_of([&] { dp.forward_backward(make_batch(0, 8), fails_in_second, {}); }),
            "replica 1 (cpu): no such token");
  for (const at::Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined()) << "half a gradient is dropped";

  // A mistake in the model comes as LibTorch's message, without its C++ stack.
  const auto wrong_shape = [](torch::nn::Module&, const Batch& batch) {
    return torch::matmul(batch.at("x"), batch.at("y")).mean();
  };
  const std::string text = message_of([&] { dp.forward_backward(make_batch(0, 8), wrong_shape, {}); });
  EXPECT_NE(text.find("replica 0 (cpu): "), std::string::npos) << text;
  EXPECT_NE(text.find("; also failed: replica 1"), std::string::npos) << text;
  EXPECT_EQ(text.find("frame #"), std::string::npos) << text;

  auto plain = make_net();
  dp.forward_backward(make_batch(0, 8), squared_error, {});
  squared_error(*plain, make_batch(0, 8)).backward();
  expect_same_gradients(*net, *plain);
}

TEST_P(DataParallelBothWays, BuffersFollowTheFirstReplica) {
  auto net = make_net(true);
  auto plain = make_net(true);
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings());
  std::mutex mutex;
  at::Tensor seen_by_second;
  const auto watch = [&](torch::nn::Module& model, const Batch& batch) {
    if (&model == &dp.replica(1)) {
      const std::lock_guard lock(mutex);
      seen_by_second = dynamic_cast<FixtureNetImpl&>(model).norm->running_mean.clone();
    }
    return squared_error(model, batch);
  };
  for (int step = 0; step < 3; ++step) {
    const at::Tensor before = net->norm->running_mean.clone();
    dp.forward_backward(make_batch(step, 16), watch, {});
    EXPECT_TRUE(torch::equal(seen_by_second, before)) << "the second replica starts from the first one's statistics";
    squared_error(*plain, make_batch(step, 16).slice(0, 8));  // what replica 0 saw
    EXPECT_TRUE(torch::equal(net->norm->running_mean, plain->norm->running_mean));
    EXPECT_TRUE(torch::equal(net->norm->running_var, plain->norm->running_var));
    EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), step + 1);
  }
}

TEST(DataParallel, ReplicasOnTheCpuShareParameterMemory) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  const auto first = net->parameters();
  const auto second = dp.replica(1).parameters();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].data_ptr(), second[i].data_ptr());
}

TEST(DataParallel, ConstantBuffersAreNotCopied) {
  auto net = make_net(true);
  DataParallelSettings settings;
  settings.constant_buffers = {"running_mean"};
  DataParallel dp(net.ptr(), {kCpu, kCpu}, settings);
  dynamic_cast<FixtureNetImpl&>(dp.replica(1)).norm->running_mean.fill_(7);
  dynamic_cast<FixtureNetImpl&>(dp.replica(1)).norm->running_var.fill_(7);
  net->eval();
  dp.forward<FixtureNetImpl>(test::fixture_input(0, 0));
  EXPECT_EQ(dynamic_cast<FixtureNetImpl&>(dp.replica(1)).norm->running_mean[0].item<float>(), 7);
  EXPECT_EQ(dynamic_cast<FixtureNetImpl&>(dp.replica(1)).norm->running_var[0].item<float>(), 1);
}

TEST(DataParallel, BatchSmallerThanTheDevicesIsAnErrorExceptAtTheEndOfAnEpoch) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu, kCpu});
  EXPECT_EQ(message_of([&] { dp.forward_backward(make_batch(0, 2), squared_error, {}); }),
            "a batch of 2 samples cannot be divided among 3 devices (cpu, cpu, cpu); raise train.batch_size to at "
            "least 3, or name fewer devices");
  dp.forward_backward(make_batch(0, 3), squared_error, {});
  dp.zero_grad();
  dp.forward_backward(make_batch(0, 1), squared_error, {});
  squared_error(*plain, make_batch(0, 1)).backward();
  expect_same_gradients(*net, *plain);
}

TEST(DataParallel, ReplicasDivideTheThreadsAndLeaveTheCallersAlone) {
  const int former = at::get_num_threads();
  at::set_num_threads(6);
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  std::atomic<int> wrong{0};
  std::atomic<int> calls{0};
  const auto watch = [&](torch::nn::Module& model, const Batch& batch) {
    ++calls;
    if (at::get_num_threads() != 3) ++wrong;
    return squared_error(model, batch);
  };
  for (int step = 0; step < 2; ++step) dp.forward_backward(make_batch(step, 8), watch, {});
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(at::get_num_threads(), 6);
  at::set_num_threads(former);
}

TEST(DataParallel, EachReplicaHasAThreadOfItsOwnThatPersists) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  std::mutex mutex;
  std::map<const torch::nn::Module*, std::set<std::thread::id>> threads;
  const auto watch = [&](torch::nn::Module& model, const Batch& batch) {
    const std::lock_guard lock(mutex);
    threads[&model].insert(std::this_thread::get_id());
    return squared_error(model, batch);
  };
  for (int step = 0; step < 5; ++step) dp.forward_backward(make_batch(step, 8), watch, {});
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[net.get()].size(), 1U);
  EXPECT_EQ(threads[&dp.replica(1)].size(), 1U);
  EXPECT_NE(*threads[net.get()].begin(), *threads[&dp.replica(1)].begin());
}

TEST(DataParallel, AutocastAndGradientModeReachTheReplicas) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  std::atomic<int> with_bfloat16{0};
  const auto watch = [&](torch::nn::Module& model, const Batch& batch) {
    if (dynamic_cast<FixtureNetImpl&>(model).a(batch.at("x")).scalar_type() == at::kBFloat16) ++with_bfloat16;
    return squared_error(model, batch).to(at::kFloat);
  };
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  dp.forward_backward(make_batch(0, 8), watch, {});
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(with_bfloat16, 2);
  with_bfloat16 = 0;
  dp.forward_backward(make_batch(0, 8), watch, {});
  EXPECT_EQ(with_bfloat16, 0);

  const torch::NoGradGuard no_grad;
  EXPECT_THROW(dp.forward_backward(make_batch(0, 8), squared_error, {}), Error) << "there is nothing to differentiate";
}

TEST(DataParallel, ModeOfEveryLayerFollowsTheWrappedModel) {
  auto net = make_net(true);
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  auto& second = dynamic_cast<FixtureNetImpl&>(dp.replica(1));
  net->norm->eval();  // a frozen BatchNorm in a model that trains
  dp.forward_backward(make_batch(0, 8), squared_error, {});
  EXPECT_TRUE(second.is_training());
  EXPECT_FALSE(second.norm->is_training());
  net->eval();
  dp.forward<FixtureNetImpl>(test::fixture_input(0, 0));
  EXPECT_FALSE(second.is_training());
  net->train();
  dp.forward_backward(make_batch(0, 8), squared_error, {});
  EXPECT_TRUE(second.norm->is_training());
}

TEST(DataParallel, ForwardJoinsTheSharesInOrder) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu, kCpu});
  for (const int count : {1, 2, 7, 16}) {
    const at::Tensor x = test::fixture_input(3, 0, count);
    const torch::NoGradGuard no_grad;
    expect_close(dp.forward<FixtureNetImpl>(x), net->forward(x));
  }
}

TEST(DataParallel, SampleIdsTravelWithTheSamples) {
  auto net = make_net();
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  std::mutex mutex;
  std::set<std::int64_t> seen;
  const auto watch = [&](torch::nn::Module& model, const Batch& batch) {
    const std::lock_guard lock(mutex);
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const auto id = batch.sample_ids[i].item<std::int64_t>();
      EXPECT_TRUE(torch::equal(batch.at("x")[i], test::fixture_input(2, 0, 9)[id - 2000]));
      seen.insert(id);
    }
    return squared_error(model, batch);
  };
  dp.forward_backward(make_batch(2, 9), watch, {});
  EXPECT_EQ(seen.size(), 9U);
}

TEST(DataParallel, MakingReplicasLeavesTheRandomGeneratorAlone) {
  auto net = make_net();
  torch::manual_seed(5);
  const at::Tensor expected = torch::rand({4});
  torch::manual_seed(5);
  DataParallel dp(net.ptr(), {kCpu, kCpu});
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
}

struct PlainModel : torch::nn::Module {
  torch::nn::Linear layer{nullptr};
  PlainModel() : layer(register_module("layer", torch::nn::Linear(kInputs, kOutputs))) {}
};

TEST(DataParallel, ModelThatCannotCloneItselfNeedsAFactory) {
  auto model = std::make_shared<PlainModel>();
  EXPECT_NE(message_of([&] { DataParallel(model, {kCpu, kCpu}); }).find("give a factory"), std::string::npos);
  DataParallel dp(model, {kCpu, kCpu}, {}, [] { return std::make_shared<PlainModel>(); });
  const auto loss = [](torch::nn::Module& m, const Batch& batch) {
    return torch::mse_loss(dynamic_cast<PlainModel&>(m).layer(batch.at("x")), batch.at("y"));
  };
  const at::Tensor value = dp.forward_backward(make_batch(0, 8), loss, {});
  expect_close(value, torch::mse_loss(model->layer(make_batch(0, 8).at("x")), make_batch(0, 8).at("y")).detach());

  const auto another = [] { return std::make_shared<FixtureNetImpl>(); };
  const std::string text = message_of([&] { DataParallel(model, {kCpu, kCpu}, {}, another); });
  EXPECT_NE(text.find("the factory's model has 6 parameters, the wrapped one 2"), std::string::npos) << text;
}

struct SparseModelImpl : torch::nn::Cloneable<SparseModelImpl> {
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear layer{nullptr};
  SparseModelImpl() { SparseModelImpl::reset(); }
  void reset() override {
    table = register_module("table", torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 4).sparse(true)));
    layer = register_module("layer", torch::nn::Linear(4, 1));
  }
};
TORCH_MODULE(SparseModel);

TEST(DataParallel, SparseGradientsAreAddedUpOnTheCpuAndRefusedInBuckets) {
  torch::manual_seed(1);
  SparseModel model;
  const auto loss = [](torch::nn::Module& m, const Batch& batch) {
    auto& net = dynamic_cast<SparseModelImpl&>(m);
    return net.layer(net.table(batch.at("token"))).pow(2).mean();
  };
  Batch batch;
  batch.add("token", torch::tensor({1, 2, 3, 3, 3, 4, 5, 1}, at::kLong));
  loss(*model, batch).backward();
  const at::Tensor expected = model->table->weight.grad().to_dense();
  DataParallel dp(model.ptr(), {kCpu, kCpu});
  dp.zero_grad();
  dp.forward_backward(batch, loss, {});
  ASSERT_TRUE(model->table->weight.grad().is_sparse());
  expect_close(model->table->weight.grad().to_dense(), expected);
  DataParallelSettings settings;
  settings.reduction = "buckets";
  EXPECT_THROW(DataParallel(model.ptr(), {kCpu, kCpu}, settings), Error);
}

TEST(DataParallel, DevicesOfTwoKindsOrTwiceTheSameGpuAreRefused) {
  auto net = make_net();
  const DeviceId gpu{DeviceKind::kCuda, 0};
  EXPECT_THROW(DataParallel(net.ptr(), {kCpu, gpu}), Error);
  EXPECT_THROW(DataParallel(net.ptr(), {gpu, gpu}), Error);
  EXPECT_THROW(DataParallel(net.ptr(), {}), Error);
}

TEST(DataParallel, SharesAreContiguousAndDifferByAtMostOne) {
  for (std::int64_t samples = 1; samples < 20; ++samples)
    for (std::size_t parts = 1; parts <= 5; ++parts) {
      std::int64_t next = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const auto [begin, count] = share_of(samples, i, parts);
        EXPECT_EQ(begin, next);
        EXPECT_GE(count, samples / static_cast<std::int64_t>(parts));
        EXPECT_LE(count, samples / static_cast<std::int64_t>(parts) + 1);
        next += count;
      }
      EXPECT_EQ(next, samples);
    }
}

}  // namespace
}  // namespace cohort::parallel
