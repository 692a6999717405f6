/// Evaluation of actors in a task: success with its interval, returns, one row per episode.
///
///   const auto task = tasks::make_task("push-t", {.n_envs = 50});
///   const PolicyResult result = eval::rollout(*task, *actor, tasks::consecutive_seeds(0, 50), {});
///   std::puts(text_table({result}).c_str());
///
/// The same seeds give the same rows for any number of environments, threads and ranks.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "eval/success.h"
#include "tasks/rollout.h"
#include "tasks/task.h"

namespace cohort::dist {
class Group;
}

namespace cohort::eval {

struct EvaluationSettings {
  std::int64_t max_steps = 0;    ///< of an episode; 0: the task's horizon
  bool end_at_success = false;   ///< tasks::RolloutSettings::end_at_success
  dist::Group* group = nullptr;  ///< the ranks that share the episodes; null: this process runs all
  bool silent = false;           ///< no progress bar
};

struct PolicyResult {
  std::string policy;  ///< Actor::name()
  std::vector<tasks::EpisodeOutcome> episodes;
  std::vector<std::string> terms;          ///< of the task's reward
  std::vector<float> best_of_term;         ///< TaskSpec::reward_best
  std::vector<tasks::MetricSpec> metrics;  ///< of the task's spec
  double seconds = 0;                      ///< that the rollout took, of the slowest rank; no part of the table's files

  std::int64_t successes() const;
  std::int64_t faults() const;
  double success_rate() const;
  Interval interval() const;
  double mean_return() const;
  double mean_max_reward() const;
  double mean_steps() const;
  /// Of a reward term, over all steps: its mean, and that as a share of the most it can be (0 where that is unknown).
  double mean_of_term(std::size_t term) const;
  double share_of_term(std::size_t term) const;
  /// Of a metric: its mean over all steps, or over the ends of the episodes.
  double mean_of_metric(std::size_t metric) const;
  /// Episodes that ended by themselves without success: falls, collisions and the like.
  std::int64_t ended_early() const;
};

/// An episode for each seed. With a group every rank calls it, runs every world_size-th episode, and gets all rows.
/// Throws what run_episodes throws.
PolicyResult rollout(tasks::Task& task, tasks::Actor& actor, std::span<const std::uint64_t> seeds,
                     const EvaluationSettings& settings);

/// An episode as the files have it, and back.
config::Json to_json(const tasks::EpisodeOutcome& episode);
tasks::EpisodeOutcome episode_from_json(const config::Json& row);
/// A text as a field of a CSV line (RFC 4180).
std::string csv_field(const std::string& text);

/// What was evaluated, for the files.
struct EvaluationHead {
  std::string task;
  std::string description;  ///< JSON: Task::description()
  std::uint64_t first_seed = 0;
  std::int64_t max_steps = 0;
};

/// For people: a line per policy.
std::string text_table(std::span<const PolicyResult> results);
/// A line per episode: policy,seed,success,steps,return,max_reward,fault, then the task's metrics by name.
std::string csv_table(std::span<const PolicyResult> results);
/// {"task", "settings", "first_seed", "max_steps", "policies": [{"policy", "successes", "episodes", "success_rate",
/// "interval", "mean_return", "mean_max_reward", "mean_steps", "faults", "ended_early", "reward_terms":
/// {name: {"mean_of_step", "share_of_best"}}, "metrics": {name: mean}, "table": [...]}]}
config::Json to_json(const EvaluationHead& head, std::span<const PolicyResult> results);

}  // namespace cohort::eval
