// What a GPU is to train's memory: the allocator's figures, moments in 8 bits, checkpoints of tensors that lie there.
#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "dist/cuda_plugin.h"
#include "support/process.h"
#include "train/checkpoint_writer.h"
#include "train/quantized_state.h"
#include "train/rank_memory.h"
#include "weights/checkpoint.h"

namespace cohort::train {
namespace {

class MemoryOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    try {
      if (dist::load_cuda_plugin().device_count(why) > 0) return;
    } catch (const Error& problem) {
      why = problem.what();
    }
    GTEST_SKIP() << why;
  }
  const at::Device device_{at::kCUDA, 0};
};

TEST_F(MemoryOnGpu, IsNoneBeforeTheFirstWorkAndThatOfTheTensorsAfterIt) {
  EXPECT_EQ(device_bytes(device_), 0);
  EXPECT_EQ(peak_device_bytes(device_), 0);
  at::Tensor tensor = at::zeros({1 << 20}, device_);
  EXPECT_GE(device_bytes(device_), 4 << 20);
  tensor.reset();
  EXPECT_LT(device_bytes(device_), 4 << 20);
  EXPECT_GE(peak_device_bytes(device_), 4 << 20);
}

TEST_F(MemoryOnGpu, StepsWithMomentsInEightBitsAreThoseOfTheProcessorAlsoWhenRecorded) {
  torch::manual_seed(1);
  const at::Tensor start = torch::randn({300, 257});
  const at::Tensor p[3] = {start.clone(), start.to(device_), start.to(device_)};
  const QuantizedState mean[3] = {zero_state(p[0]), zero_state(p[1]), zero_state(p[2])},
                       variance[3] = {zero_state(p[0]), zero_state(p[1]), zero_state(p[2])};
  const at::Tensor number = torch::zeros({}), on_device = number.to(device_), gradient = at::zeros_like(p[2]),
                   lr = at::full({}, 1e-3, device_);
  const auto graph = dist::load_cuda_plugin().make_graph(0);
  const auto recorded = [&] {
    adamw_8bit(p[2], gradient, mean[2], variance[2], {.lr_on_device = lr, .weight_decay = 1e-2, .step = on_device});
  };
  for (int step = 1; step <= 5; ++step) {
    number.fill_(step), on_device.fill_(step);
    const at::Tensor own = torch::randn({300, 257}) * 1e-3;
    gradient.copy_(own);
    adamw_8bit(p[0], own, mean[0], variance[0], {.lr = 1e-3, .weight_decay = 1e-2, .step = number});
    adamw_8bit(p[1], own.to(device_), mean[1], variance[1], {.lr = 1e-3, .weight_decay = 1e-2, .step = on_device});
    if (step == 1) {
      graph->warm_up(recorded);
      continue;
    }
    if (step == 2) graph->record(recorded);
    graph->replay();
  }
  // As the loop and the tensor operations agree on the processor: a number between two values may fall to either.
  for (int i = 1; i < 3; ++i) {
    EXPECT_TRUE(at::allclose(p[0], p[i].cpu(), 1e-5, 2e-4)) << i;
    EXPECT_GT((mean[0].codes == mean[i].codes.cpu()).to(at::kDouble).mean().item<double>(), 0.999) << i;
  }
}

TEST_F(MemoryOnGpu, ACheckpointHoldsWhatTheLastDeviceComputedThoughAnotherIsCurrent) {
  std::string why;
  const int count = dist::load_cuda_plugin().device_count(why);
  const at::Device last(at::kCUDA, static_cast<at::DeviceIndex>(count - 1));
  const testing::TemporaryFolder folder;
  const at::Tensor weight = at::zeros({4 << 20}, last);
  CheckpointWriter writer{weights::CheckpointFolder(folder.path()), 0};
  for (int step = 1; step <= 3; ++step) {
    // Long enough that the copy waits for it.
    for (int i = 0; i < 200; ++i) weight.add_(1);
    weights::CheckpointContent content;
    content.state.step = step;
    content.state.loss_sums.resize(1);
    content.model.emplace_back("weight", weight);
    content.optimizer.emplace_back("state.weight.step", at::full({}, step, last));
    content.random.emplace_back("rank_0.cpu", at::zeros({8}, at::kByte));
    writer.save(content);
    writer.finish();
    const auto read = weights::read_checkpoint(weights::CheckpointFolder(folder.path()).checkpoint(step));
    EXPECT_TRUE((read.model.front().second == 200 * step).all().item<bool>()) << step;
  }
}

}  // namespace
}  // namespace cohort::train
