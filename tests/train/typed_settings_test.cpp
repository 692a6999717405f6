// What is typed against what files and presets say.
#include "train/typed_settings.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/typed_text.h"
#include "train/run.h"

namespace cohort::train {
namespace {

/// The settings after a file and the words of a command line; the message where they are refused.
struct Settled {
  RunSettings settings;
  std::string refused;

  Settled(const config::Json& file, const std::vector<std::string>& words) {
    config::Fields fields;
    describe(fields, settings);
    if (!file.is_null()) fields.apply_json(file, "c.json");
    for (const std::string& word : words) fields.apply_override(word);
    try {
      run::TypedSettings typed(words);
      settle(typed, settings);
    } catch (const Error& e) {
      refused = e.what();
    }
  }
};

TEST(TypedSettings, ABatchOfTheCommandLineOutranksTheGlobalOneOfAFile) {
  const config::Json file{{"train", {{"global_batch_size", 32}, {"gradient_accumulation_steps", 2}}}};
  const Settled typed(file, {"train.batch_size=4"});
  EXPECT_EQ(typed.refused, "");
  EXPECT_EQ(effective_batch(typed.settings.train, 1), 8);
  EXPECT_EQ(effective_batch(Settled(file, {}).settings.train, 1), 32);
  EXPECT_EQ(effective_batch(Settled(file, {"train.global_batch_size=64"}).settings.train, 1), 64);
  const std::string both = Settled({}, {"train.batch_size=4", "train.global_batch_size=64"}).refused;
  EXPECT_NE(both.find("train.batch_size=4 is of one process"), std::string::npos) << both;
  EXPECT_EQ(Settled(file, {"train.batch_size=4", "train.global_batch_size=null"}).refused, "");
}

TEST(TypedSettings, EpochsOfTheCommandLineOutrankTheStepsOfAFile) {
  const config::Json file{{"train", {{"steps", 1000}, {"epochs", 7}}}};
  const Settled typed(file, {"train.epochs=2"});
  EXPECT_EQ(typed.settings.train.steps, 0);
  EXPECT_EQ(typed.settings.train.epochs, 2);
  EXPECT_EQ(Settled(file, {"train.steps=5"}).settings.train.steps, 5);
  EXPECT_NE(Settled(file, {"train.steps=5", "train.epochs=2"}).refused.find("both say when the training ends"),
            std::string::npos);
  EXPECT_EQ(Settled(file, {"train.steps=5", "train.epochs=0"}).refused, "");
}

TEST(TypedSettings, ADeviceOrABackendOfTheCommandLineOutranksTheFilesOther) {
  const Settled on_cpu({{"devices", {"cuda:0"}}}, {"backend=cpu"});
  EXPECT_TRUE(on_cpu.settings.devices.empty());
  const Settled named({{"backend", "cuda"}}, {"devices=cpu,cpu"});
  EXPECT_EQ(named.settings.backend, "gpu") << "which takes any device that is named";
  EXPECT_EQ(named.settings.devices, (std::vector<std::string>{"cpu", "cpu"}));
  const Settled fits({{"devices", {"cuda:1"}}}, {"backend=cuda"});
  EXPECT_EQ(fits.settings.devices, std::vector<std::string>{"cuda:1"});
}

TEST(TypedSettings, WhatCouldDoNothingIsRefusedWithWhatWouldLetItAct) {
  for (const auto& [word, remedy] : std::vector<std::pair<std::string, std::string>>{
           {"train.lr_base_batch=256", "train.learning_rate_rule=linear"},
           {"train.end_factor=0.1", "train.schedule=cosine"},
           {"train.halving_every=2", "train.schedule=halving"},
           {"train.milestones=[10]", "train.schedule=multistep"},
           {"train.momentum=0.9", "train.optimizer=sgd"},
           {"train.scaler.init_scale=8", "train.precision=fp16"},
           {"train.ema.max_decay=0.99", "train.ema.enabled=true"},
           {"train.early_stopping.restore_best=false", "train.early_stopping.patience=N"},
           {"rollout.n=5", "rollout.enabled=true"}}) {
    const std::string refused = Settled({}, {word}).refused;
    EXPECT_NE(refused.find(word), std::string::npos) << word << ": " << refused;
    EXPECT_NE(refused.find("add " + remedy), std::string::npos) << word << ": " << refused;
    if (remedy.ends_with("=N")) continue;
    EXPECT_EQ(Settled({}, {word, remedy}).refused, "") << word << " " << remedy;
  }
  EXPECT_EQ(Settled({}, {"rollout.n=5", "rollout.enabled=false"}).refused, "") << "the switch is typed";
  // A file may hold settings that wait for a word, as the defaults of a job do.
  EXPECT_EQ(Settled({{"train", {{"end_factor", 0.1}, {"milestones", {3}}}}}, {}).refused, "");
  EXPECT_EQ(Settled({{"train", {{"schedule", "cosine"}}}}, {"train.end_factor=0.1"}).refused, "");
  EXPECT_NE(Settled({{"train", {{"optimizer", "sgd"}}}}, {"train.beta1=0.8"}).refused.find("sgd has none"),
            std::string::npos);
}

TEST(TypedSettings, EverySettingOfASectionThatIsSwitchedOffIsRefused) {
  RunSettings settings;
  config::Fields fields;
  describe(fields, settings);
  const config::Json all = fields.to_json();
  const auto refused = [&](const std::string& section, const config::Json& of_section) {
    std::vector<std::string> words;
    for (const auto& [name, value] : of_section.items())
      if (name != "enabled") words.push_back(section + "." + name + "=" + typed_text(value));
    EXPECT_GE(words.size(), 4u) << section;
    const std::string together = Settled({}, words).refused;
    for (const std::string& word : words) {
      EXPECT_NE(Settled({}, {word}).refused.find(word), std::string::npos) << word;
      EXPECT_NE(together.find(word), std::string::npos) << word << "\n" << together;
    }
  };
  refused("train.scaler", all.at("train").at("scaler"));
  refused("train.ema", all.at("train").at("ema"));
  refused("rollout", all.at("rollout"));
}

}  // namespace
}  // namespace cohort::train
