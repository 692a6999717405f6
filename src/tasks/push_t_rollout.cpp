#include "tasks/push_t_rollout.h"

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/philox.h"
#include "core/threads.h"

namespace cohort::tasks {

PushTEpisode run_push_t(std::uint32_t seed, const PushTPolicy& policy, std::int64_t max_steps) {
  PushT world;
  world.reset(seed);
  PushTEpisode episode;
  episode.seed = seed;
  while (episode.steps < max_steps && !episode.success) {
    const PushTStep result = world.step(policy(world, episode.steps));
    ++episode.steps;
    episode.largest_reward = std::max(episode.largest_reward, result.reward);
    episode.success = result.success;
  }
  return episode;
}

PushTScore score_push_t(std::uint32_t first_seed, std::int64_t count, const PushTPolicyMaker& make_policy, int threads,
                        std::int64_t max_steps) {
  COHORT_THROW_UNLESS(count >= 1 && count <= std::int64_t{0xFFFFFFFF} - first_seed + 1,
                      "Push-T: {} episodes from seed {} on; at least 1 is needed, and seeds end at 4294967295", count,
                      first_seed);
  PushTScore score;
  score.episodes.resize(static_cast<std::size_t>(count));
  parallel_for(count, threads, [&](std::int64_t i) {
    const auto seed = static_cast<std::uint32_t>(first_seed + i);
    score.episodes[static_cast<std::size_t>(i)] = run_push_t(seed, make_policy(seed), max_steps);
  });
  const auto share = 1.0 / static_cast<double>(count);
  for (const PushTEpisode& episode : score.episodes) {
    score.mean_largest_reward += share * episode.largest_reward;
    score.success_rate += share * (episode.success ? 1.0 : 0.0);
    score.mean_steps += share * static_cast<double>(episode.steps);
  }
  return score;
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
