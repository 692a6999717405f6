// One rank of the tests of data parallelism: parallel_worker SCENARIO FOLDER. Writes the same files as
// ddp_reference.py. Prints "error: ..." and returns 1 on an exception.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include <signal.h>

#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "dist/cuda_plugin.h"
#include "dist/group.h"
#include "models/informer/informer.h"
#include "models/random_context.h"
#include "parallel/data_parallel.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/fixture_model.h"
#include "parallel/module_layout.h"
#include "parallel/parameter_hash.h"
#include "parallel/plan.h"
#include "parallel/single_device.h"
#include "parallel/zero_data_parallel.h"
#include "tensors/convert.h"

namespace cohort::test {
namespace {

using parallel::BackwardOptions;
using parallel::Batch;
using parallel::DdpSettings;
using parallel::DistributedDataParallel;
using namespace std::chrono_literals;

template <class T>
void write_numbers(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void write_results(const std::string& folder, const std::string& scenario, int rank, const std::vector<double>& losses,
                   torch::nn::Module& model, bool buffers = true) {
  write_numbers(format("{}/{}.{}.losses", folder, scenario, rank), losses);
  std::vector<float> state;
  const auto append = [&](const at::Tensor& t) {
    const at::Tensor flat = t.detach().contiguous();
    state.insert(state.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  };
  for (const at::Tensor& p : model.parameters()) append(p);
  if (buffers)
    for (const at::Tensor& b : model.buffers())
      if (b.is_floating_point()) append(b);
  write_numbers(format("{}/{}.{}.state", folder, scenario, rank), state);
}

at::Tensor mean_squared_error(torch::nn::Module& model, const Batch& batch) {
  return torch::mse_loss(dynamic_cast<FixtureNetImpl&>(model).forward(batch.at("x")), batch.at("y"));
}

Batch fixture_batch(int step, int rank) {
  Batch batch;
  batch.add("x", fixture_input(step, rank));
  batch.add("y", fixture_target(step, rank));
  return batch;
}

dist::GroupOptions patient_options() {
  dist::GroupOptions options;
  options.store_timeout = 300s;
  options.collective_timeout = 300s;
  return options;
}

/// The scenarios of ddp_reference.py.
void train(const std::shared_ptr<dist::Group>& group, const std::string& scenario, const std::string& folder) {
  const int rank = group->rank();
  FixtureNet net(scenario == "norm", scenario == "find_unused" || scenario == "static_graph");
  fill_parameters(*net, rank);

  DdpSettings settings;
  settings.find_unused_parameters = scenario == "find_unused";
  settings.static_graph = scenario == "static_graph";
  settings.gradient_as_bucket_view = scenario == "bucket_view";
  const bool small_buckets = scenario == "small_buckets" || scenario == "buckets_by_arrival";
  if (small_buckets) settings.bucket_cap_mb = settings.first_bucket_cap_mb = 0.0005;
  if (scenario == "buckets_by_arrival") settings.bucket_order = "arrival";
  if (scenario == "fp16" || scenario == "bf16") settings.compression = scenario;
  if (scenario == "gloo") settings.cpu_reduction = "gloo";
  DistributedDataParallel ddp(net.ptr(), group, settings);
  const bool through_sockets = scenario == "gloo" || settings.compression != "none";
  COHORT_CHECK(ddp.sums_in_shared_memory() == !through_sockets, "these ranks share memory unless told otherwise");

  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (scenario == "adam") {
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(1e-2));
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  }
  std::vector<double> losses;
  const auto one_step = [&](int step) {
    net->use_extra = scenario == "find_unused" && (step + rank) % 3 != 0;
    ddp.zero_grad();
    if (scenario == "no_sync") {
      for (int micro = 0; micro < 3; ++micro) {
        BackwardOptions options;
        options.synchronise = micro == 2;
        options.weight = 1.0 / 3;
        losses.push_back(
            ddp.forward_backward(fixture_batch(3 * step + micro, rank), mean_squared_error, options).item<double>());
      }
    } else if (step % 2 == 0) {
      losses.push_back(ddp.forward_backward(fixture_batch(step, rank), mean_squared_error, {}).item<double>());
    } else {
      // The interface for library users, in turn with the training loop's.
      const at::Tensor loss =
          torch::mse_loss(ddp.forward<FixtureNetImpl>(fixture_input(step, rank)), fixture_target(step, rank));
      ddp.backward(loss);
      losses.push_back(loss.item<double>());
    }
    optimizer->step();
  };
  if (scenario == "join" || scenario == "join_remaining") {
    ddp.join(
        [&] {
          for (int step = 0; step < 6 + 3 * rank; ++step) one_step(step);
        },
        {.divide_by_initial_world_size = scenario == "join"});
  } else {
    for (int step = 0; step < 50; ++step) one_step(step);
  }
  if (small_buckets) {
    COHORT_CHECK(ddp.buckets_were_rebuilt() == (scenario == "buckets_by_arrival"),
                 "only buckets in order of arrival are laid out again after the first iteration");
    COHORT_CHECK(ddp.bucket_sizes().size() > 2, "{} buckets of half a KiB", ddp.bucket_sizes().size());
  }
  if (scenario == "bucket_view")
    COHORT_CHECK(net->a->weight.grad().is_alias_of(net->b->weight.grad()), "gradients share the bucket's memory");
  write_results(folder, scenario, rank, losses, *net);
}

/// Accumulation over two micro-batches equals one batch of both; the result of the ranks is compared by the test.
void accumulate(const std::string& folder) {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  const int rank = group->rank();
  for (const bool split : {false, true}) {
    FixtureNet net;
    fill_parameters(*net, 0);
    DistributedDataParallel ddp(net.ptr(), group, {.gradient_as_bucket_view = split});
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05));
    std::vector<double> losses;
    for (int step = 0; step < 10; ++step) {
      ddp.zero_grad();
      const Batch whole = fixture_batch(step, rank);
      if (split) {
        double sum = 0;
        for (int half = 0; half < 2; ++half) {
          const BackwardOptions options{.synchronise = half == 1, .weight = 0.5};
          sum += ddp.forward_backward(whole.slice(half * kBatch / 2, kBatch / 2), mean_squared_error, options)
                     .item<double>() /
                 2;
        }
        losses.push_back(sum);
      } else {
        losses.push_back(ddp.forward_backward(whole, mean_squared_error, {}).item<double>());
      }
      optimizer.step();
    }
    write_results(folder, split ? "accumulated" : "whole", rank, losses, *net);
  }
  group->close();
}

/// What is trained in the three ways: a model, and the half of a step's samples that one rank or replica gets.
struct Trained {
  std::shared_ptr<torch::nn::Module> model;
  parallel::ModuleFactory factory;
  std::function<Batch(int step, int half)> half;
  parallel::LossFunction loss;
  double lr = 0;
};

Trained small_net() {
  FixtureNet net;
  fill_parameters(*net, 0);
  return {net.ptr(), {}, [](int step, int half) { return fixture_batch(step, half); }, mean_squared_error, 1e-2};
}

/// ProbSparse attention draws its keys by sample id, so that every way meets the same draws.
Trained small_informer() {
  models::InformerSettings settings;
  settings.enc_in = settings.dec_in = settings.c_out = 3;
  settings.seq_len = 24;
  settings.label_len = settings.pred_len = 8;
  settings.factor = 2;
  settings.d_model = 32;
  settings.n_heads = 4;
  settings.d_ff = 64;
  settings.dropout = 0;
  constexpr std::int64_t kHalf = 8;
  Trained result;
  result.factory = [settings] { return models::make_informer(settings, 3); };
  result.model = result.factory();
  result.half = [settings](int step, int half) {
    const auto seed = static_cast<std::uint64_t>(500 + 2 * step + half);
    const std::int64_t rows = settings.label_len + settings.pred_len, marks = models::time_columns(settings);
    Batch batch;
    batch.add("x", numbers(seed, {kHalf, settings.seq_len, 3}));
    batch.add("y", numbers(seed + 200, {kHalf, rows, 3}));
    batch.add("x_mark", numbers(seed + 400, {kHalf, settings.seq_len, marks}));
    batch.add("y_mark", numbers(seed + 600, {kHalf, rows, marks}));
    batch.sample_ids = torch::arange(kHalf, at::kLong) + kHalf * half;
    return batch;
  };
  result.loss = [settings](torch::nn::Module& model, const Batch& batch) {
    const models::RandomContextGuard random({.seed = 1, .step = 0, .sample_ids = batch.sample_ids});
    const at::Tensor& y = batch.at("y");
    const at::Tensor forecast = models::informer_forward(
        model, {batch.at("x"), batch.at("x_mark"), models::informer_decoder_input(y, settings), batch.at("y_mark")});
    return torch::mse_loss(forecast, y.narrow(1, settings.label_len, settings.pred_len));
  };
  result.lr = 1e-4;
  return result;
}

/// Fifty steps in one of three ways on the same two halves of samples per step: "modes_ddp" (two ranks), "modes_dp"
/// (two replicas of one process), "modes_accumulated" (one process, the halves one after the other), each with its
/// state in FOLDER. `what` is sgd or adam (of a small net) or informer.
void modes(const std::string& scenario, const std::string& folder, const std::string& what) {
  const auto env = rank::read_environment();
  const Trained job = what == "informer" ? small_informer() : small_net();
  std::shared_ptr<dist::Group> group;
  std::unique_ptr<parallel::Strategy> strategy;
  if (scenario == "modes_ddp") {
    group = dist::Group::create(env, patient_options());
    strategy = std::make_unique<DistributedDataParallel>(job.model, group);
  } else if (scenario == "modes_dp") {
    strategy = std::make_unique<parallel::DataParallel>(job.model, std::vector<DeviceId>(2),
                                                        parallel::DataParallelSettings{}, job.factory);
  } else {
    strategy = std::make_unique<parallel::SingleDevice>(job.model, DeviceId{});
  }
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (what == "sgd") {
    optimizer =
        std::make_unique<torch::optim::SGD>(job.model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  } else {
    optimizer = std::make_unique<torch::optim::Adam>(job.model->parameters(), torch::optim::AdamOptions(job.lr));
  }
  std::vector<double> losses;
  for (int step = 0; step < 50; ++step) {
    strategy->zero_grad();
    double loss = 0;
    if (scenario == "modes_ddp") {
      loss = strategy->forward_backward(job.half(step, env.rank), job.loss, {}).item<double>();
      at::Tensor mean = torch::tensor({loss}, at::kDouble);
      strategy->mean_over_ranks(mean);
      loss = mean.item<double>();
    } else if (scenario == "modes_dp") {
      const Batch halves[] = {job.half(step, 0), job.half(step, 1)};
      Batch both;
      for (std::size_t i = 0; i < halves[0].fields.size(); ++i)
        both.add(halves[0].fields[i].first, torch::cat({halves[0].fields[i].second, halves[1].fields[i].second}));
      if (halves[0].sample_ids.defined()) both.sample_ids = torch::cat({halves[0].sample_ids, halves[1].sample_ids});
      loss = strategy->forward_backward(both, job.loss, {}).item<double>();
    } else {
      for (int half = 0; half < 2; ++half)
        loss += strategy->forward_backward(job.half(step, half), job.loss, {.synchronise = half == 1, .weight = 0.5})
                    .item<double>() /
                2;
    }
    optimizer->step();
    strategy->parameters_changed();
    losses.push_back(loss);
  }
  if (group) {
    const auto check = parallel::check_parameters_equal(*strategy);
    COHORT_CHECK(check.differing.empty(), "{}", check.text);
  }
  // Batch norm's running statistics are replica 0's, rank 0's, or of both halves: no part of the comparison.
  write_results(folder, scenario, env.rank, losses, *job.model, /*buffers=*/false);
  if (group) group->close();
}

/// The hash that the log shows names the rank that went astray.
void differing_rank() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  const auto equal = parallel::check_parameters_equal(ddp);
  COHORT_CHECK(equal.differing.empty(), "{}", equal.text);
  if (group->rank() == 1) {
    const torch::NoGradGuard no_grad;
    net->c->bias[0] += 1e-3;
  }
  std::puts(parallel::check_parameters_equal(ddp).text.c_str());
  group->close();
}

/// The banner's list of processes.
void world() {
  const auto env = rank::read_environment();
  const auto plan = parallel::make_plan({env, {DeviceId{}}, 2}, {});
  const auto group = dist::Group::create(env, patient_options());
  for (const std::string& line : parallel::world_lines(plan, *group)) std::puts(line.c_str());
  group->close();
}

/// The scenario "sgd" with every rank's model on its GPU.
void gpu_sgd(const std::string& folder) {
  const auto env = rank::read_environment();
  std::string why;
  const int count = dist::load_cuda_plugin().device_count(why);
  dist::GroupOptions options = patient_options();
  options.device = {DeviceKind::kCuda, env.local_rank % std::max(1, count)};
  const auto group = dist::Group::create(env, options);
  FixtureNet net;
  fill_parameters(*net, env.rank);
  net->to(tensors::to_torch_device(options.device));
  DistributedDataParallel ddp(net.ptr(), group, {.gradient_as_bucket_view = true});
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  std::vector<double> losses;
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < 50; ++step) {
    ddp.zero_grad();
    losses.push_back(ddp.forward_backward(fixture_batch(step, env.rank), mean_squared_error, {}).item<double>());
    optimizer.step();
  }
  // Told by events of the stream.
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  COHORT_CHECK(ddp.exchange_seconds() > 0 && ddp.exchange_seconds() < whole.count(), "{} s of {} s were an exchange",
               ddp.exchange_seconds(), whole.count());
  net->to(at::kCPU);
  write_results(folder, "gpu_sgd", env.rank, losses, *net);
  group->close();
}

/// DataParallel over all GPUs (at least one), in the three-replica form on the CPU where the numbers come from.
void gpu_data_parallel(const std::string& folder) {
  std::string why;
  const int count = dist::load_cuda_plugin().device_count(why);
  for (const bool on_gpu : {true, false}) {
    FixtureNet net(true);
    fill_parameters(*net, 0);
    std::vector<DeviceId> devices;
    for (int i = 0; i < count; ++i) devices.push_back(on_gpu ? DeviceId{DeviceKind::kCuda, i} : DeviceId{});
    net->to(tensors::to_torch_device(devices[0]));
    parallel::DataParallelSettings settings;
    settings.reduction = "buckets";
    settings.bucket_cap_mb = settings.first_bucket_cap_mb = 0.0005;
    parallel::DataParallel dp(net.ptr(), devices, settings);
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    std::vector<double> losses;
    for (int step = 0; step < 50; ++step) {
      dp.zero_grad();
      losses.push_back(dp.forward_backward(fixture_batch(step, 0), mean_squared_error, {}).item<double>());
      optimizer.step();
      dp.parameters_changed();
    }
    net->to(at::kCPU);
    write_results(folder, on_gpu ? "dp_gpu" : "dp_cpu", 0, losses, *net);
  }
}

void different_shape() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net(false, false, group->rank() == 1 ? kHidden / 2 : kHidden);
  DistributedDataParallel ddp(net.ptr(), group);
}

void missing_layer() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net(false, group->rank() == 0);
  DistributedDataParallel ddp(net.ptr(), group);
}

void unused_parameter() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net(false, true);
  net->use_extra = false;
  DistributedDataParallel ddp(net.ptr(), group);
  for (int step = 0; step < 2; ++step) ddp.forward_backward(fixture_batch(step, group->rank()), mean_squared_error, {});
}

void died_peer() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  for (int step = 0; step < 5; ++step) {
    if (step == 3 && group->rank() == 1) raise(SIGKILL);
    ddp.forward_backward(fixture_batch(step, group->rank()), mean_squared_error, {});
  }
}

void early_termination() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  ddp.join(
      [&] {
        for (int step = 0; step < 2 + group->rank(); ++step) {
          ddp.forward_backward(fixture_batch(step, group->rank()), mean_squared_error, {});
          std::printf("step %d\n", step);
        }
      },
      {.throw_on_early_termination = true});
}

/// Reductions of the Strategy interface, which the training loop's log uses.
void strategy_numbers() {
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  const double r = group->rank();
  at::Tensor mean = torch::tensor({r, 10.0 * r}, at::kDouble);
  ddp.mean_over_ranks(mean);
  COHORT_CHECK(torch::equal(mean, torch::tensor({0.5, 5.0}, at::kDouble)), "mean over two ranks");
  at::Tensor maximum = torch::tensor({r, -r}, at::kDouble);
  ddp.max_over_ranks(maximum);
  COHORT_CHECK(torch::equal(maximum, torch::tensor({1.0, 0.0}, at::kDouble)), "maximum over two ranks");
  ddp.barrier();
  group->close();
}

/// Rank 1 takes its time before every loss: rank 0 waits for it in the sum of gradients, however that travels, and the
/// strategy says how long. On a busy machine rank 0 may be the later one for once; not in every one of many steps.
void slow_rank() {
  constexpr auto kLag = 60ms;
  constexpr int kMostSteps = 200;
  const auto group = dist::Group::create(rank::read_environment(), patient_options());
  const int rank = group->rank();
  for (const std::string way : {"shared_memory", "gloo", "fp16", "static_graph", "norm", "zero_1", "zero_2"}) {
    FixtureNet net(way == "norm", way == "static_graph");
    DdpSettings settings;
    settings.cpu_reduction = way == "shared_memory" ? way : way == "fp16" ? "auto" : "gloo";
    settings.compression = way == "fp16" ? "fp16" : "none";
    settings.static_graph = way == "static_graph";
    std::unique_ptr<parallel::Strategy> strategy;
    if (way.starts_with("zero"))
      strategy = std::make_unique<parallel::ZeroDataParallel>(net.ptr(), group, way == "zero_1" ? 1 : 2, settings);
    else
      strategy = std::make_unique<DistributedDataParallel>(net.ptr(), group, settings);
    const auto loss = [&](torch::nn::Module& model, const Batch& batch) {
      if (rank == 1) std::this_thread::sleep_for(kLag);
      return mean_squared_error(model, batch);
    };
    const double lag = std::chrono::duration<double>(kLag).count();
    int told = 0;
    for (int step = 0; told < 3; ++step) {
      const double before = strategy->exchange_seconds();
      strategy->zero_grad();
      strategy->forward_backward(fixture_batch(step, rank), loss, {});
      strategy->parameters_changed();
      std::vector<double> of_rank;
      for (const at::Tensor& t : group->all_gather(torch::tensor({strategy->exchange_seconds() - before}, at::kDouble)))
        of_rank.push_back(t.item<double>());
      // At least half of the lag: rank 0 needs some time for its own step, too.
      if (of_rank[0] > lag / 2 && of_rank[0] > of_rank[1]) ++told;
      COHORT_CHECK(step < kMostSteps, "{}: rank 0 waited {} s, rank 1 {} s; the lag was {}", way, of_rank[0],
                   of_rank[1], lag);
    }
    if (way != "gloo") continue;
    // Gradients that stay here wait for nobody.
    const double so_far = strategy->exchange_seconds();
    strategy->forward_backward(fixture_batch(0, rank), loss, {.synchronise = false});
    COHORT_CHECK(strategy->exchange_seconds() == so_far, "a step without an exchange waited {} s",
                 strategy->exchange_seconds() - so_far);
    strategy->forward_backward(fixture_batch(0, rank), loss, {});
    COHORT_CHECK(strategy->exchange_seconds() > so_far, "the next exchange took no time");
  }
  group->close();
}

int run(const std::string& scenario, const std::string& folder) {
  torch::set_num_threads(1);
  if (scenario == "accumulate") {
    accumulate(folder);
  } else if (scenario.starts_with("modes_")) {
    const std::size_t colon = scenario.find(':');
    modes(scenario.substr(0, colon), folder, scenario.substr(colon + 1));
  } else if (scenario == "differing_rank") {
    differing_rank();
  } else if (scenario == "world") {
    world();
  } else if (scenario == "gpu_sgd") {
    gpu_sgd(folder);
  } else if (scenario == "gpu_data_parallel") {
    gpu_data_parallel(folder);
  } else if (scenario == "different_shape") {
    different_shape();
  } else if (scenario == "missing_layer") {
    missing_layer();
  } else if (scenario == "unused_parameter") {
    unused_parameter();
  } else if (scenario == "died_peer") {
    died_peer();
  } else if (scenario == "early_termination") {
    early_termination();
  } else if (scenario == "strategy_numbers") {
    strategy_numbers();
  } else if (scenario == "slow_rank") {
    slow_rank();
  } else {
    const auto group = dist::Group::create(rank::read_environment(), patient_options());
    std::istringstream names(scenario);
    for (std::string name; std::getline(names, name, ',');) train(group, name, folder);
    group->close();
  }
  std::puts("done");
  return 0;
}

}  // namespace
}  // namespace cohort::test

int main(int argc, char** argv) {
  try {
    return cohort::test::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ".");
  } catch (const std::exception& problem) {
    std::printf("error: %s\n", problem.what());
    return 1;
  }
}
