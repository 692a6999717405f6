// What all strategies promise: one device, wrong devices, bad losses, the hash of the parameters.
#include "parallel/strategy.h"

#include <atomic>
#include <cstring>

#include <gtest/gtest.h>

#include <ATen/record_function.h>

#include "core/error.h"
#include "core/message_of.h"
#include "dist/group.h"
#include "parallel/data_parallel.h"
#include "parallel/fixture_model.h"
#include "parallel/parameter_hash.h"
#include "parallel/single_device.h"

namespace cohort::parallel {
namespace {

using test::FixtureNet;
using test::FixtureNetImpl;
using test::squared_error;

Batch fixture_batch(int step, int count = test::kBatch) {
  Batch batch;
  batch.add("x", test::fixture_input(step, 0, count));
  batch.add("y", test::fixture_target(step, 0, count));
  return batch;
}

TEST(SingleDevice, MakesThePlainStep) {
  FixtureNet net;
  FixtureNet plain;
  test::fill_parameters(*net, 0);
  test::fill_parameters(*plain, 0);
  SingleDevice strategy(net.ptr(), {});
  for (int micro = 0; micro < 2; ++micro) {
    const at::Tensor loss = strategy.forward_backward(fixture_batch(micro), squared_error,
                                                      {.weight = 0.5, .loss_scale = torch::tensor(8.0f)});
    const at::Tensor expected = squared_error(*plain, fixture_batch(micro));
    EXPECT_EQ(loss.item<float>(), expected.item<float>());
    EXPECT_FALSE(loss.requires_grad());
    (expected * 0.5 * 8.0f).backward();
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(torch::equal(net->parameters()[i].grad(), plain->parameters()[i].grad()));
  strategy.zero_grad();
  EXPECT_FALSE(net->a->weight.grad().defined());
}

std::atomic<int> tanh_calls = 0;

// tensors/processor.h says why. A race of the library's own cannot be made to order, so the test is that it has no chance.
TEST(Strategy, VectorMathIsCalledBeforeThereAreThreads) {
  FixtureNet net;
  const auto count = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
    if (std::strcmp(call.name(), "aten::tanh") == 0) ++tanh_calls;
    return nullptr;
  };
  // Of this thread only: what the replicas' threads call does not count.
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(count).scopes({at::RecordScope::FUNCTION}));
  const SingleDevice one(net.ptr(), {});
  EXPECT_EQ(tanh_calls.exchange(0), 1);
  const DataParallel several(net.ptr(), {DeviceId{}, DeviceId{}});
  EXPECT_EQ(tanh_calls.exchange(0), 1);
  at::removeCallback(handle);
}

TEST(Strategy, ModelOnAnotherDeviceIsNamed) {
  struct HalfMoved : torch::nn::Module {
    HalfMoved() {
      register_parameter("first", torch::ones({2}));
      // A second device that exists everywhere.
      register_parameter("second", torch::ones({2}, torch::TensorOptions().device(at::kMeta)));
    }
  };
  const auto net = std::make_shared<HalfMoved>();
  const std::string expected =
      "parameter 'second' of the model lies on meta, but this process trains on cpu; call model->to(cpu) first";
  EXPECT_EQ(message_of([&] { SingleDevice(net, {}); }), expected);
  EXPECT_EQ(message_of([&] { DataParallel(net, {DeviceId{}, DeviceId{}}); }), expected);
}

TEST(Strategy, BatchOnAnotherDeviceIsNamed) {
  FixtureNet net;
  SingleDevice single(net.ptr(), {});
  Batch batch = fixture_batch(0);
  batch.fields[1].second = batch.fields[1].second.to(at::kMeta);
  EXPECT_EQ(message_of([&] { single.forward_backward(batch, squared_error, {}); }),
            "field 'y' of the batch lies on meta, but it is needed on cpu; leave it on the CPU, or move it there");
  FixtureNet other;
  DataParallel dp(other.ptr(), {DeviceId{}, DeviceId{}});
  EXPECT_EQ(message_of([&] { dp.forward_backward(batch, squared_error, {}); }),
            "replica 0 (cpu): field 'y' of the batch lies on meta; DataParallel takes batches on the CPU or on cpu, "
            "its first device; "
            "also failed: replica 1");
}

TEST(Strategy, LossThatIsNoMeanIsExplained) {
  FixtureNet net;
  SingleDevice strategy(net.ptr(), {});
  const auto vector = [](torch::nn::Module& model, const Batch& batch) {
    return dynamic_cast<FixtureNetImpl&>(model).forward(batch.at("x")).sum(1);
  };
  EXPECT_EQ(message_of([&] { strategy.forward_backward(fixture_batch(0), vector, {}); }),
            "the loss function returned 16 values of type Float; it must return one floating-point number, the mean "
            "over the batch");
  const auto constant = [](torch::nn::Module&, const Batch& batch) { return batch.at("y").mean(); };
  EXPECT_NE(message_of([&] {
              strategy.forward_backward(fixture_batch(0), constant, {});
            }).find("does not depend on any trainable parameter"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { strategy.forward_backward({}, squared_error, {}); }), "the batch is empty");
}

TEST(Strategy, MistakeInTheModelComesWithoutACppStack) {
  FixtureNet net;
  SingleDevice strategy(net.ptr(), {});
  const auto wrong = [](torch::nn::Module&, const Batch& batch) {
    return torch::matmul(batch.at("x"), batch.at("y")).mean();
  };
  const std::string text = message_of([&] { strategy.forward_backward(fixture_batch(0), wrong, {}); });
  EXPECT_NE(text.find("mat1 and mat2 shapes cannot be multiplied"), std::string::npos) << text;
  EXPECT_EQ(text.find("frame #"), std::string::npos) << text;
}

TEST(ParameterHash, IsXxh64) {
  // Values of the reference implementation (xxhsum): the empty string, "a", "abc", and 101 bytes 0, 1, 2, ... with a
  // seed.
  EXPECT_EQ(xxh64("", 0), 0xEF46DB3751D8E999ULL);
  EXPECT_EQ(xxh64("a", 1), 0xD24EC4F1A98C6E5BULL);
  EXPECT_EQ(xxh64("abc", 3), 0x44BC2CF5AD770999ULL);
}

TEST(ParameterHash, ChangesWithOneBitOfOneWeight) {
  FixtureNet net;
  test::fill_parameters(*net, 0);
  const std::uint64_t before = parameter_hash(*net);
  EXPECT_EQ(parameter_hash(*net), before);
  float* weight = net->c->weight.data_ptr<float>() + 5;
  std::uint32_t bits = 0;
  std::memcpy(&bits, weight, sizeof bits);
  bits ^= 1U;
  std::memcpy(weight, &bits, sizeof bits);
  EXPECT_NE(parameter_hash(*net), before);
}

TEST(ParameterHash, OneProcessIsEqualToItself) {
  FixtureNet net;
  SingleDevice one(net.ptr(), DeviceId{});
  const HashCheck check = check_parameters_equal(one);
  EXPECT_TRUE(check.differing.empty());
  EXPECT_NE(check.text.find("equal on 1 rank"), std::string::npos) << check.text;
}

}  // namespace
}  // namespace cohort::parallel
