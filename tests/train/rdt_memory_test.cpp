// What saves memory while an RDT trains leaves its numbers as they are, and its losses are those of plain PyTorch.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/json_text.h"
#include "models/initialise.h"
#include "models/random_context.h"
#include "models/segment.h"
#include "policies/rdt/rdt.h"
#include "support/fresh_folder.h"
#include "support/process.h"
#include "support/ranks.h"
#include "train/gradient_checkpoint.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/ready_policy.h"
#include "train/small_rdt.h"
#include "train/step_monitor.h"
#include "weights/named_tensors.h"
#include "weights/safetensors.h"

namespace cohort::train {
namespace {

at::Tensor loss_of(ReadyPolicy& ready, torch::nn::Module& model, const parallel::Batch& batch, bool checkpointing,
                   Precision precision = Precision::kFp32) {
  const models::RandomContextGuard guard({.seed = 4, .step = 2, .sample_ids = batch.sample_ids});
  const models::SegmentRunnerGuard segments(checkpointing ? checkpointing_runner() : models::SegmentRunner());
  const PrecisionGuard autocast(precision, at::kCPU);
  return ready.job->loss(model, batch);
}

TEST(RdtMemory, GradientCheckpointingByBlockGivesTheSameLossAndGradients) {
  ReadyPolicy ready(small_rdt());
  ready.job->load();
  const auto model = ready.job->make_model(1);
  const parallel::Batch batch = ready.batch(Part::kTrain, 4);
  std::vector<at::Tensor> gradients[2];
  double losses[2] = {};
  for (const bool checkpointing : {false, true}) {
    for (at::Tensor& p : model->parameters()) p.mutable_grad().reset();
    const at::Tensor loss = loss_of(ready, *model, batch, checkpointing);
    losses[checkpointing] = loss.item<double>();
    loss.backward();
    for (const at::Tensor& p : model->parameters()) gradients[checkpointing].push_back(p.grad().clone());
  }
  EXPECT_EQ(losses[0], losses[1]);
  for (std::size_t i = 0; i < gradients[0].size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[0][i], gradients[1][i], 1e-6, 1e-6 * gradients[0][i].abs().max().item<double>()))
        << i;
}

TEST(RdtMemory, WeightsOf16BitsWithFloat32MastersTrainAsFloat32WeightsDo) {
  ReadyPolicy ready(small_rdt());
  ready.job->load();
  const parallel::Batch batch = ready.batch(Part::kTrain, 8);
  double last[2] = {};
  for (const bool bf16 : {false, true}) {
    const auto model = ready.job->make_model(1);
    if (bf16) convert_parameters(*model, at::kBFloat16);
    OptimizerSettings settings;
    Optimizer optimizer(parameter_groups(*model, settings), settings, bf16);
    StepMonitor monitor(at::kCPU, false, false);
    for (int step = 0; step < 60; ++step) {
      for (at::Tensor& p : model->parameters()) p.mutable_grad().reset();
      const at::Tensor loss = loss_of(ready, *model, batch, false, Precision::kBf16);
      loss.backward();
      last[bf16] = loss.item<double>();
      const auto& gradients = optimizer.gradients();
      monitor.finish_step(gradients, nullptr);
      monitor.clip(gradients, 1.0);
      optimizer.step(1e-3);
    }
    if (!bf16) continue;
    for (const auto& [name, parameter] : optimizer.parameters()) {
      EXPECT_EQ(parameter.scalar_type(), at::kBFloat16) << name;
      const at::Tensor master = optimizer.exact(parameter);
      EXPECT_EQ(master.scalar_type(), at::kFloat) << name;
      EXPECT_TRUE(at::equal(parameter, master.to(at::kBFloat16))) << name;
    }
  }
  EXPECT_NEAR(last[1] / last[0], 1.0, 0.05) << last[0] << " and " << last[1];
}

// Sums of float32 in another order, over 100 steps.
constexpr double kReferenceTolerance = 1e-4;

TEST(RdtMemory, AHundredStepsOfTrainingHaveTheLossesOfPlainPytorch) {
  const std::string python = testing::python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch (COHORT_PYTHON)";
  constexpr std::int64_t kSteps = 100, kBatch = 4, kPatches = 4;
  constexpr double kRate = 1e-3;
  models::RdtNetworkSettings n;
  n.hidden_size = 64;
  n.depth = 4;
  n.num_heads = 4;
  n.horizon = 8;
  n.num_cameras = 2;
  n.lang_token_dim = 24;
  n.img_token_dim = 20;
  n.max_lang_cond_len = 10;
  const std::int64_t images = n.img_history_size * n.num_cameras * kPatches;
  models::Rdt rdt(n, kPatches);
  models::initialise(rdt, 3);
  torch::manual_seed(5);
  models::RdtConditions c;
  c.language_BLE = torch::randn({kBatch, 7, n.lang_token_dim});
  c.language_mask_BL = torch::rand({kBatch, 7}) > 0.3;
  c.language_mask_BL.select(1, 0).fill_(true);
  c.images_BLE = torch::randn({kBatch, images, n.img_token_dim});
  c.state_BS = torch::randn({kBatch, 128});
  c.state_mask_BS = c.action_mask_BS = (torch::rand({kBatch, 128}) > 0.5).to(at::kFloat);
  c.frequency_B = torch::tensor({25.0f, 10.0f, 5.0f, 0.0f});
  const at::Tensor actions = torch::randn({kBatch, n.horizon, 128});
  const at::Tensor noise = torch::randn({kSteps, kBatch, n.horizon, 128});
  const at::Tensor timesteps = torch::randint(0, 1000, {kSteps, kBatch}, at::kLong);

  const auto folder = test::fresh_folder("rdt_reference");
  std::filesystem::create_directories(folder);
  weights::write_safetensors(folder / "weights.safetensors", weights::module_state(rdt));
  weights::write_safetensors(folder / "data.safetensors", {{"language", c.language_BLE},
                                                           {"mask", c.language_mask_BL.to(at::kByte)},
                                                           {"images", c.images_BLE},
                                                           {"state", c.state_BS},
                                                           {"state_mask", c.state_mask_BS},
                                                           {"frequency", c.frequency_B},
                                                           {"actions", actions},
                                                           {"noise", noise},
                                                           {"timesteps", timesteps}});
  const nlohmann::json sizes = {{"steps", kSteps},
                                {"lr", kRate},
                                {"model",
                                 {{"width", n.hidden_size},
                                  {"depth", n.depth},
                                  {"heads", n.num_heads},
                                  {"horizon", n.horizon},
                                  {"language_width", n.lang_token_dim},
                                  {"language_length", n.max_lang_cond_len},
                                  {"image_width", n.img_token_dim},
                                  {"images", images}}}};
  write_file_atomically(folder / "sizes.json", json_text(sizes));
  const testing::Outcome reference = testing::run(
      {python, std::string(COHORT_SOURCE_DIR) + "/tests/train/rdt_training_reference.py", folder.string()});
  ASSERT_EQ(reference.code, 0) << reference.err;
  std::istringstream theirs(reference.out);

  OptimizerSettings settings;
  Optimizer optimizer(parameter_groups(rdt, settings), settings);
  StepMonitor monitor(at::kCPU, false, false);
  double first = 0, last = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (at::Tensor& p : rdt.parameters()) p.mutable_grad().reset();
    const at::Tensor factors = rdt.schedule().factors(timesteps[step]);
    const at::Tensor loss = models::rdt_loss(rdt, c, actions, noise[step], timesteps[step], factors);
    loss.backward();
    const auto& gradients = optimizer.gradients();
    monitor.finish_step(gradients, nullptr);
    monitor.clip(gradients, 1.0);
    optimizer.step(kRate);
    double expected = 0;
    ASSERT_TRUE(theirs >> expected) << "step " << step;
    last = loss.item<double>();
    if (step == 0) first = last;
    EXPECT_NEAR(last, expected, kReferenceTolerance * expected) << "step " << step;
  }
  EXPECT_LT(last, 0.7 * first) << "it learns";
}

}  // namespace
}  // namespace cohort::train
