// Episodes of a task under an actor, for the tests of the suite.
#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "tasks/actor.h"
#include "tasks/registry.h"

namespace cohort::tasks {

struct SuiteEpisode {
  bool success = false, broken = false;
  int steps = 0;
  double reward = 0;
  std::vector<float> actions;
};

/// One episode of each seed, all at once; without an actor the task's expert acts.
inline std::vector<SuiteEpisode> roll_out(Task& task, const std::vector<std::uint64_t>& seeds, Actor* actor = nullptr) {
  const int n = task.n_envs();
  std::unique_ptr<Actor> expert;
  if (!actor) expert = task.make_expert(0), actor = expert.get();
  std::vector<std::int32_t> envs(static_cast<std::size_t>(n));
  std::iota(envs.begin(), envs.end(), 0);
  task.reset(envs, seeds);
  actor->begin(envs, seeds, task.spec().instruction);
  const std::int64_t width = task.spec().action.width();
  std::vector<float> actions(static_cast<std::size_t>(n * width));
  std::vector<SuiteEpisode> episodes(seeds.size());
  std::vector<bool> over(seeds.size());
  for (std::int64_t step = 0; step < task.spec().horizon; ++step) {
    actor->act(task, envs, make_view(actions.data(), {n, width}));
    task.step(make_view(actions.data(), {n, width}));
    for (std::size_t e = 0; e < seeds.size(); ++e) {
      if (over[e]) continue;
      SuiteEpisode& episode = episodes[e];
      ++episode.steps;
      episode.reward += static_cast<double>(task.reward().span<float>()[e]);
      episode.success = task.success().span<std::uint8_t>()[e] != 0;
      episode.broken = task.broken().span<std::uint8_t>()[e] != 0;
      const auto row = actions.begin() + static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(e) * width);
      episode.actions.insert(episode.actions.end(), row, row + width);
      over[e] = episode.success || task.terminated().span<std::uint8_t>()[e];
    }
  }
  return episodes;
}

inline std::vector<std::uint64_t> seeds_from(std::uint64_t first, int count) {
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(count));
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

}  // namespace cohort::tasks
