#include "train/schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort::train {
namespace {

TEST(Schedule, WarmUpRisesFromZeroAndEveryKindFollowsIt) {
  for (const char* kind : {"constant", "cosine", "linear", "halving"}) {
    const ScheduleSettings settings{.kind = kind, .warmup_steps = 4};
    EXPECT_EQ(learning_rate_factor(settings, {.step = 0, .total_steps = 10}), 0.0) << kind;
    EXPECT_EQ(learning_rate_factor(settings, {.step = 3, .total_steps = 10}), 0.75) << kind;
    EXPECT_EQ(learning_rate_factor(settings, {.step = 4, .total_steps = 10}), 1.0) << kind;
  }
}

TEST(Schedule, HalvingIsTheInformerReferencesEffectiveCourse) {
  // The reference sets lr x 0.5^(n-1) at the end of epoch n = 1, 2, ...: the first two epochs run at the full rate.
  const ScheduleSettings settings{.kind = "halving"};
  const double expected[] = {1.0, 1.0, 0.5, 0.25, 0.125};
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(learning_rate_factor(settings, {.step = 1000, .epoch = epoch, .total_steps = 5000}), expected[epoch]);
  }
}

TEST(Schedule, CosineAndLinearEndAtTheEndFactorAndStayThere) {
  for (const char* kind : {"cosine", "linear"}) {
    const ScheduleSettings settings{.kind = kind, .end_factor = 0.1};
    EXPECT_DOUBLE_EQ(learning_rate_factor(settings, {.step = 50, .total_steps = 100}), 0.55) << kind;
    EXPECT_DOUBLE_EQ(learning_rate_factor(settings, {.step = 100, .total_steps = 100}), 0.1) << kind;
    EXPECT_DOUBLE_EQ(learning_rate_factor(settings, {.step = 150, .total_steps = 100}), 0.1) << kind;
  }
}

TEST(Schedule, MultistepFallsAtEveryMilestoneAsTorchsMultiStepLR) {
  const ScheduleSettings settings{.kind = "multistep", .milestones = {3, 5}, .gamma = 0.1};
  const double expected[] = {1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01};
  for (std::int64_t step = 0; step < 7; ++step)
    EXPECT_DOUBLE_EQ(learning_rate_factor(settings, {.step = step, .total_steps = 7}), expected[step]) << step;
}

TEST(Schedule, LearningRateRulesScaleOnlyWhenAskedFor) {
  EXPECT_EQ(scaled_learning_rate(0.1, "none", 512, 0), 0.1);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, "linear", 512, 128), 0.4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, "sqrt", 512, 128), 0.2);
  EXPECT_THROW(scaled_learning_rate(0.1, "linear", 512, 0), Error);
  EXPECT_THROW(scaled_learning_rate(0.1, "cubic", 512, 128), Error);
}

TEST(Schedule, SettingsOutOfRangeAreRefused) {
  EXPECT_THROW(ScheduleSettings{.kind = "saw"}.validate(), Error);
  EXPECT_THROW(ScheduleSettings{.warmup_steps = -1}.validate(), Error);
  EXPECT_THROW(ScheduleSettings{.end_factor = 2.0}.validate(), Error);
  EXPECT_THROW(ScheduleSettings{.halving_every = 0}.validate(), Error);
}

}  // namespace
}  // namespace cohort::train
