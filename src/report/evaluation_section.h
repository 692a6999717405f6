/// Evaluations in a report: tables of success and videos, from the evaluation.json that `cohort evaluate --out` writes
/// into a folder of the run.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cohort::report {

struct EvaluatedPolicy {
  std::string policy;
  std::int64_t successes = 0, episodes = 0, faults = 0;
  double rate = 0, low = 0, high = 0;  ///< with its 95 % interval
  double mean_return = 0, mean_max_reward = 0, mean_steps = 0;
  std::vector<std::pair<std::string, double>> metrics;  ///< the task's own, by name; NaN: no episode has a value
};

struct EvaluationVideo {
  std::string policy;
  std::uint64_t seed = 0;
  bool success = false;
  std::filesystem::path file;
};

struct SavedEvaluation {
  std::filesystem::path file;
  std::string task;
  std::uint64_t first_seed = 0;
  std::int64_t max_steps = 0;
  std::int64_t tasks = 0;     ///< of a benchmark; 0: the evaluation is of one task and no benchmark
  std::int64_t episodes = 0;  ///< of each task; the policies' are over all of them
  std::vector<EvaluatedPolicy> policies;
  std::vector<EvaluationVideo> videos;
  std::filesystem::path page;  ///< that plays its best and its worst episode; empty: none
};

/// All evaluation.json in the folder and in the folders right below it, by path. A file that is none is a warning in
/// the log.
std::vector<SavedEvaluation> read_evaluations(const std::filesystem::path& folder);

/// "100 episodes from seed 0 on"; of a benchmark "10 tasks, of each 20 episodes from seed 0 on".
std::string episodes_of(const SavedEvaluation& evaluation);

/// The rows of a table: policy, succeeded, rate, interval, return, largest reward, steps, faults, and a column for each of
/// the tasks' own metrics that a policy has. `runs`: a first column; empty: none.
std::string success_table(const std::vector<EvaluatedPolicy>& policies, const std::vector<std::string>& runs = {});

/// <video> elements with paths relative to the page's folder.
std::string video_gallery(const std::vector<EvaluationVideo>& videos, const std::filesystem::path& page_folder);

/// What evaluations of the folder say of its policy, for the head of a report: {"success in pick-and-place, 100 episodes",
/// "94.0 % (87.5 to 97.2)"}. Experts, random actions and replays beside it are none.
std::vector<std::pair<std::string, std::string>> success_tiles(const std::filesystem::path& folder);

/// A page that plays episodes, in a frame without rights but that to run its script; "" where there is none.
std::string episode_frame(const std::filesystem::path& page, const std::filesystem::path& page_folder);

/// A section for each evaluation of the folder; "" where there are none.
std::string evaluation_sections(const std::filesystem::path& folder, const std::filesystem::path& page_folder);

}  // namespace cohort::report
