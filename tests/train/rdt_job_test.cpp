// RDT as a job on the fixtures of tests/data, and main.py's flags.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/message_of.h"
#include "models/random_context.h"
#include "models/rdt/rdt_policy.h"
#include "policy/named_tensors.h"
#include "policy/rdt_files.h"
#include "policy/safetensors.h"
#include "policy/trained_policy.h"
#include "train/jobs/rdt_flags.h"
#include "train/ready_policy.h"

namespace cohort::train {
namespace {

/// A small RDT of poses and pictures on the data set "arm".
std::vector<std::string> small_rdt(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides{
      "model.algorithm=rdt",
      "data.paths=" + data::fixture("arm").string(),
      "data.actions=action",
      "data.proprio=observation/pose,observation/gripper",
      "data.images=observation/image",
      "data.image_transforms=[\"resize(16, 16)\"]",
      "data.statistics_cache=never",
      "model.rdt.hidden_size=32",
      "model.rdt.depth=2",
      "model.rdt.num_heads=4",
      "model.rdt.horizon=4",
      "model.rdt.exec_horizon=2",
      "model.rdt.num_cameras=2",
      "model.rdt.lang_token_dim=8",
      "model.rdt.max_lang_cond_len=6",
      "model.rdt.img_token_dim=12",
      "model.rdt.vision.image_size=16",
      "model.rdt.vision.patch_size=8",
      "model.rdt.vision.hidden_size=12",
      "model.rdt.vision.num_hidden_layers=1",
      "model.rdt.vision.num_attention_heads=2",
      "model.rdt.vision.intermediate_size=16",
      "model.rdt.train_vision=true",
      "model.rdt.slots=[\"observation/pose: 30-35\", \"observation/gripper: gripper_open\", \"action: 39-44, "
      "gripper_open\"]"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

std::filesystem::path rdt_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("rdt_job_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

double rdt_job_loss(ReadyPolicy& ready, torch::nn::Module& model, const parallel::Batch& batch) {
  const models::RandomContextGuard guard({.seed = 4, .step = 2, .sample_ids = batch.sample_ids});
  return ready.job->loss(model, batch).item<double>();
}

TEST(RdtJob, SlotsAndWindowsFollowFromTheData) {
  ReadyPolicy ready(small_rdt());
  ready.job->load();
  const config::Json resolved = ready.fields.to_json();
  EXPECT_EQ(resolved["data"]["observation_steps"], 2) << "img_history_size";
  EXPECT_EQ(resolved["data"]["action_steps"], 4);
  EXPECT_EQ(resolved["data"]["action_begin"], 0) << "chunks begin with the newest frame";
  EXPECT_EQ(resolved["model"]["rdt"]["state_slots"], config::Json(std::vector<int>{30, 31, 32, 33, 34, 35, 10}));
  EXPECT_EQ(resolved["model"]["rdt"]["action_slots"], config::Json(std::vector<int>{39, 40, 41, 42, 43, 44, 10}));
  EXPECT_EQ(resolved["model"]["rdt"]["state_mean"].size(), 7u);
  ReadyPolicy again({}, resolved);
  again.job->load();
  EXPECT_EQ(again.fields.to_json(), resolved);
  const auto model = ready.job->make_model(1);
  const parallel::Batch batch = ready.batch(Part::kTrain, 4);
  EXPECT_TRUE(std::isfinite(rdt_job_loss(ready, *model, batch)));
  model->eval();
  const Prediction prediction = ready.job->predict(*model, batch);
  EXPECT_EQ(prediction.predicted.sizes().vec(), (std::vector<std::int64_t>{4, 4, 7}));
  EXPECT_EQ(prediction.truth.sizes(), prediction.predicted.sizes());
}

TEST(RdtJob, FieldsThatMapNowhereAreRefusedWithARemedy) {
  std::vector<std::string> unmapped = small_rdt();
  unmapped.back() = "model.rdt.slots=[\"observation/pose: 30-35\"]";
  const std::string message = message_of([&] { ReadyPolicy(unmapped).job->load(); });
  EXPECT_NE(message.find("observation/gripper (1 number) maps to none of RDT's 128 slots"), std::string::npos)
      << message;
  EXPECT_NE(message.find("model.rdt.slots=[\"observation/gripper: right_gripper_open\"]"), std::string::npos);
}

TEST(RdtJob, TrainingLowersTheLossAndTheModelActsAlone) {
  ReadyPolicy ready(small_rdt({"data.action_normalization=bounds", "model.rdt.cond_mask_prob=0"}));
  ready.job->load();
  const auto model = ready.job->make_model(1);
  const parallel::Batch batch = ready.batch(Part::kTrain, 8);
  const double before = rdt_job_loss(ready, *model, batch);
  for (int step = 0; step < 40; ++step) {
    const models::RandomContextGuard guard({.seed = 4, .step = 2, .sample_ids = batch.sample_ids});
    ready.job->loss(*model, batch).backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : model->parameters()) {
      p.add_(p.grad(), -1.0);
      p.mutable_grad().reset();
    }
  }
  EXPECT_LT(rdt_job_loss(ready, *model, batch), 0.9 * before);
  model->eval();
  policy::TrainedPolicy policy(policy::PolicyInTraining{.module = model.get(),
                                                        .configuration = ready.fields.to_json().dump(),
                                                        .statistics = ready.job->statistics().dump()});
  std::vector<std::uint8_t> pixels(20 * 24 * 3, 90);
  const ArrayView view = make_view(pixels.data(), {1, 20, 24, 3});
  const std::vector<float> state(7, 0.1f);
  const std::vector<float> action = policy.act({5}, {.low_dim = state, .images = {&view, 1}});
  ASSERT_EQ(action.size(), 7u);
  for (const float number : action) EXPECT_TRUE(std::isfinite(number));
}

TEST(RdtJob, BeginsWithTheReferencesWeightsAnEmbeddedInstructionAndASiglip) {
  const auto folder = rdt_folder("files");
  ReadyPolicy donor(small_rdt({"train.seed=7"}));
  donor.job->load();
  const auto other = donor.job->make_model(7);
  policy::NamedTensors reference, siglip;
  for (const auto& [name, tensor] : policy::module_state(*other)) {
    if (name.starts_with("vision_encoder."))
      siglip.emplace_back(name.substr(15), tensor);
    else if (!name.starts_with("lang_"))
      reference.emplace_back("module." + name, tensor);
    else if (name.starts_with("lang_adaptor."))
      reference.emplace_back("module." + name, tensor);
  }
  siglip.emplace_back("vision_model.head.probe", torch::ones({1, 1, 12}));
  siglip.emplace_back("text_model.final_layer_norm.weight", torch::ones({12}));
  policy::write_safetensors(folder / "rdt.safetensors", reference);
  policy::write_safetensors(folder / "siglip.safetensors", siglip);
  policy::write_safetensors(folder / "told.safetensors", {{"lang_embed", torch::arange(24.0f).view({1, 3, 8})}});
  ReadyPolicy ready(small_rdt({"model.initial_weights=" + (folder / "rdt.safetensors").string(),
                               "model.rdt.vision_weights=" + (folder / "siglip.safetensors").string(),
                               "model.rdt.lang_embed=" + (folder / "told.safetensors").string()}));
  ready.job->load();
  const auto model = ready.job->make_model(1);
  EXPECT_EQ(ready.fields.to_json()["model"]["rdt"]["lang_tokens"], 3);
  std::map<std::string, at::Tensor> theirs;
  for (const auto& [name, tensor] : policy::module_state(*other)) theirs[name] = tensor;
  for (const auto& [name, tensor] : policy::module_state(*model)) {
    if (name == "lang_embed")
      EXPECT_TRUE(at::equal(tensor, torch::arange(24.0f).view({3, 8})));
    else
      EXPECT_TRUE(at::equal(tensor, theirs.at(name))) << name;
  }
  reference.pop_back();
  policy::write_safetensors(folder / "short.safetensors", reference);
  ReadyPolicy lacking(small_rdt({"model.initial_weights=" + (folder / "short.safetensors").string()}));
  lacking.job->load();
  EXPECT_NE(message_of([&] { lacking.job->make_model(1); }).find("Missing: "), std::string::npos);
  ReadyPolicy wide(small_rdt({"model.rdt.lang_embed=" + (folder / "siglip.safetensors").string()}));
  EXPECT_NE(message_of([&] { wide.job->load(); }).find("none of them is called lang_embed"), std::string::npos);
}

TEST(RdtFlags, MainPysFlagsAreOurSettings) {
  const RdtFlags flags = read_rdt_flags(
      {"train_batch_size=16", "max_train_steps=20000", "load_from_hdf5=true", "mixed_precision=bf16",
       "lr_scheduler=constant_with_warmup", "lr_warmup_steps=100", "scale_lr=true", "resume_from_checkpoint=latest",
       "sample_period=100", "sample_batch_size=4", "model.rdt.lang_embed=a.pt", "precomp_lang_embed=true",
       "pretrained_text_encoder_name_or_path=google/t5-v1_1-xxl", "alpha=0.9", "state_noise_snr=40", "report_to=none",
       "train.log_every=5"});
  const std::vector<std::string> expected{"train.batch_size=16",
                                          "train.steps=20000",
                                          "data.format=hdf5",
                                          "train.precision=bf16",
                                          "train.learning_rate_rule=linear",
                                          "train.lr_base_batch=1",
                                          "resume=auto",
                                          "model.rdt.lang_embed=a.pt",
                                          "model.rdt.state_noise_snr=40",
                                          "tensorboard=false",
                                          "train.log_every=5",
                                          "train.schedule=constant",
                                          "train.warmup_steps=100",
                                          "train.validate_every=100",
                                          "validation.sampled=8"};
  EXPECT_EQ(flags.overrides, expected);
  EXPECT_EQ(flags.notes.size(), 3u) << "alpha, the text encoder, what is sampled";
  EXPECT_TRUE(is_rdt_switch("load_from_hdf5"));
  EXPECT_FALSE(is_rdt_switch("train_batch_size"));
  // Every setting that flags become exists.
  RunSettings settings;
  config::Fields fields;
  describe(fields, settings);
  const auto job = make_job("rdt");
  job->describe(fields, settings);
  for (const std::string& text : flags.overrides) fields.apply_override(text);
  EXPECT_EQ(settings.train.batch_size, 16);
}

TEST(RdtFlags, WhatCannotBeHonouredIsRefusedByName) {
  const std::string message = message_of([] {
    read_rdt_flags({"report_to=wandb", "lr_scheduler=polynomial", "config_path=configs/base.yaml",
                    "precomp_lang_embed=true", "push_to_hub=false"});
  });
  for (const char* flag : {"--report_to=wandb: ", "--lr_scheduler=polynomial: ", "--config_path=configs/base.yaml: ",
                           "--precomp_lang_embed: "})
    EXPECT_NE(message.find(flag), std::string::npos) << flag << message;
  EXPECT_EQ(message.find("push_to_hub"), std::string::npos);
  EXPECT_NE(message_of([] {
              read_rdt_flags({"pretrained_text_encoder_name_or_path=google/t5-v1_1-xxl"});
            }).find("add --precomp_lang_embed"),
            std::string::npos);
}

TEST(RdtFlags, DeepspeedsFileAndTheOptimizerOf8BitsAreSettingsAndAreSaidOnce) {
  const std::string file = std::string(COHORT_SOURCE_DIR) + "/configs/zero2.json";
  const RdtFlags flags = read_rdt_flags({"deepspeed=" + file, "use_8bit_adam=true", "train_batch_size=4"});
  EXPECT_EQ(flags.overrides,
            (std::vector<std::string>{"parallel.zero=2", "train.optimizer=adamw8bit", "train.batch_size=4"}));
  EXPECT_EQ(read_rdt_flags({"use_8bit_adam=false"}).overrides, std::vector<std::string>{});
  const std::string twice = message_of([&] { read_rdt_flags({"deepspeed=" + file, "parallel.zero=1"}); });
  EXPECT_NE(twice.find("its file says parallel.zero=2 and the command line parallel.zero=1"), std::string::npos)
      << twice;
}

TEST(RdtFlags, ModelsAreFoundInTheHubsCacheOrTheDownloadIsNamed) {
  const auto folder = rdt_folder("cache");
  ::setenv("HF_HUB_CACHE", folder.c_str(), 1);
  EXPECT_NE(message_of([] {
              find_model("pretrained_vision_encoder_name_or_path", "google/siglip-so400m-patch14-384");
            }).find("huggingface-cli download google/siglip-so400m-patch14-384"),
            std::string::npos);
  const auto snapshot = folder / "models--google--siglip-so400m-patch14-384/snapshots/abc";
  std::filesystem::create_directories(snapshot);
  EXPECT_EQ(find_model("x", "google/siglip-so400m-patch14-384"), snapshot.string());
  EXPECT_EQ(find_model("x", snapshot.string()), snapshot.string());
  ::unsetenv("HF_HUB_CACHE");
}

}  // namespace
}  // namespace cohort::train
