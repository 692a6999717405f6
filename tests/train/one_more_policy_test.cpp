// A policy that no file of src knows (linear_policy.h) is trained, continued, estimated and acts.
#include <filesystem>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "policies/trained_policy.h"
#include "support/fresh_folder.h"
#include "train/estimate.h"
#include "train/linear_policy.h"
#include "train/ready_policy.h"
#include "train/run.h"

namespace cohort::train {
namespace {

using cohort::testing::linear;

/// The job `cohort train linear`, as the command line fills its settings.
struct LinearJob {
  std::unique_ptr<Job> job = make_job(linear());
  RunSettings settings;
  config::Fields fields;

  explicit LinearJob(const std::vector<std::string>& overrides) {
    config::Fields defaults;
    job->describe(defaults, settings);
    describe(fields, settings);
    job->describe(fields, settings);
    for (const char* text :
         {"data.actions=action", "data.proprio=observation/pose,observation/gripper", "data.statistics_cache=never",
          "charts=false", "tensorboard=false", "threads=1", "devices=cpu", "train.batch_size=4"})
      fields.apply_override(text);
    fields.apply_override("data.paths=" + data::fixture("arm").string());
    for (const std::string& text : overrides) fields.apply_override(text);
  }
};

TEST(OneMorePolicy, HasItsJobWithItsDefaultsAndItsSettingsBehindTheRegistry) {
  LinearJob ready({});
  EXPECT_EQ(ready.settings.train.lr, 0.5);
  EXPECT_EQ(ready.settings.train.optimizer.kind, "sgd");
  EXPECT_EQ(ready.fields.to_json()["model"]["linear"]["initial_std"], 0.1);
  LinearJob wrong({"model.linear.initial_std=-1"});
  EXPECT_EQ(message_of([&] { wrong.job->load(); }),
            "model.linear (robomimic: algo): initial_std = -1 must not be negative");
}

TEST(OneMorePolicy, IsTrainedContinuedAndActs) {
  const std::filesystem::path folder = test::fresh_folder("one_more_policy");
  const auto trained = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{"output_dir=" + folder.string(), "name=" + name, "train.steps=4"};
    words.insert(words.end(), more.begin(), more.end());
    LinearJob ready(words);
    EXPECT_EQ(run(*ready.job, ready.settings, ready.fields, {}), 0);
    return std::filesystem::canonical(folder / name / "latest");
  };
  const auto whole = trained("whole", {});
  const auto half = trained("half", {"train.steps=2", "train.schedule=constant"});
  const auto continued =
      trained("continued", {"train.checkpoint.resume=" + (half / "checkpoints" / "checkpoint-2").string()});
  policies::TrainedPolicy one(whole, {.exact = false}), two(continued, {.exact = false}), early(half, {.exact = false});
  EXPECT_EQ(one.step(), 4);
  EXPECT_EQ(early.step(), 2);
  const std::vector<float> frame(static_cast<std::size_t>(one.low_dim_width()), 0.25F);
  const auto action = [&](policies::TrainedPolicy& policy) {
    policy.begin(0);
    return policy.act({0}, {.low_dim = frame, .images = {}});
  };
  EXPECT_EQ(action(one), action(two)) << "two steps and two more are four";
  EXPECT_NE(action(one), action(early));
}

TEST(OneMorePolicy, IsEstimatedByRealSteps) {
  LinearJob ready({});
  const Estimate estimated = estimate(*ready.job, ready.settings, {});
  EXPECT_EQ(estimated.job, "linear");
  EXPECT_GT(estimated.memory.weights, 0);
}

}  // namespace
}  // namespace cohort::train
