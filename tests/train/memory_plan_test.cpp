// The plan of memory from shapes beside what is counted while a small RDT trains, and DeepSpeed's files as settings.
#include "train/memory_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/files.h"
#include "core/message_of.h"
#include "policies/rdt/deepspeed_file.h"
#include "policies/rdt/rdt.h"
#include "support/fresh_folder.h"
#include "train/ready_policy.h"
#include "train/small_rdt.h"
#include "weights/named_tensors.h"

namespace cohort::train {
namespace {

/// A size at which activations are more than a few pages; shapes of conditions as in the published sizes: many image
/// tokens, few rows.
std::vector<std::string> planned(const std::vector<std::string>& more) {
  std::vector<std::string> words = small_rdt(
      {"model.rdt.hidden_size=128", "model.rdt.depth=4", "model.rdt.horizon=16", "model.rdt.exec_horizon=8",
       "model.rdt.vision.image_size=64", "model.rdt.img_token_dim=64", "model.rdt.vision.hidden_size=64",
       "model.rdt.vision.intermediate_size=128", "model.rdt.train_vision=false",
       "data.image_transforms=[\"resize(64, 64)\"]", "train.batch_size=8", "train.ema.enabled=true", "backend=cpu"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::int64_t> sizes_of(const torch::nn::Module& module, bool trained) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& p : module.parameters())
    if (p.requires_grad() == trained) sizes.push_back(p.numel());
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

TEST(MemoryPlan, ShapesAreThoseOfTheModel) {
  for (const char* vision : {"model.rdt.train_vision=true", "model.rdt.train_vision=false"}) {
    ReadyPolicy ready(planned({vision}));
    ready.job->load();
    const auto model = ready.job->make_model(1);
    RdtShapes shapes = rdt_shapes(*models::rdt_settings(*model));
    std::sort(shapes.trained.begin(), shapes.trained.end());
    std::sort(shapes.frozen.begin(), shapes.frozen.end());
    EXPECT_EQ(shapes.trained, sizes_of(*model, true));
    EXPECT_EQ(shapes.frozen, sizes_of(*model, false));
  }
  // The published sizes, without the learned instruction.
  const auto parameters = [](int width, int depth) {
    models::RdtSettings settings;
    settings.network.hidden_size = width;
    settings.network.depth = depth;
    settings.lang_tokens = 32;
    std::int64_t count = 0;
    for (const std::int64_t n : rdt_shapes(settings).trained) count += n;
    return count;
  };
  EXPECT_EQ(parameters(2048, 28), 1228319872);
  EXPECT_EQ(parameters(1024, 14), 166229888);
}

TEST(MemoryPlan, PartsAreTheBytesThatATrainingCounts) {
  const std::vector<std::string> cases[] = {
      {},
      {"train.gradient_checkpointing=true"},
      {"train.precision=bf16", "train.weights=bf16", "train.optimizer=adamw8bit"},
      {"train.precision=bf16", "train.gradient_checkpointing=true", "train.optimizer=adamw8bit"},
      {"train.precision=bf16"},
  };
  for (const std::vector<std::string>& words : cases) {
    std::string trace = "plain";
    for (const std::string& word : words) trace += " " + word;
    SCOPED_TRACE(trace);
    ReadyPolicy ready(planned(words));
    const Estimate measured = estimate(*ready.job, ready.settings, {});
    const auto model = ready.job->make_model(1);
    const MemoryPlan plan = plan_memory(*models::rdt_settings(*model), {.train = ready.settings.train});
    // Buffers of a few numbers are left out of the shapes; step counts are in neither.
    EXPECT_NEAR(plan.parts.weights, measured.memory.weights, 0.002 * measured.memory.weights);
    EXPECT_EQ(plan.parts.gradients, measured.memory.gradients);
    EXPECT_NEAR(plan.parts.optimizer, measured.memory.optimizer, 0.03 * measured.memory.optimizer);
    EXPECT_EQ(plan.parts.ema, measured.memory.ema);
    const double ratio = plan.activations_per_sample / measured.activations_per_sample;
    EXPECT_GT(ratio, 0.8) << plan.activations_per_sample << " and " << measured.activations_per_sample;
    EXPECT_LT(ratio, 1.25) << plan.activations_per_sample << " and " << measured.activations_per_sample;
  }
}

TEST(MemoryPlan, OneBillionFitsAGpuOf24GBWithMomentsOf8BitsAndCheckpointing) {
  models::RdtSettings model;
  model.lang_tokens = 32;
  TrainSettings train;
  train.batch_size = 1;
  train.precision = train.weights = "bf16";
  train.ema.enabled = true;
  train.gradient_checkpointing = true;
  const double limit = 24.0 * (1 << 30);
  const auto total = [&](int zero, int devices) {
    return plan_memory(model, {.train = train, .zero = zero, .devices = devices}, limit, 5e8).parts.total();
  };
  EXPECT_GT(total(0, 1), limit) << "moments of 32 bits do not fit";
  train.optimizer.kind = "adamw8bit";
  EXPECT_LT(total(0, 1), limit);
  EXPECT_GE(plan_memory(model, {.train = train}, limit, 5e8).largest_batch, 4);
  train.optimizer.kind = "adamw";
  EXPECT_LT(total(1, 2), limit) << "two devices divide them";
  EXPECT_LT(total(2, 4), total(1, 4));
  EXPECT_EQ(total(2, 1), total(0, 1)) << "one device has nobody to divide with";
  const std::string text = shapes_text(model, train, 2, limit);
  EXPECT_NE(text.find("1228319872 parameters trained"), std::string::npos) << text;
  EXPECT_NE(text.find("largest batch in 24"), std::string::npos) << text;
}

std::string deepspeed_file(const std::string& text) {
  const auto folder = test::fresh_folder("deepspeed");
  write_file_atomically(folder / "zero.json", text);
  return (folder / "zero.json").string();
}

TEST(Deepspeed, TheReferencesFileDividesGradientsAndWhatSaysMoreIsHonoured) {
  const policies::DeepspeedFile plain =
      policies::read_deepspeed_file(std::string(COHORT_SOURCE_DIR) + "/configs/zero2.json");
  EXPECT_EQ(plain.overrides, std::vector<std::string>{"parallel.zero=2"});
  ASSERT_EQ(plain.notes.size(), 2u);
  EXPECT_NE(plain.notes[0].find("train.weights=bf16"), std::string::npos) << plain.notes[0];
  EXPECT_NE(plain.notes[1].find("zero_optimization.overlap_comm"), std::string::npos) << plain.notes[1];
  const policies::DeepspeedFile full = policies::read_deepspeed_file(deepspeed_file(R"({
    "fp16": {"enabled": false, "loss_scale": 0, "initial_scale_power": 16, "loss_scale_window": 1000, "hysteresis": 2},
    "bf16": {"enabled": true}, "gradient_clipping": 1.0, "gradient_accumulation_steps": 4,
    "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "none"}}})"));
  std::vector<std::string> overrides = full.overrides;
  std::sort(overrides.begin(), overrides.end());
  EXPECT_EQ(overrides, (std::vector<std::string>{"parallel.zero=1", "train.batch_size=2", "train.clip_norm=1.0",
                                                 "train.gradient_accumulation_steps=4", "train.precision=bf16",
                                                 "train.scaler.growth_interval=1000", "train.scaler.init_scale=65536",
                                                 "train.weights=bf16"}));
  ReadyPolicy ready(small_rdt(overrides));  // all of them are settings
  EXPECT_EQ(ready.settings.parallel.zero, 1);
}

TEST(Deepspeed, WhatIsNotDoneIsRefusedByKeyWithARemedy) {
  const std::string message = message_of([] {
    policies::read_deepspeed_file(
        deepspeed_file(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
      "optimizer": {"type": "Lamb"}, "activation_checkpointing": {}, "autotuning": {}, "gradient_clipping": "much"})"));
  });
  for (const char* part : {"zero_optimization.stage = 3: there are 0, 1 and 2", "zero_optimization.offload_optimizer",
                           "optimizer = ", "--gradient_checkpointing", "autotuning = ", "gradient_clipping = \"much\""})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  EXPECT_NE(message_of([] { policies::read_deepspeed_file(deepspeed_file("no json")); }).find("is no JSON file"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::train
