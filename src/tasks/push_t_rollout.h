/// Episodes of Push-T under any policy, and the figures that are published about them.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tasks/push_t_expert.h"

namespace cohort::tasks {

/// Called once per control step, 0, 1, …; must not change what it is shown.
using PushTPolicy = std::function<PushTAction(const PushT& world, std::int64_t step)>;
/// Makes the policy of one episode. Called from several threads at a time.
using PushTPolicyMaker = std::function<PushTPolicy(std::uint32_t seed)>;

struct PushTEpisode {
  std::uint32_t seed = 0;
  std::int64_t steps = 0;
  double largest_coverage = 0;  ///< over the steps
  double largest_reward = 0;    ///< of the same steps: the score of the Diffusion Policy paper
  bool success = false;         ///< coverage above 0.95 within the steps, which ends the episode
};

/// One episode from gym-pusht's reset for `seed`. Throws what the policy throws.
PushTEpisode run_push_t(std::uint32_t seed, const PushTPolicy& policy, std::int64_t max_steps = kPushTMaxSteps);

struct PushTScore {
  std::vector<PushTEpisode> episodes;
  double mean_largest_coverage = 0;
  double mean_largest_reward = 0;
  double success_rate = 0;
  double mean_steps = 0;
};

/// Throws Error for no episodes, seeds past 4294967295, and episodes without a step.
void check_push_t_episodes(std::uint32_t first_seed, std::int64_t count, std::int64_t max_steps);

/// Episodes of seeds first_seed, first_seed + 1, …, spread over threads; the result does not depend on their number.
/// Throws what check_push_t_episodes throws, and what a policy throws first.
PushTScore score_push_t(std::uint32_t first_seed, std::int64_t count, const PushTPolicyMaker& make_policy, int threads,
                        std::int64_t max_steps = kPushTMaxSteps);

/// Acts for the episodes that have not ended, whose numbers from 0 on and worlds are given: one action each. Must not
/// change what it is shown.
using PushTBatchPolicy = std::function<std::vector<PushTAction>(std::span<const std::uint64_t> episodes,
                                                                std::span<const PushT* const> worlds)>;

/// The same episodes as score_push_t, all of them step by step together: for policies that act faster in batches.
PushTScore score_push_t_together(std::uint32_t first_seed, std::int64_t count, const PushTBatchPolicy& policy,
                                 std::int64_t max_steps = kPushTMaxSteps);

/// Lines of a table: what the columns are, and a policy's figures.
std::string push_t_table_header();
std::string push_t_table_row(const std::string& policy, const PushTScore& score);

/// The planner.
PushTPolicy make_push_t_expert(const PushTExpertSettings& settings = {});
/// A new uniform target in the world at every step.
PushTPolicy make_push_t_random(std::uint64_t seed, std::uint32_t episode);

}  // namespace cohort::tasks
