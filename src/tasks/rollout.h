/// Episodes of a task under an actor: what recording, evaluation and validation have in common.
///
///   const std::vector<EpisodeOutcome> outcomes = run_episodes(*task, *actor, seeds, {.max_steps = 200});
///
/// The environments are slots: where an episode has ended the next seed begins. An episode is a function of its seed,
/// the task and the actor, not of the slot, of how many there are, or of what runs beside it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"

namespace cohort::tasks {

class Task;
class Actor;
struct TaskSpec;

struct RolloutSettings {
  std::int64_t max_steps = 0;  ///< control steps after which an episode is cut off; 0: the task's horizon
  /// An episode ends when its goal is reached, also where the task lets it go on (end_on_success=false). Without it the
  /// task decides, as in training: one rule for evaluations, rollouts, videos and recordings.
  bool end_at_success = false;
  /// Standard deviation of what is added to each component of the executed action, but not to what observers are shown,
  /// as a share of half of the component's range: data then show how to correct errors (Laskey et al., "DART", 2017).
  /// Keyed by (noise_seed, the episode's seed, step).
  double noise = 0;
  std::uint64_t noise_seed = 0;
  std::string instruction;  ///< for the actor; empty: the task's
};

/// What became of an episode.
struct EpisodeOutcome {
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  bool success = false;           ///< the goal was reached in some step
  std::int64_t success_step = 0;  ///< the first such step, from 1 on; 0: none
  bool terminated = false;        ///< ended by itself, rather than cut off
  bool failed = false;            ///< by a fault: `fault` says which; then it is no success
  double total_reward = 0;        ///< the return, undiscounted
  double max_reward = 0;          ///< of a step
  std::vector<double> terms{};    ///< sums of the task's reward terms, in the order of its spec
  std::vector<double> metrics{};  ///< the task's, in the order of its spec: means over steps, or values at the end
  std::string fault;              ///< "step 3: the action is not finite", or empty
};

/// An episode under way: its place among the seeds, and the environment that it is in.
struct RunningEpisode {
  std::size_t episode = 0;
  std::int32_t env = 0;
};

/// Is shown what happens. Called from the thread that runs the episodes.
class RolloutObserver {
 public:
  virtual ~RolloutObserver() = default;
  /// Before a step: the task's observations and pictures are those that the actor saw; actions (n_envs, width) are what
  /// it chose.
  virtual void acting(Task&, std::span<const RunningEpisode>, ArrayView) {}
  /// After it: rewards and flags are those of the step. Episodes that it ended are among `running` for the last time.
  virtual void stepped(Task&, std::span<const RunningEpisode>) {}
  virtual void ended(const RunningEpisode&, const EpisodeOutcome&) {}
};

/// Throws Error for settings that the task's episodes cannot have: max_steps beyond its horizon, no end at all, a noise
/// that is none.
void check(const TaskSpec& spec, const RolloutSettings& settings);

/// Runs an episode for each seed and returns their outcomes in the order of the seeds. Throws Error for no seeds,
/// what check() throws, and what task, actor and observer throw.
std::vector<EpisodeOutcome> run_episodes(Task& task, Actor& actor, std::span<const std::uint64_t> seeds,
                                         const RolloutSettings& settings = {}, RolloutObserver* observer = nullptr);

/// first, first + 1, ...: `count` of them. Throws Error for none.
std::vector<std::uint64_t> consecutive_seeds(std::uint64_t first, std::int64_t count);

}  // namespace cohort::tasks
