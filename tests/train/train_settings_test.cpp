#include "train/train_settings.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort::train {
namespace {

TEST(TrainSettings, EveryFieldIsReachedByItsPathAndPrinted) {
  TrainSettings settings;
  config::Fields fields;
  fields.section("train", [&] { describe(fields, settings); });
  for (const char* override :
       {"train.batch_size=7", "train.global_batch_size=56", "train.lr=0.5", "train.optimizer=sgd", "train.momentum=0.9",
        "train.weight_decay=0.2", "train.schedule=cosine", "train.warmup_steps=3", "train.precision=bf16",
        "train.scaler.init_scale=8", "train.ema.enabled=true", "train.ema.power=0.5", "train.early_stopping.patience=4",
        "train.checkpoint.every=100", "train.checkpoint.resume=none", "train.seed=5", "train.deterministic=true"}) {
    fields.apply_override(override);
  }
  EXPECT_EQ(settings.batch_size, 7);
  EXPECT_EQ(settings.global_batch_size, 56);
  EXPECT_EQ(settings.optimizer.kind, "sgd");
  EXPECT_EQ(settings.optimizer.resolved_weight_decay(), 0.2);
  EXPECT_EQ(settings.schedule.kind, "cosine");
  EXPECT_EQ(settings.scaler.init_scale, 8.0);
  EXPECT_EQ(settings.ema.power, 0.5);
  EXPECT_EQ(settings.early_stopping.patience, 4);
  EXPECT_EQ(settings.checkpoint.every, 100);
  EXPECT_EQ(settings.seed, 5u);
  settings.validate();
  const auto json = fields.to_json();
  EXPECT_EQ(json["train"]["checkpoint"]["resume"], "none");
  TrainSettings again;
  config::Fields other;
  other.section("train", [&] { describe(other, again); });
  other.apply_json(json, "config.json");
  EXPECT_EQ(other.to_json(), json);
  EXPECT_THROW(fields.apply_override("train.optimizer=lion"), Error);
  EXPECT_THROW(fields.apply_override("train.learning_rate=1"), Error);
}

TEST(TrainSettings, TheEffectiveBatchIsBatchTimesProcessesTimesAccumulation) {
  TrainSettings settings{.batch_size = 8, .gradient_accumulation_steps = 3};
  EXPECT_EQ(effective_batch(settings, 4), 96);
  settings.global_batch_size = 48;
  EXPECT_EQ(batch_per_process(settings, 4), 4);
  EXPECT_EQ(effective_batch(settings, 4), 48);
  settings.global_batch_size = 50;
  try {
    batch_per_process(settings, 4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("48 and 60"), std::string::npos) << e.what();
  }
}

TEST(TrainSettings, ALearningRateRuleThatLacksItsBaseIsAnErrorBeforeTraining) {
  TrainSettings settings{.learning_rate_rule = "sqrt"};
  EXPECT_THROW(settings.validate(), Error);
  settings.lr_base_batch = 32;
  settings.validate();
}

}  // namespace
}  // namespace cohort::train
