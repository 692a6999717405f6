#include "tasks/push_t_rollout.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/philox.h"
#include "core/threads.h"

namespace cohort::tasks {
namespace {

void add(PushTEpisode& episode, const PushTStep& result) {
  ++episode.steps;
  episode.largest_coverage = std::max(episode.largest_coverage, result.coverage);
  episode.largest_reward = std::max(episode.largest_reward, result.reward);
  episode.success = result.success;
}

/// Fills the means.
PushTScore score_of(std::vector<PushTEpisode> episodes) {
  PushTScore score;
  const auto share = 1.0 / static_cast<double>(episodes.size());
  for (const PushTEpisode& episode : episodes) {
    score.mean_largest_coverage += share * episode.largest_coverage;
    score.mean_largest_reward += share * episode.largest_reward;
    score.success_rate += share * (episode.success ? 1.0 : 0.0);
    score.mean_steps += share * static_cast<double>(episode.steps);
  }
  score.episodes = std::move(episodes);
  return score;
}

}  // namespace

void check_push_t_episodes(std::uint32_t first_seed, std::int64_t count, std::int64_t max_steps) {
  COHORT_THROW_UNLESS(count >= 1 && count <= std::int64_t{0xFFFFFFFF} - first_seed + 1,
                      "Push-T: {} episodes from seed {} on; at least 1 is needed, and seeds end at 4294967295", count,
                      first_seed);
  COHORT_THROW_UNLESS(max_steps >= 1, "Push-T: episodes of {} steps; at least 1 is needed", max_steps);
}

PushTEpisode run_push_t(std::uint32_t seed, const PushTPolicy& policy, std::int64_t max_steps) {
  PushT world;
  world.reset(seed);
  PushTEpisode episode;
  episode.seed = seed;
  while (episode.steps < max_steps && !episode.success) add(episode, world.step(policy(world, episode.steps)));
  return episode;
}

PushTScore score_push_t(std::uint32_t first_seed, std::int64_t count, const PushTPolicyMaker& make_policy, int threads,
                        std::int64_t max_steps) {
  check_push_t_episodes(first_seed, count, max_steps);
  std::vector<PushTEpisode> episodes(static_cast<std::size_t>(count));
  parallel_for(count, threads, [&](std::int64_t i) {
    const auto seed = static_cast<std::uint32_t>(first_seed + i);
    episodes[static_cast<std::size_t>(i)] = run_push_t(seed, make_policy(seed), max_steps);
  });
  return score_of(std::move(episodes));
}

PushTScore score_push_t_together(std::uint32_t first_seed, std::int64_t count, const PushTBatchPolicy& policy,
                                 std::int64_t max_steps) {
  check_push_t_episodes(first_seed, count, max_steps);
  std::vector<PushT> worlds(static_cast<std::size_t>(count));
  std::vector<PushTEpisode> episodes(worlds.size());
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    episodes[i].seed = static_cast<std::uint32_t>(first_seed + i);
    worlds[i].reset(episodes[i].seed);
  }
  for (std::int64_t step = 0; step < max_steps; ++step) {
    std::vector<std::uint64_t> running;
    std::vector<const PushT*> shown;
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      if (episodes[i].success) continue;
      running.push_back(i);
      shown.push_back(&worlds[i]);
    }
    if (running.empty()) break;
    const std::vector<PushTAction> actions = policy(running, shown);
    COHORT_CHECK(actions.size() == running.size(), "{} actions for {} episodes", actions.size(), running.size());
    for (std::size_t k = 0; k < running.size(); ++k) add(episodes[running[k]], worlds[running[k]].step(actions[k]));
  }
  return score_of(std::move(episodes));
}

std::string push_t_table_header() {
  return format("{:<8} {:>16} {:>14} {:>12} {:>10}", "policy", "largest coverage", "largest reward", "success rate",
                "mean steps");
}

std::string push_t_table_row(const std::string& policy, const PushTScore& score) {
  return format("{:<8} {:>16.3f} {:>14.3f} {:>12.3f} {:>10.1f}", policy, score.mean_largest_coverage,
                score.mean_largest_reward, score.success_rate, score.mean_steps);
}

PushTPolicy make_push_t_expert(const PushTExpertSettings& settings) {
  const auto expert = std::make_shared<PushTExpert>(settings);
  return [expert](const PushT& world, std::int64_t step) {
    if (step == 0) expert->restart();
    return expert->act(world.situation());
  };
}

PushTPolicy make_push_t_random(std::uint64_t seed, std::uint32_t episode) {
  return [seed, episode](const PushT&, std::int64_t step) {
    const RandomStream random(seed, RandomPurpose::kAction, episode, static_cast<std::uint64_t>(step));
    return PushTAction{kPushTWorld * random.uniform(0), kPushTWorld * random.uniform(1)};
  };
}

}  // namespace cohort::tasks
