// `cohort estimate` beside what the same training takes.
#include <algorithm>

#include <gtest/gtest.h>

#include "cli/training.h"
#include "core/json_text.h"

namespace cohort::testing {
namespace {

/// A training of the command line `words` to its end: the highest resident memory of its process, bytes.
double peak_of(const std::vector<std::string>& words) {
  const Outcome outcome = run(words, Training::variables());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.peak;
}

nlohmann::json estimate_of(std::vector<std::string> words, const std::vector<std::string>& more = {}) {
  words[1] = "estimate";  // in place of train
  words.insert(words.end(), more.begin(), more.end());
  words.push_back("--json");
  const Outcome outcome = run(words, Training::variables());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? parse_json<nlohmann::json>(outcome.out) : nlohmann::json();
}

/// Activations of 100 MB and more beside the libraries' pages.
std::vector<std::string> wide_regressor(const Training& training, const std::string& name) {
  return training.alone(
      name, {"model.hidden=2048", "model.d_ff=2048", "train.batch_size=300", "train.epochs=4", "threads=1"});
}

TEST(CliEstimate, IsWithinATenthOfTheRealPeakOfTheRegressor) {
  const Training training;
  const auto words = wide_regressor(training, "real");
  const auto estimate = estimate_of(words);
  const double peak = peak_of(words);
  ASSERT_GT(peak, 0);
  const double total = estimate["memory"]["total"].get<double>();
  EXPECT_NEAR(total / peak, 1, 0.10) << json_text(estimate, 2) << "\nreal peak " << peak;
}

TEST(CliEstimate, PartsFollowFromTheShapesOfTheModel) {
  const Training training;
  const auto with_ema = estimate_of(wide_regressor(training, "parts"), {"train.ema.enabled=true"});
  const double weights = with_ema["memory"]["weights"].get<double>();
  const double gradients = with_ema["memory"]["gradients"].get<double>();
  EXPECT_GT(gradients, 4.0 * 2048 * 64 * 2) << "two layers of the feed-forward network";
  EXPECT_LE(gradients, weights) << "weights hold buffers, too";
  EXPECT_NEAR(with_ema["memory"]["ema"].get<double>(), gradients, 0.001 * gradients)
      << "all but the weights of BatchNorm, which are copied";
  EXPECT_NEAR(with_ema["memory"]["optimizer"].get<double>(), 2 * gradients, 0.05 * gradients)
      << "AdamW keeps two moments of every parameter";
  EXPECT_FALSE(fs::exists(training.outputs())) << "an estimate writes nothing";
}

TEST(CliEstimate, TheLargestBatchIsTheOneWhoseEstimateJustFits) {
  const Training training;
  const auto words = wide_regressor(training, "largest");
  const auto first = estimate_of(words);
  const double fixed = first["memory"]["total"].get<double>() - first["memory"]["activations"].get<double>() -
                       first["memory"]["loader"].get<double>() + first["activations_fixed"].get<double>();
  const double loader = first["memory"]["loader"].get<double>() / first["batch_size"].get<double>();
  const double each = first["activations_per_sample"].get<double>() + loader;
  EXPECT_GT(first["activations_per_sample"].get<double>(), 4 * 2048) << "at least one layer's outputs";
  const double limit = fixed + 150.5 * each;
  const auto second = estimate_of(words, {"--memory", std::to_string(static_cast<long long>(limit))});
  // The program's own pages differ from one process to the next.
  const double room = limit - (second["memory"]["total"].get<double>() - second["memory"]["activations"].get<double>() -
                               second["memory"]["loader"].get<double>() + second["activations_fixed"].get<double>());
  EXPECT_NEAR(second["largest_batch"].get<double>(),
              std::clamp(room / (second["activations_per_sample"].get<double>() + loader), 0.0, 320.0), 1.0);
  EXPECT_EQ(estimate_of(words, {"--memory=1M"})["largest_batch"], 0);
}

TEST(CliEstimate, MoreDevicesMeanFewerStepsAndTheCommunicationThatIsAssumed) {
  const Training training;
  const auto estimate = estimate_of(wide_regressor(training, "devices"), {"train.batch_size=16", "--bandwidth=1G"});
  const auto& on = estimate["on"];
  ASSERT_EQ(on.size(), 4u);
  const double step = estimate["measured_step_s"].get<double>();
  const double gradients = estimate["memory"]["gradients"].get<double>();
  for (const auto& devices : on) {
    const int n = devices["devices"];
    EXPECT_EQ(devices["effective_batch"], 16 * n);
    EXPECT_EQ(devices["steps_per_epoch"], (320 + 16 * n - 1) / (16 * n));
    const double exchange = 2.0 * (n - 1) / n * gradients / (1 << 30);
    EXPECT_NEAR(devices["step_s"].get<double>(), step + exchange, 1e-9);
    EXPECT_NEAR(devices["communication"].get<double>(), exchange / (step + exchange), 1e-9);
    EXPECT_NEAR(devices["hours"].get<double>(), 4 * devices["hours_per_epoch"].get<double>(), 1e-9);
  }
}

TEST(CliEstimate, WhatRanksDivideIsLessOnEachAndUsualLengthsHaveTheirHours) {
  const Training training;
  const auto whole = estimate_of(wide_regressor(training, "whole"), {"train.ema.enabled=true"});
  EXPECT_EQ(whole["on"][1]["memory"], whole["memory"]["total"]);
  const auto divided = estimate_of(wide_regressor(training, "divided"), {"train.ema.enabled=true", "parallel.zero=2"});
  const auto& memory = divided["memory"];
  const double parts =
      memory["optimizer"].get<double>() + memory["ema"].get<double>() + memory["gradients"].get<double>();
  EXPECT_EQ(divided["on"][0]["memory"], memory["total"]);
  EXPECT_NEAR(divided["on"][2]["memory"].get<double>(), memory["total"].get<double>() - 0.75 * parts, 1.0);
  std::vector<std::string> words = wide_regressor(training, "hours");
  words[1] = "estimate";
  const Outcome outcome = run(words, Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"memory each", "  steps   1 device  2 devices", "\n   5000 ", "\n  20000 "})
    EXPECT_TRUE(contains(outcome.out, part)) << part << outcome.out;
}

TEST(CliEstimate, TheShapesOfAnRdtNeedNeitherDataNorSteps) {
  const std::vector<std::string> words{cohort_path(),
                                       "estimate",
                                       "rdt",
                                       "--config",
                                       COHORT_SOURCE_DIR "/configs/rdt_1b.json",
                                       "--shapes",
                                       "--memory=24G",
                                       "--mixed_precision=bf16",
                                       "train.weights=bf16",
                                       "--gradient_checkpointing",
                                       "--deepspeed",
                                       COHORT_SOURCE_DIR "/configs/zero2.json"};
  Outcome outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "1228323968 parameters trained and 412987248 frozen")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "parallel.zero=2")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "overlap_comm")) << outcome.err;
  outcome = run({cohort_path(), "estimate", "regressor", "--shapes"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.err, "--shapes is for rdt")) << outcome.err;
}

TEST(CliEstimate, TakesAConfigurationFileAndRefusesWhatItCannotRead) {
  const Training training;
  write_file_atomically(training.path() / "config.json", "{\"job\": \"regressor\", \"data\": {\"path\": \"" +
                                                             (training.path() / "table.csv").string() +
                                                             "\", \"columns\": {\"n_targets\": 1}}}");
  const Outcome outcome =
      run({cohort_path(), "estimate", (training.path() / "config.json").string(), "backend=cpu", "train.batch_size=8"},
          Training::variables());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "regressor: batch 8 on cpu")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "largest batch in")) << outcome.out;
  EXPECT_EQ(run({cohort_path(), "estimate"}).code, 2);
  const Outcome size = run({cohort_path(), "estimate", "regressor", "--memory=24X"});
  EXPECT_EQ(size.code, 1);
  EXPECT_TRUE(contains(size.err, "'24X' is no size of a memory")) << size.err;
  EXPECT_EQ(run({cohort_path(), "estimate", "--help"}).code, 0);
  const Outcome ppo = run({cohort_path(), "estimate", "ppo"});
  EXPECT_TRUE(contains(ppo.err, "trainings with data")) << ppo.err;
}

}  // namespace
}  // namespace cohort::testing
