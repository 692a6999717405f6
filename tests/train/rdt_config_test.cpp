// The reference's configuration files as settings.
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "policies/rdt/config.h"
#include "policies/rdt/flags.h"
#include "policies/rdt/statistics.h"
#include "support/fresh_folder.h"
#include "train/ready_policy.h"

namespace cohort::train {
namespace {

namespace fs = std::filesystem;

/// base.yaml as the reference has it (its comments left out).
const char* const kBaseYaml = R"(common:
  img_history_size: 2
  action_chunk_size: 64
  num_cameras: 3
  state_dim: 128
dataset:
  # The path to the buffer
  buf_path: /path/to/buffer
  buf_num_chunks: 512
  buf_chunk_size: 512
  epsd_len_thresh_low: 32
  epsd_len_thresh_high: 2048
  image_aspect_ratio: pad
  tokenizer_max_length: 1024
model:
  lang_adaptor: mlp2x_gelu
  img_adaptor: mlp2x_gelu
  state_adaptor: mlp3x_gelu
  lang_token_dim: 4096
  img_token_dim: 1152
  state_token_dim: 128
  rdt:
    hidden_size: 1024
    depth: 14
    num_heads: 32
    cond_pos_embed_type: multimodal
  noise_scheduler:
    type: ddpm
    num_train_timesteps: 1000
    num_inference_timesteps: 5
    beta_schedule: squaredcos_cap_v2  # Critical choice
    prediction_type: sample
    clip_sample: False
  ema:
    update_after_step: 0
    inv_gamma: 1.0
    power: 0.75
    min_value: 0.0
    max_value: 0.9999
)";

fs::path config_folder(const std::string& name) {
  const fs::path folder = test::fresh_folder("rdt_config_" + name);
  write_file_atomically(folder / "base.yaml", kBaseYaml);
  write_file_atomically(folder / "finetune_datasets.json", R"(["arm"])");
  write_file_atomically(folder / "finetune_sample_weights.json", R"({"arm": 100, "droid": 50})");
  write_file_atomically(folder / "dataset_control_freq.json", R"({"arm": 10, "droid": 15, "eth": 66.6})");
  write_file_atomically(folder / "dataset_img_keys.json",
                        R"({"arm": {"image_keys": ["image", "wrist", "wrist"], "image_mask": [1, 1, 0]},
                            "droid": {"image_keys": ["image", "wrist", "other"], "image_mask": [1, 0, 1]}})");
  return folder;
}

policies::RdtConfig read_finetune(const fs::path& folder, bool hdf5 = false) {
  return policies::read_rdt_config(
      {.path = (folder / "base.yaml").string(), .dataset_type = "finetune", .load_from_hdf5 = hdf5});
}

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = read_file(file);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  write_file_atomically(file, text.replace(at, from.size(), to));
}

bool has(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

TEST(RdtConfig, EveryKeyOfBaseYamlIsASettingThatExists) {
  const policies::RdtConfig config = read_finetune(config_folder("whole"));
  for (const char* wanted :
       {"model.rdt.img_history_size=2", "model.rdt.horizon=64", "model.rdt.num_cameras=3", "model.rdt.hidden_size=1024",
        "model.rdt.depth=14", "model.rdt.max_lang_cond_len=1024", "model.rdt.schedule.prediction_type=sample",
        "model.rdt.sampler.num_inference_timesteps=5", "train.ema.max_decay=0.9999", "model.rdt.ctrl_freq=10",
        "data.windows_per_episode=2048", "data.filters=[\"min_steps(32)\"]", "model.rdt.data_sets=[\"arm\"]",
        "data.images=[\"observation/image\",\"observation/wrist\"]"})
    EXPECT_TRUE(has(config.overrides, wanted)) << wanted;
  RunSettings settings;
  config::Fields fields;
  describe(fields, settings);
  const auto job = make_job("rdt");
  job->describe(fields, settings);
  for (const std::string& text : config.overrides) fields.apply_override(text);
  const config::Json resolved = fields.to_json();
  EXPECT_EQ(resolved["model"]["rdt"]["hidden_size"], 1024);
  EXPECT_EQ(resolved["data"]["filters"], config::Json({"min_steps(32)"}));
}

TEST(RdtConfig, TheCommandLineGoesOnTop) {
  const fs::path folder = config_folder("flags");
  const policies::ForeignWords flags =
      policies::read_rdt_flags({"model.rdt.depth=4", "config_path=" + (folder / "base.yaml").string(),
                                "dataset_type=finetune", "load_from_hdf5=true"});
  const auto place = [&](const std::string& text) {
    return std::find(flags.overrides.begin(), flags.overrides.end(), text) - flags.overrides.begin();
  };
  EXPECT_LT(place("model.rdt.depth=14"), place("model.rdt.depth=4"));
  EXPECT_FALSE(has(flags.overrides, "data.windows_per_episode=2048")) << "the reference does not ask on HDF5 data";
}

TEST(RdtConfig, SeveralDataSetsHaveWeightsAndFrequenciesOfTheirOwn) {
  const fs::path folder = config_folder("several");
  write_file_atomically(folder / "finetune_datasets.json", R"(["arm", "droid"])");
  const policies::RdtConfig config = read_finetune(folder, /*hdf5=*/true);
  EXPECT_TRUE(has(config.overrides, "data.weights=[100,50]"));
  EXPECT_TRUE(has(config.overrides, "model.rdt.ctrl_freqs=[10,15]"));
  EXPECT_NE(message_of([&] { read_finetune(folder); }).find("droid: place 2 has a camera behind an empty place"),
            std::string::npos);
  write_file_atomically(folder / "finetune_datasets.json", R"(["arm", "mine"])");
  EXPECT_NE(message_of([&] {
              read_finetune(folder, true);
            }).find("dataset_control_freq.json: does not name the data set mine"),
            std::string::npos);
}

TEST(RdtConfig, WhatCannotBeHonouredIsRefusedByItsKey) {
  const fs::path folder = config_folder("refused");
  replace_in(folder / "base.yaml", "state_dim: 128", "state_dim: 64");
  replace_in(folder / "base.yaml", "image_aspect_ratio: pad", "image_aspect_ratio: crop");
  replace_in(folder / "base.yaml", "hidden_size: 1024", "hidden_sise: 1024");
  replace_in(folder / "base.yaml", "clip_sample: False", "clip_sample: True");
  const std::string message = message_of([&] { read_finetune(folder); });
  for (const char* part : {"common.state_dim: is 64, but only 128 is done", "dataset.image_aspect_ratio: is \"crop\"",
                           "model.rdt.hidden_sise: is not known; did you mean 'model.rdt.hidden_size'?",
                           "model.noise_scheduler.clip_sample: is true"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  write_file_atomically(folder / "base.yaml", "common:\n  a: [1, 2\n");
  EXPECT_NE(message_of([&] { read_finetune(folder); }).find("base.yaml: line "), std::string::npos);
}

/// dataset_stat.json with numbers in these slots.
std::string statistics_file(const fs::path& folder, const std::vector<int>& slots) {
  std::vector<double> mean(128, 0.0), deviation(128, 0.0);
  for (const int slot : slots) {
    mean[static_cast<std::size_t>(slot)] = 0.01 * slot;
    deviation[static_cast<std::size_t>(slot)] = 1;
  }
  const nlohmann::json set{{"dataset_name", "arm"}, {"state_mean", mean}, {"state_std", deviation}};
  write_file_atomically(folder / "dataset_stat.json", json_text(nlohmann::json{{"arm", set}}));
  return (folder / "dataset_stat.json").string();
}

TEST(RdtConfig, TheStatesMeanIsThatOfTheDataSetAndOfNoOther) {
  const fs::path folder = config_folder("statistics");
  const std::string right = statistics_file(folder, {30, 31, 10});
  EXPECT_EQ(policies::reference_state_mean(right, "arm", {31, 10, 30}), (std::vector<double>{0.31, 0.1, 0.3}));
  EXPECT_TRUE(policies::reference_state_mean(right, "other", {30}).empty());
  EXPECT_NE(
      message_of([&] {
        policies::reference_state_mean(right, "arm", {30, 31});
      })
          .find("arm has numbers in slot 10 (right_gripper_joint_0_pos), but data.proprio does not fill it: these are "
                "statistics of another data set"),
      std::string::npos)
      << message_of([&] {
           policies::reference_state_mean(right, "arm", {30, 31});
         });
  EXPECT_NE(message_of([&] {
              policies::reference_state_mean(right, "arm", {30, 31, 10, 0});
            }).find("arm has none in slot 0"),
            std::string::npos);
}

std::vector<std::string> names_of(const std::string& data_path, const std::string& data_set) {
  std::vector<std::string> names;
  for (const policies::StatisticsName& name : policies::statistics_names(data_path, data_set))
    names.push_back(name.name);
  return names;
}

TEST(RdtStatistics, TheTasksComeBeforeTheBenchmarksAndBothBeforeThoseOfAllData) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of("sets/libero_single_task/KITCHEN_SCENE10_close_demo.hdf5", "libero_90"),
            (Names{"KITCHEN_SCENE10_close", "libero_single_task", "sets", "libero_90", "all"}));
  EXPECT_EQ(names_of("libero_90/", "libero_90"), (Names{"libero_90", "all"}));
  EXPECT_EQ(names_of("../all/task.hdf5", ""), (Names{"task", "all"}));
  const fs::path folder = config_folder("order");
  const auto found = [&](const Names& in_file) {
    nlohmann::json file = nlohmann::json::object();
    for (const std::string& name : in_file) file[name] = nlohmann::json::object();
    write_file_atomically(folder / "dataset_stat.json", json_text(file));
    const auto name =
        policies::find_statistics((folder / "dataset_stat.json").string(),
                                  policies::statistics_names("sets/libero_single_task/a.hdf5", "libero_90"));
    return name ? name->name + ": " + name->why : "none";
  };
  EXPECT_EQ(found({"all", "libero_90", "libero_single_task"}), "libero_single_task: single task, named by data.paths");
  EXPECT_EQ(found({"all", "libero_90"}), "libero_90: data set of the configuration");
  EXPECT_EQ(found({"all", "libero_10"}), "all: of all data");
  EXPECT_EQ(found({"libero_10"}), "none");
}

TEST(RdtStatistics, ADeviationFarBelowTheDatasIsNamedWithItsSlot) {
  const fs::path folder = config_folder("small");
  const std::string path = (folder / "dataset_stat.json").string();
  std::vector<double> deviation(128, 0.0);
  deviation[30] = 0.003, deviation[31] = 0.004, deviation[10] = 0.5;
  write_file_atomically(path, json_text(nlohmann::json{{"libero_90", {{"action_std", deviation}}}}));
  EXPECT_EQ(policies::small_deviations(path, "libero_90", "action_std", {30, 31, 32, 10}, {0.3, 0.2, 0.4, 0.5}),
            "action_std of right_eef_pos_x is 0.003, a 100th of the data's 0.3 (1 more likewise)")
      << "slot 32 is empty in the file";
  EXPECT_EQ(policies::small_deviations(path, "libero_90", "action_std", {30, 10}, {0.02, 0.5}), "");
  EXPECT_EQ(policies::small_deviations(path, "libero_90", "state_std", {30}, {1.0}), "") << "the file has none";
}

}  // namespace
}  // namespace cohort::train
