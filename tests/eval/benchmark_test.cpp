#include "eval/benchmark.h"

#include <map>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "tasks/line_task.h"

namespace cohort::eval {
namespace {

std::vector<TaskResult> two_tasks() {
  std::vector<TaskResult> results;
  for (const char* name : {"near", "far"}) {
    testing::LineTask task(4);
    testing::LineExpert expert;
    results.push_back({.task = name, .instruction = "come near zero", .description = "{}"});
    // Seeds 3 and 10 are hopeless: the second task has one of them, the first none.
    const std::uint64_t first = results.size() == 1 ? 4 : 7;
    results.back().policies.push_back(rollout(task, expert, tasks::consecutive_seeds(first, 5), {.silent = true}));
  }
  return results;
}

TEST(Benchmark, EveryPairOfTaskAndEpisodeIsOneRanks) {
  const auto seeds = tasks::consecutive_seeds(100, 5);
  for (const int world : {1, 2, 3, 7}) {
    std::map<std::pair<std::size_t, std::uint64_t>, int> taken;
    std::size_t most = 0, least = 100;
    for (int rank = 0; rank < world; ++rank) {
      std::size_t of_rank = 0;
      for (std::size_t task = 0; task < 4; ++task)
        for (const std::uint64_t seed : share_of(seeds, task, rank, world)) ++taken[{task, seed}], ++of_rank;
      most = std::max(most, of_rank), least = std::min(least, of_rank);
    }
    EXPECT_EQ(taken.size(), 20u) << world;
    for (const auto& [pair, times] : taken) EXPECT_EQ(times, 1);
    EXPECT_LE(most - least, 1u) << "of " << world << " ranks none has two more than another";
  }
}

TEST(Benchmark, TheTableHasALinePerTaskAndOneForAll) {
  const std::vector<TaskResult> results = two_tasks();
  const BenchmarkHead head{
      .benchmark = "lines", .tasks_of_benchmark = 9, .first_seed = 4, .episodes = 5, .max_steps = 40};
  EXPECT_EQ(over_all(results, 0).successes(), 9);
  const std::string text = text_table(head, results);
  EXPECT_NE(text.find("5 of 5"), std::string::npos) << text;
  EXPECT_NE(text.find("4 of 5"), std::string::npos) << text;
  EXPECT_NE(text.find("lines, 2 of 9 tasks"), std::string::npos) << text;
  EXPECT_NE(text.find("9 of 10"), std::string::npos) << text;
  const config::Json json = to_json(head, results);
  EXPECT_DOUBLE_EQ(json.at("policies").at(0).at("success_rate").get<double>(), 0.9);
  EXPECT_DOUBLE_EQ(json.at("policies").at(0).at("mean_of_tasks").get<double>(), 0.9);
  EXPECT_NEAR(json.at("policies").at(0).at("interval").at(0).get<double>(), wilson_interval(9, 10).low, 1e-12);
  EXPECT_EQ(json.at("task"), "lines, 2 of 9 tasks");
  EXPECT_EQ(json.at("tasks").at(1).at("instruction"), "come near zero");
  EXPECT_EQ(json.at("tasks").at(1).at("policies").at(0).at("table").size(), 5u);
  const std::string csv = csv_table(head, results);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 11);
  EXPECT_EQ(csv.find("benchmark,task,policy,seed,"), 0u);
}

TEST(Benchmark, VariantsHaveALinePerPerturbationWithItsOwnInterval) {
  std::vector<TaskResult> results = two_tasks(), more = two_tasks();
  results.insert(results.end(), more.begin(), more.end());
  results[0].perturbation = results[3].perturbation = "camera", results[1].perturbation = "light";
  const BenchmarkHead head{
      .benchmark = "lines", .tasks_of_benchmark = 9, .first_seed = 4, .episodes = 5, .max_steps = 40};
  const auto groups = by_perturbation(results);
  ASSERT_EQ(groups.size(), 2u);  // the third task is no variant
  EXPECT_EQ(groups[0].first, "camera");
  EXPECT_EQ(groups[0].second.size(), 2u);
  const config::Json json = to_json(head, results), &camera = json.at("perturbations").at(0);
  EXPECT_EQ(camera.at("tasks"), 2);
  EXPECT_EQ(camera.at("policies").at(0).at("episodes"), 10);
  EXPECT_EQ(camera.at("policies").at(0).at("successes"), 9);
  EXPECT_NEAR(camera.at("policies").at(0).at("interval").at(1).get<double>(), wilson_interval(9, 10).high, 1e-12);
  EXPECT_EQ(json.at("perturbations").at(1).at("policies").at(0).at("successes"), 4);
  EXPECT_EQ(json.at("tasks").at(1).at("perturbation"), "light");
  const std::string text = text_table(head, results);
  EXPECT_NE(text.find("camera, 2 tasks"), std::string::npos) << text;
  EXPECT_NE(text.find("light, 1 task "), std::string::npos) << text;
  EXPECT_FALSE(to_json(head, two_tasks()).contains("perturbations"));
}

}  // namespace
}  // namespace cohort::eval
