#include "record/push_t_replay.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"

namespace cohort::record {
namespace {

constexpr std::size_t kFeatures = 18;  // the agent's place, then the T's eight corners
using Features = std::array<float, kFeatures>;

/// In px, the agent's place weighted so that it counts as much as all corners together.
Features features_of(const tasks::PushTState& state) {
  constexpr double kAgentWeight = 2.8284271247461903;  // the root of eight
  Features out{};
  out[0] = static_cast<float>(kAgentWeight * state[0]);
  out[1] = static_cast<float>(kAgentWeight * state[1]);
  const tasks::PushTPose pose = {{state[2], state[3]}, state[4]};
  for (std::size_t i = 0; i < 8; ++i) {
    const tasks::Point2 corner = tasks::to_world(pose, tasks::push_t_outline()[i]);
    out[2 + 2 * i] = static_cast<float>(corner.x);
    out[3 + 2 * i] = static_cast<float>(corner.y);
  }
  return out;
}

}  // namespace

struct PushTReplay::Memory {
  std::vector<Features> features;
  std::vector<tasks::PushTAction> actions;
  std::vector<std::size_t> episode_end;  ///< of the step's episode, one beyond its last step

  std::size_t nearest(const Features& wanted) const {
    std::size_t best = 0;
    float best_distance = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < features.size(); ++i) {
      float distance = 0;
      for (std::size_t k = 0; k < kFeatures; ++k) {
        const float d = features[i][k] - wanted[k];
        distance += d * d;
      }
      if (distance < best_distance) {
        best = i;
        best_distance = distance;
      }
    }
    return best;
  }
};

PushTReplay::PushTReplay(const data::EpisodeSource& source) {
  const std::size_t state_field = source.field_index("observation/state"), action_field = source.field_index("action");
  const auto require_width = [&](std::size_t field, std::int64_t width) {
    const data::StepField& f = source.fields()[field];
    COHORT_THROW_UNLESS(f.kind == data::StepKind::kNumber && f.elements() == width,
                        "{}: {} is not a field of {} numbers, as Push-T's is", source.name(), f.name, width);
  };
  require_width(state_field, 5);
  require_width(action_field, 2);
  auto memory = std::make_shared<Memory>();
  for (std::int64_t e = 0; e < source.size(); ++e) {
    const auto episode = source.open(e);
    const std::int64_t steps = episode->steps();
    std::vector<double> states(static_cast<std::size_t>(5 * steps)), actions(static_cast<std::size_t>(2 * steps));
    episode->read(state_field, 0, steps, std::span(states));
    episode->read(action_field, 0, steps, std::span(actions));
    const std::size_t end = memory->actions.size() + static_cast<std::size_t>(steps);
    for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
      tasks::PushTState state{};
      std::copy_n(states.begin() + static_cast<std::ptrdiff_t>(5 * t), 5, state.begin());
      memory->features.push_back(features_of(state));
      memory->actions.push_back({actions[2 * t], actions[2 * t + 1]});
      memory->episode_end.push_back(end);
    }
  }
  COHORT_THROW_UNLESS(!memory->actions.empty(), "{}: there is no step to replay", source.name());
  memory_ = std::move(memory);
}

std::int64_t PushTReplay::size() const {
  return static_cast<std::int64_t>(memory_->actions.size());
}

tasks::PushTPolicy PushTReplay::policy(std::int64_t horizon) const {
  COHORT_THROW_UNLESS(horizon >= 1, "a replay plays at least 1 step at a time, not {}", horizon);
  return [memory = memory_, horizon, at = std::size_t{0}](const tasks::PushT& world, std::int64_t step) mutable {
    if (step % horizon == 0)
      at = memory->nearest(features_of(world.observation()));
    else
      at = std::min(at + 1, memory->episode_end[at] - 1);
    return memory->actions[at];
  };
}

}  // namespace cohort::record
