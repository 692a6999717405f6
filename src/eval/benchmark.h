/// Evaluation over the tasks of a benchmark: a table by task and for the whole, with intervals.
///
///   for (std::size_t t = 0; t < tasks; ++t)
///     results[t].policies.push_back(rollout(*task, *actor, share_of(seeds, t, rank, world), {}));
///   merge_ranks(results, seeds, *group);
///   std::puts(text_table(head, results).c_str());
///
/// Pairs of task and episode go round the ranks; the tables are the same for any number of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "eval/evaluation.h"

namespace cohort::eval {

struct BenchmarkHead {
  std::string benchmark;
  int tasks_of_benchmark = 0;  ///< how many it has, of which some may be evaluated
  std::uint64_t first_seed = 0;
  std::int64_t episodes = 0;   ///< of each task
  std::int64_t max_steps = 0;  ///< of an episode
};

struct TaskResult {
  std::string task, instruction;
  std::string perturbation{};          ///< what a variant's task changes; empty: nothing
  std::string description;             ///< JSON: Task::description()
  std::vector<PolicyResult> policies;  ///< empty on a rank that has no episode of it, before merge_ranks()
};

/// The seeds of those episodes of a task that are a rank's.
std::vector<std::uint64_t> share_of(std::span<const std::uint64_t> seeds, std::size_t task, int rank, int world_size);

/// Gives every rank all episodes, in the order of the seeds. On every rank; `results` has the benchmark's tasks in the same
/// order, all or the first of them: afterwards it has those that all ranks had.
void merge_ranks(std::vector<TaskResult>& results, std::span<const std::uint64_t> seeds, dist::Group& group);

/// A policy over all tasks: its episodes one after another.
PolicyResult over_all(std::span<const TaskResult> results, std::size_t policy);

/// The tasks of each perturbation, in the order in which they first appear; none where no task has one.
std::vector<std::pair<std::string, std::vector<TaskResult>>> by_perturbation(std::span<const TaskResult> results);

/// For people: a line per task and policy, then one per perturbation and policy, then one per policy over all.
std::string text_table(const BenchmarkHead& head, std::span<const TaskResult> results);
/// A line per episode: benchmark,task,policy,seed,success,steps,return,max_reward,fault.
std::string csv_table(const BenchmarkHead& head, std::span<const TaskResult> results);
/// {"task", "benchmark", "tasks_of_benchmark", "first_seed", "episodes", "max_steps", "policies": [{"policy", "successes",
/// "episodes", "success_rate", "interval", "mean_of_tasks"}], "tasks": [{"instruction", and what to_json() says of a
/// task}]}; where tasks are variants "perturbations": [{"perturbation", "tasks": their number, "policies": as above}], and
/// each such task's "perturbation".
config::Json to_json(const BenchmarkHead& head, std::span<const TaskResult> results);

}  // namespace cohort::eval
