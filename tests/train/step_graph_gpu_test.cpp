// Whole steps as CUDA graphs against the same steps kernel by kernel, on a GPU.
#include <cmath>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "dist/cuda_plugin.h"
#include "parallel/single_device.h"
#include "train/loop.h"
#include "train/ready_policy.h"

namespace cohort::train {
namespace {

constexpr std::int64_t kSteps = 20;
// The learning rate is a float32 on the device, and convolutions may sum in another order.
constexpr double kTolerance = 1e-4;

/// Why there is no CUDA device, or empty.
std::string no_cuda() {
  try {
    std::string why;
    return dist::load_cuda_plugin().device_count(why) > 0 ? "" : why;
  } catch (const Error& problem) {
    return problem.what();
  }
}

std::vector<double> losses(bool graph, const std::string& precision) {
  std::vector<std::string> overrides = small_diffusion();
  for (const std::string& text :
       {format("train.steps={}", kSteps), std::string("train.batch_size=4"), std::string("train.log_every=1"),
        std::string("train.clip_norm=1"), "train.precision=" + precision, format("train.cuda_graph={}", graph)})
    overrides.push_back(text);
  ReadyPolicy ready(overrides);
  ready.job->load();
  const TrainSettings& settings = ready.settings.train;
  auto model = ready.job->make_model(settings.seed);
  model->to(at::Device(at::kCUDA, 0));
  parallel::SingleDevice strategy(model, {.kind = DeviceKind::kCuda, .index = 0});
  LoaderSource source(ready.job->dataset(Part::kTrain), {.drop_last = true, .seed = settings.seed},
                      {.batch_size = 4, .workers = 0, .drop_last = true}, host_allocator());
  std::vector<double> losses;
  TrainJob job{
      .strategy = &strategy,
      .loss = [&](torch::nn::Module& m, const parallel::Batch& samples) { return ready.job->loss(m, samples); },
      .batches = &source};
  job.step_observers.push_back([&](const StepStats& stats) { losses.push_back(stats.loss); });
  TrainLoop(settings, std::move(job)).run();
  return losses;
}

TEST(StepGraphOnGpu, TrainsAsKernelByKernel) {
  if (const std::string why = no_cuda(); !why.empty()) GTEST_SKIP() << why;
  for (const char* precision : {"fp32", "bf16"}) {
    const std::vector<double> plain = losses(false, precision), replayed = losses(true, precision);
    ASSERT_EQ(plain.size(), static_cast<std::size_t>(kSteps));
    ASSERT_EQ(replayed.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(std::isfinite(plain[i]));
      EXPECT_NEAR(replayed[i], plain[i], kTolerance * plain[i]) << precision << ", step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace cohort::train
