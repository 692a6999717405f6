// The command line of lerobot-train as settings.
#include "policies/act/flags.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"

namespace cohort::policies {
namespace {

using Words = std::vector<std::string>;

TEST(LeRobotFlags, AreSettingsWhateverIsTypedBesideThem) {
  const std::string root = COHORT_SOURCE_DIR "/tests/data/fixtures/lerobot";
  const ForeignWords flags = read_lerobot_flags(
      {"policy.type=act", "dataset.repo_id=me/pick", "dataset.root=" + root, "batch_size=16", "steps=2000",
       "policy.chunk_size=50", "policy.temporal_ensemble_coeff=null", "policy.optimizer_lr=2e-5", "policy.device=cuda",
       "policy.push_to_hub=false", "dataset.eval_split=0.1", "output_dir=outputs/here", "train.precision=bf16"});
  EXPECT_EQ(flags.overrides, (Words{"train.batch_size=16", "train.steps=2000", "model.act.chunk_size=50",
                                    "model.act.temporal_ensemble_coeff=null", "train.lr=2e-5",
                                    "data.splits=[\"train[:90%]\"]", "validation.splits=[\"train[90%:]\"]",
                                    "output_dir=outputs/here", "train.precision=bf16", "data.paths=" + root}));
  EXPECT_TRUE(flags.names_output_dir);
  EXPECT_EQ(flags.notes, (Words{"--policy.push_to_hub=false has no effect: nothing is sent anywhere"}));
  EXPECT_EQ(near_lerobot_flag("bach_size"), "batch_size");
  EXPECT_EQ(near_lerobot_flag("policy.chunk_sise"), "policy.chunk_size");
  EXPECT_EQ(near_lerobot_flag("train.batch_sise"), "");
}

TEST(LeRobotFlags, AFolderGivesTheNetworkAndItsWeightsToBeginWith) {
  const std::string folder = COHORT_SOURCE_DIR "/tests/policies/act/fixtures/folder";
  const ForeignWords flags = read_lerobot_flags({"policy.path=" + folder, "policy.n_action_steps=2"});
  EXPECT_EQ(flags.overrides.front(), "model.initial_weights=" + folder + "/model.safetensors");
  EXPECT_EQ(flags.overrides.back(), "model.act.n_action_steps=2") << "behind the folder's";
  EXPECT_NE(std::find(flags.overrides.begin(), flags.overrides.end(), "model.act.dim_model=32"), flags.overrides.end());
  EXPECT_EQ(flags.of_files, flags.overrides.size() - 1);
}

TEST(LeRobotFlags, AFolderSaysWhatOfTheDataIsTheEnvironmentsState) {
  const auto has = [](const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const std::filesystem::path fixture = COHORT_SOURCE_DIR "/tests/policies/act/fixtures/folder";
  const Words lerobots = read_lerobot_flags({"policy.path=" + fixture.string()}).overrides;
  EXPECT_TRUE(has(lerobots, R"(model.act.environment_state=["observation.environment_state"])"));
  EXPECT_TRUE(has(lerobots, R"(data.proprio=["observation.state","observation.environment_state"])"));
  EXPECT_TRUE(has(lerobots, "data.images=[]"));
  // Written here: of several fields, whose names cohort.json has.
  const std::filesystem::path folder = test::fresh_folder("lerobot_flags_environment");
  std::filesystem::copy(fixture / "config.json", folder / "config.json");
  std::ofstream(folder / "cohort.json") << R"({"data": {"proprio": ["obs/joints", "obs/cube"], "images": ["obs/top"]},
                                               "environment_state": ["obs/cube"]})";
  const Words ours = read_lerobot_flags({"policy.path=" + folder.string()}).overrides;
  EXPECT_TRUE(has(ours, R"(model.act.environment_state=["obs/cube"])"));
  EXPECT_TRUE(has(ours, R"(data.proprio=["obs/joints","obs/cube"])"));
  EXPECT_TRUE(has(ours, R"(data.images=["obs/top"])"));
  // Without one, the data's own fields are taken.
  std::ofstream(folder / "cohort.json") << R"({"data": {"proprio": ["obs/joints"]}, "environment_state": []})";
  const Words without = read_lerobot_flags({"policy.path=" + folder.string()}).overrides;
  EXPECT_TRUE(std::none_of(without.begin(), without.end(), [](const auto& word) { return word.starts_with("data."); }));
}

TEST(LeRobotFlags, WhatCannotBeHonouredIsNamedWithARemedyAllAtOnce) {
  EXPECT_EQ(
      message_of([] {
        read_lerobot_flags({"policy.type=diffusion", "wandb.enable=true", "env.type=aloha",
                            "policy.optimizer_lr_backbone=1e-6", "policy.n_obs_steps=2", "dataset.episodes=[0,1]"});
      }),
      "flags of lerobot-train that cannot be honoured:"
      "\n  --policy.type=diffusion: `cohort train act` trains ACT; diffusion policy and behaviour cloning are "
      "`cohort train policy`"
      "\n  --wandb.enable=true: nothing is sent anywhere; the run's folder has TensorBoard events and a report"
      "\n  --env.type=aloha: name a task of ours: rollout.enabled=true rollout.task=TASK"
      "\n  --policy.n_obs_steps=2: ACT sees one moment"
      "\n  --dataset.episodes=[0,1]: name them with data.splits=train[:90%] or train[10:50]"
      "\n  --policy.optimizer_lr_backbone=1e-6: pictures' encoder and transformer learn at one rate here, 1e-5");
  const std::string nowhere = message_of([] { read_lerobot_flags({"dataset.repo_id=nobody/nothing"}); });
  EXPECT_NE(
      nowhere.find("hf download --repo-type dataset nobody/nothing --local-dir FOLDER, then --dataset.root=FOLDER"),
      std::string::npos)
      << nowhere;
}

TEST(LeRobotFlags, EveryWordOfLeRobotTrainIsTakenOrAnswered) {
  std::ifstream words(COHORT_SOURCE_DIR "/tests/policies/act/fixtures/lerobot_train_words.txt");
  std::string flag;
  int count = 0;
  for (; std::getline(words, flag); ++count) {
    const std::string word = flag + (flag == "policy.type" ? "=act" : flag == "dataset.eval_split" ? "=0.1" : "=true");
    ForeignWords read;
    const std::string message = message_of([&] { read = read_lerobot_flags({word}); });
    if (!message.empty()) {
      EXPECT_NE(message.find("--" + word + ": "), std::string::npos) << message;
      continue;
    }
    // What is no flag goes on as it is typed, to be refused as a setting that is not known.
    const bool untouched = std::find(read.overrides.begin(), read.overrides.end(), word) != read.overrides.end();
    EXPECT_TRUE(!untouched || flag == "output_dir") << word;
  }
  EXPECT_GE(count, 70);
}

}  // namespace
}  // namespace cohort::policies
