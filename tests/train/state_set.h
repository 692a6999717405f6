/// A small RLDS set of states without images, written by our own writer: a point walks to a goal. What is wrong with
/// it, if anything, is a setting.
#pragma once
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/format.h"
#include "core/philox.h"
#include "data/rlds/example.h"
#include "data/rlds/rlds_writer.h"

namespace cohort::testing {

struct StateSet {
  std::string name = "reach";
  std::string observation = "state";  ///< below "observation/"
  int episodes = 10, steps = 16;
  int nan_episode = -1;        ///< its action at step 3 is NaN
  int empty_episode = -1;      ///< has no steps
  bool constant_goal = false;  ///< an element of the action never changes
  std::int64_t shard_bytes = 256 << 20;
};

/// The demonstrator: a share of the way to the goal. state (5): position, goal, distance; all in pixels of a board of
/// 512.
inline std::vector<float> walked(const std::vector<float>& state) {
  return {0.7f * state[0] + 0.3f * state[2], 0.7f * state[1] + 0.3f * state[3]};
}

/// A start: position and goal uniform on the board.
inline std::vector<float> start_state(std::uint64_t seed, std::uint64_t number) {
  const RandomStream random(seed, RandomPurpose::kAugmentation, number, 0);
  std::vector<float> state;
  for (std::uint64_t i = 0; i < 4; ++i) state.push_back(512.0f * static_cast<float>(random.uniform(i)));
  state.push_back(std::hypot(state[0] - state[2], state[1] - state[3]));
  return state;
}

/// After an action, which says where the point is next.
inline std::vector<float> next_state(const std::vector<float>& state, float x, float y) {
  return {x, y, state[2], state[3], std::hypot(x - state[2], y - state[3])};
}

/// Returns the folder that train.data_path or data.paths names, with the set `name` in it.
inline std::filesystem::path write_state_set(const std::filesystem::path& folder, const StateSet& set) {
  using namespace cohort::data;
  RldsWriter writer(
      folder,
      make_dict(
          {{"steps", make_steps(make_dict({{"observation", make_dict({{set.observation, make_tensor("float32", {5})}})},
                                           {"action", make_tensor("float32", {2})},
                                           {"is_first", make_tensor("bool", {})},
                                           {"is_last", make_tensor("bool", {})}}))}}),
      {.name = set.name, .shard_bytes = set.shard_bytes});
  for (int e = 0; e < set.episodes; ++e) {
    std::vector<float> states, actions, state = start_state(1, static_cast<std::uint64_t>(e));
    std::vector<std::int64_t> first, last;
    const int steps = e == set.empty_episode ? 0 : set.steps;
    for (int t = 0; t < steps; ++t) {
      std::vector<float> action = walked(state);
      states.insert(states.end(), state.begin(), state.end());
      state = next_state(state, action[0], action[1]);
      if (e == set.nan_episode && t == 3) action[1] = std::numeric_limits<float>::quiet_NaN();
      if (set.constant_goal) action[0] = 7.0f;
      actions.insert(actions.end(), action.begin(), action.end());
      first.push_back(t == 0);
      last.push_back(t == steps - 1);
    }
    ExampleWriter example;
    example.add("steps/observation/" + set.observation, states);
    example.add("steps/action", actions);
    example.add("steps/is_first", first);
    example.add("steps/is_last", last);
    writer.add(example.finish());
  }
  writer.finish();
  return folder;
}

}  // namespace cohort::testing
