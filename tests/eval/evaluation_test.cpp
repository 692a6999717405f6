#include "eval/evaluation.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "eval/episode_video.h"
#include "eval/video_files.h"
#include "render/video.h"
#include "support/fresh_folder.h"
#include "tasks/line_task.h"

namespace cohort::eval {
namespace {

using testing::LineExpert;
using testing::LineTask;

TEST(WilsonInterval, IsTheOneOfStatsmodels) {
  // statsmodels.stats.proportion.proportion_confint(k, n, method="wilson"), version 0.15.0.
  struct Case {
    std::int64_t successes, trials;
    double low, high;
  };
  for (const Case& c : {Case{0, 10, 0.0, 0.27753279986288926}, Case{41, 50, 0.692039463256992, 0.902298073297658},
                        Case{50, 50, 0.9286524008666412, 1.0}, Case{1, 3, 0.06149194472039626, 0.7923403991979523}}) {
    const Interval interval = wilson_interval(c.successes, c.trials);
    EXPECT_NEAR(interval.low, c.low, 1e-12) << c.successes << " of " << c.trials;
    EXPECT_NEAR(interval.high, c.high, 1e-12) << c.successes << " of " << c.trials;
  }
  EXPECT_THROW(wilson_interval(0, 0), Error);
}

TEST(Evaluation, TheTableIsTheSameForAnyNumberOfEnvironments) {
  const auto seeds = tasks::consecutive_seeds(0, 20);
  std::string csv;
  for (const int n : {1, 3, 20, 33}) {
    LineTask task(n);
    LineExpert expert;
    const PolicyResult result[] = {rollout(task, expert, seeds, {.silent = true})};
    if (csv.empty()) csv = csv_table(result);
    EXPECT_EQ(csv_table(result), csv) << n;
  }
}

TEST(VideoFiles, OnlyWhatATableListsUnderAnEvaluationsNameBelowItsFolderBelongsToIt) {
  namespace fs = std::filesystem;
  const fs::path folder = test::fresh_folder("video_files"), table = folder / "out" / "evaluation.json";
  fs::create_directories(folder / "out" / "videos");
  EXPECT_EQ(video_name("runs/a b", 3, true), "runs-a-b_seed-3_success.mp4");
  const auto list = [&](const std::vector<std::string>& files) {
    nlohmann::json videos = nlohmann::json::array();
    for (const std::string& file : files)
      videos.push_back({{"policy", "a"}, {"seed", 3}, {"success", true}, {"file", file}});
    write_file_atomically(table, json_text(nlohmann::json{{"videos", videos}}));
  };
  EXPECT_TRUE(videos_of_table(table).empty());
  for (const char* file : {"out/videos/a_seed-3_success.mp4", "out/videos/mine.mp4", "a_seed-3_success.mp4"})
    write_file_atomically(folder / file, "x");
  fs::create_symlink(folder / "a_seed-3_success.mp4", folder / "out" / "a_seed-3_success.mp4");
  list({"videos/a_seed-3_success.mp4", "videos/mine.mp4", "../a_seed-3_success.mp4", "a_seed-3_success.mp4",
        "gone/a_seed-3_success.mp4", (folder / "a_seed-3_success.mp4").string()});
  EXPECT_EQ(videos_of_table(table), std::vector<fs::path>{folder / "out" / "videos" / "a_seed-3_success.mp4"});
  write_file_atomically(table, R"({"videos": [{"file": 4}]})");
  EXPECT_TRUE(videos_of_table(table).empty()) << "another program's";
}

/// Takes longer over an action than a bar takes to be drawn anew.
class SlowExpert final : public tasks::Actor {
 public:
  std::string name() const override { return "slow"; }
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
             const std::string& text) override {
    expert_.begin(envs, seeds, text);
  }
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    expert_.act(task, envs, actions);
  }

 private:
  LineExpert expert_;
};

TEST(Evaluation, ItsBarMovesBeforeTheFirstEpisodeHasEnded) {
  winsize size{.ws_row = 24, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0};
  int master = -1, terminal = -1;
  ASSERT_EQ(::openpty(&master, &terminal, nullptr, nullptr, &size), 0);
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  const int own = ::dup(2);
  ::dup2(terminal, 2);
  LineTask task(2);
  SlowExpert expert;
  // Seed 3 is hopeless: both episodes go to the last step.
  const std::uint64_t seeds[] = {3, 10};
  const PolicyResult result = rollout(task, expert, seeds, {.max_steps = 4});
  ::dup2(own, 2);
  ::close(own), ::close(terminal);
  std::string shown;
  char buffer[4096];
  for (ssize_t n; (n = ::read(master, buffer, sizeof buffer)) > 0;) shown.append(buffer, static_cast<std::size_t>(n));
  ::close(master);
  EXPECT_EQ(result.successes(), 0);
  for (const char* text : {"success 0/0", "steps 2", "steps 4"})
    EXPECT_NE(shown.find(text), std::string::npos) << text << "\n" << shown;
}

TEST(Evaluation, FiguresAreMeansOverTheEpisodesAndTheFilesHoldEveryOne) {
  LineTask task(4);
  LineExpert expert;
  const PolicyResult results[] = {rollout(task, expert, tasks::consecutive_seeds(0, 14), {.silent = true})};
  EXPECT_EQ(results[0].successes(), 12) << "seeds 3 and 10 are hopeless";
  EXPECT_DOUBLE_EQ(results[0].success_rate(), 12.0 / 14);
  double sum = 0;
  for (const auto& e : results[0].episodes) sum += e.total_reward / 14;
  EXPECT_NEAR(results[0].mean_return(), sum, 1e-12);
  const auto json = to_json({"line", task.description(), 0, 40}, results);
  EXPECT_EQ(json.at("policies").at(0).at("table").size(), 14u);
  EXPECT_EQ(json.at("policies").at(0).at("table").at(3).at("success"), false);
  EXPECT_EQ(json.at("settings").at("engine"), "none");
  const std::string csv = csv_table(results);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 15);
  EXPECT_NE(text_table(results).find("12 of 14"), std::string::npos);
}

TEST(Evaluation, AMetricIsAMeanOverStepsOrOverEndsAndRanksExchangeIt) {
  tasks::EpisodeOutcome brief, lengthy, failed;
  brief.seed = 1, brief.steps = 10, brief.metrics = {0.5, 3};
  lengthy.seed = 2, lengthy.steps = 30, lengthy.metrics = {0.9, 5};
  failed.seed = 3, failed.steps = 1, failed.failed = true, failed.fault = "step 1: the action is not finite";
  EXPECT_EQ(episode_from_json(to_json(lengthy)).metrics, lengthy.metrics);
  failed.metrics = {std::nan("")};
  EXPECT_TRUE(std::isnan(episode_from_json(parse_json<config::Json>(json_text(to_json(failed)))).metrics.at(0)));
  failed.metrics.clear();
  PolicyResult result{.policy = "mine", .episodes = {brief, lengthy, failed}};
  result.metrics = {{.name = "tracking"}, {.name = "height, at the end", .at_end = true}};
  EXPECT_DOUBLE_EQ(result.mean_of_metric(0), (10 * 0.5 + 30 * 0.9) / 40);
  EXPECT_DOUBLE_EQ(result.mean_of_metric(1), 4);
  const PolicyResult results[] = {result};
  EXPECT_NE(text_table(results).find("metrics: tracking 0.8, height, at the end 4\n"), std::string::npos)
      << text_table(results);
  EXPECT_DOUBLE_EQ(to_json({"task", "{}", 0, 40}, results).at("policies").at(0).at("metrics").at("tracking"), 0.8);
  EXPECT_EQ(csv_table(results),
            "policy,seed,success,steps,return,max_reward,fault,tracking,\"height, at the end\"\n"
            "mine,1,0,10,0,0,,0.5,3\nmine,2,0,30,0,0,,0.9,5\n"
            "mine,3,0,1,0,0,step 1: the action is not finite,,\n");
}

/// Comes near 0 at another speed in every episode that it begins: no function of the episode.
class Forgetful final : public tasks::Actor {
 public:
  std::string name() const override { return "forgetful"; }
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t>, const std::string&) override {
    begun_ += static_cast<int>(envs.size());
  }
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    const auto x = task.observation(0).span<float>(), rows = actions.span<float>();
    for (const std::int32_t env : envs) {
      const auto e = static_cast<std::size_t>(env);
      rows[e] = (x[e] < 0 ? 1.0f : -1.0f) / static_cast<float>(begun_);
    }
  }

 private:
  int begun_ = 0;
};

TEST(Video, WhatDoesNotReplayIsNamedAndFilmedAllTheSame) {
  LineTask task(1, 40, 32, 32);
  if (!render::video_unavailable().empty()) GTEST_SKIP() << render::video_unavailable();
  const std::filesystem::path folder = test::fresh_folder("videos");
  // A seed that begins far from 0, without wind.
  std::uint64_t seed = 0;
  while (std::abs(2 * RandomStream(5, RandomPurpose::kTest, seed, 0).uniform(0) - 1) < 0.7f || seed % 7 == 3) ++seed;
  Forgetful actor;
  const PolicyResult counted = rollout(task, actor, tasks::consecutive_seeds(seed, 1), {.silent = true});
  ASSERT_EQ(counted.successes(), 1);
  ::testing::internal::CaptureStderr();
  std::vector<EpisodeVideo> videos;
  for (int i = 0; i < 8; ++i) videos = write_videos(task, actor, counted, folder, {});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("does not replay; see `cohort tasks line --check`"), std::string::npos) << said;
  ASSERT_EQ(videos.size(), 1u);
  EXPECT_FALSE(videos[0].success) << "nine times as slow it does not arrive";
  EXPECT_NE(videos[0].file.string().find("_failure"), std::string::npos) << videos[0].file;
  EXPECT_GT(std::filesystem::file_size(videos[0].file), 0u);
}

TEST(Evaluation, APolicyThatReturnsNanFailsItsEpisodeAndTheTableSaysSo) {
  LineTask task(4);
  LineExpert sick(0);
  const PolicyResult results[] = {rollout(task, sick, tasks::consecutive_seeds(0, 8), {.silent = true})};
  EXPECT_EQ(results[0].faults(), 4);
  EXPECT_EQ(results[0].successes(), 4);
  EXPECT_NE(text_table(results).find("4 episodes failed by a fault; seed 1: step 1: the action is not finite"),
            std::string::npos)
      << text_table(results);
  EXPECT_NE(csv_table(results).find("expert,1,0,1,0,0,step 1: the action is not finite"), std::string::npos)
      << csv_table(results);
}

TEST(Evaluation, NoEpisodesAreRefused) {
  LineTask task(4);
  LineExpert expert;
  EXPECT_THROW(rollout(task, expert, {}, {.silent = true}), Error);
}

}  // namespace
}  // namespace cohort::eval
