// `cohort evaluate push-t`: from demonstrations over a policy to figures, as a user runs them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "launch/process.h"

namespace cohort::testing {
namespace {

class EvaluatePushT : public ::testing::Test {
 protected:
  Outcome cohort(const std::vector<std::string>& words) const {
    std::vector<std::string> command{cohort_path()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command, {{"OMP_NUM_THREADS", "1"}}, 110);
  }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }

  void record() const {
    const Outcome outcome = cohort({"data", "push-t", "--out", path("data"), "--episodes", "1", "--threads", "1"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  /// A policy of four steps: its figures are chance's, but it is saved and acts as any other.
  void train(const std::string& run, const std::vector<std::string>& more, const std::string& file = "push_t") const {
    std::vector<std::string> words{"train",
                                   "policy",
                                   "--config",
                                   COHORT_SOURCE_DIR "/examples/policies/" + file + ".json",
                                   "data.paths=" + path("data") + "/push_t",
                                   "data.splits=train",
                                   "data.statistics_cache=never",
                                   "validation.splits=[]",
                                   "output_dir=" + path("runs"),
                                   "name=" + run,
                                   "devices=cpu",
                                   "model.diffusion.unet.down_dims=[16,32]",
                                   "train.batch_size=16",
                                   "train.steps=4",
                                   "train.warmup_steps=0",
                                   "train.checkpoint.every=0",
                                   "train.validate_every=0",
                                   "charts=false"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = cohort(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  Outcome evaluate(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"evaluate", "push-t",    "checkpoint=" + path("runs") + "/" + run + "/latest",
                                   "--seeds",  "2",         "--max-steps",
                                   "20",       "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return cohort(words);
  }

  TemporaryFolder folder_;
};

TEST_F(EvaluatePushT, ATrainedPolicyIsScoredBesideTheBaselines) {
  record();
  train("offsets", {});
  const Outcome outcome = evaluate("offsets", {"--demonstrations", path("data") + "/push_t", "--json", path("a.json"),
                                               "model.diffusion.sampler.num_inference_timesteps=4"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of step 4"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("seeds 0 to 1, 20 steps"), std::string::npos) << outcome.out;
  for (const char* name : {"\npolicy ", "\nexpert ", "\nrandom ", "\nreplay "})
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name << "\n" << outcome.out;
  const auto json = parse_json(read_file(path("a.json")));
  EXPECT_EQ(json.at("step"), 4);
  ASSERT_EQ(json.at("policies").at("policy").at("episodes").size(), 2u);
  EXPECT_EQ(json.at("policies").at("policy").at("episodes").at(1).at("seed"), 1);

  const Outcome again = evaluate(
      "offsets", {"--no-baselines", "--json", path("b.json"), "model.diffusion.sampler.num_inference_timesteps=4"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(parse_json(read_file(path("b.json"))).at("policies").at("policy"), json.at("policies").at("policy"))
      << "the same policy and seeds, the same episodes";
}

TEST_F(EvaluatePushT, APolicyOfTargetsFromTheFiveNumbersOfTheStateActsToo) {
  record();
  train("targets", {"data.actions=action", "data.proprio=observation/state"});
  const Outcome outcome = evaluate("targets", {"--no-baselines"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\npolicy "), std::string::npos) << outcome.out;
}

// The job of scripts/gpu_check, with a smaller network.
TEST_F(EvaluatePushT, TheConfigurationOfTheReferencesSizeTrainsAndActs) {
  record();
  train("reference", {"model.diffusion.sampler.num_inference_timesteps=4"}, "push_t_reference");
  const Outcome outcome = evaluate("reference", {"--no-baselines"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of step 4"), std::string::npos) << outcome.out;
}

TEST_F(EvaluatePushT, WhatCannotActInPushTIsSaid) {
  const auto expect_refused = [](const Outcome& outcome, int code, const char* message) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << message << "\n" << outcome.err;
  };
  expect_refused(cohort({"evaluate", "push-t", "--seeds", "2"}), 2, "words");
  expect_refused(cohort({"evaluate", "push-t", "train.steps=2"}), 2, "which policy?");
  expect_refused(cohort({"evaluate", "push-t", "checkpoint=" + path("nowhere")}), 1, "no such run or checkpoint");
  record();
  train("rewards", {"data.proprio=reward"});
  expect_refused(evaluate("rewards"), 1, "no observation 'reward'");
  train("wrong_action", {"data.actions=observation/agent_pos"});
  expect_refused(evaluate("wrong_action"), 1, "no action 'observation/agent_pos'");
  expect_refused(evaluate("rewards", {"model.no_such_key=1"}), 1, "no_such_key");
  expect_refused(evaluate("rewards", {"--device", "mps:0"}), 1, "device mps:0 cannot be used");
}

}  // namespace
}  // namespace cohort::testing
