// A task that needs no simulator: a point on a line that actions push, with a reward for being at 0. Its inner state is
// more than what it shows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/philox.h"
#include "tasks/task.h"

namespace cohort::rl {

struct PointSettings {
  int n_envs = 4;
  std::int64_t horizon = 20;
  double edge = 2;    ///< beyond it the episode is over
  double goal = 0;    ///< that far from 0 it succeeds; 0: never
  int breaks_at = 0;  ///< step in which environments of an odd seed break; 0: never
  bool rewards = true;
  bool shows_speed = true;
  bool bad_rewards = false;  ///< all rewards are 1e30, which no loss survives
};

class PointTask final : public tasks::Task {
 public:
  explicit PointTask(const PointSettings& settings = {}) : settings_(settings) {
    spec_.name = "point";
    spec_.summary = "stay at 0";
    spec_.observations = {{"position", {1}, "m", "where it is"}, {"speed", {1}, "m/s", "how fast it moves"}};
    if (!settings.shows_speed) spec_.observations.pop_back();
    spec_.action = {.names = {"push", "nothing"}, .low = {-2, 0}, .high = {2, 1}, .unit = "1"};
    spec_.control_period = 0.1;
    spec_.horizon = settings.horizon;
    if (settings.rewards) spec_.reward_terms = {"near"};
    const auto n = static_cast<std::size_t>(settings.n_envs);
    position_.resize(n), speed_.resize(n), reward_.resize(n), seed_.resize(n), step_.resize(n), wind_.resize(n);
    success_.resize(n), terminated_.resize(n), truncated_.resize(n), broken_.resize(n);
  }

  const tasks::TaskSpec& spec() const override { return spec_; }
  int n_envs() const override { return settings_.n_envs; }

  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto e = static_cast<std::size_t>(envs[i]);
      const RandomStream random(seeds[i], RandomPurpose::kEnvironment, 0, 0);
      seed_[e] = seeds[i];
      position_[e] = 2 * random.uniform(0) - 1;
      wind_[e] = 0.2f * random.normal(1);
      speed_[e] = 0, reward_[e] = 0, step_[e] = 0;
      success_[e] = terminated_[e] = truncated_[e] = broken_[e] = 0;
    }
    resets += static_cast<int>(envs.size());
  }

  void step(ArrayView actions) override {
    const std::span<const float> push = actions.span<float>();
    for (std::size_t e = 0; e < position_.size(); ++e) {
      ++step_[e];
      wind_[e] *= 0.9f;
      speed_[e] += 0.1f * (std::clamp(push[2 * e], -2.0f, 2.0f) + wind_[e]);
      position_[e] += 0.1f * speed_[e];
      reward_[e] = settings_.bad_rewards ? 1e30f : 1 - position_[e] * position_[e];
      broken_[e] = settings_.breaks_at != 0 && seed_[e] % 2 == 1 && step_[e] == settings_.breaks_at;
      if (broken_[e]) reward_[e] = std::numeric_limits<float>::quiet_NaN();
      success_[e] = std::abs(position_[e]) < static_cast<float>(settings_.goal);
      terminated_[e] = broken_[e] || std::abs(position_[e]) > static_cast<float>(settings_.edge);
      truncated_[e] = step_[e] >= settings_.horizon;
    }
  }

  ArrayView observation(std::size_t field) override {
    return make_view((field == 0 ? position_ : speed_).data(), {settings_.n_envs, 1});
  }
  ArrayView reward() override { return make_view(reward_.data(), {settings_.n_envs}); }
  ArrayView success() override { return make_view(success_.data(), {settings_.n_envs}); }
  ArrayView terminated() override { return make_view(terminated_.data(), {settings_.n_envs}); }
  ArrayView truncated() override { return make_view(truncated_.data(), {settings_.n_envs}); }
  ArrayView broken() override { return make_view(broken_.data(), {settings_.n_envs}); }

  void visit_state(tasks::StateVisitor& state) override {
    state.add("position", position_);
    state.add("speed", speed_);
    state.add("reward", reward_);
    state.add("wind", wind_);
    state.add("seed", seed_);
    state.add("step", step_);
    state.add("success", success_);
    state.add("terminated", terminated_);
    state.add("truncated", truncated_);
    state.add("broken", broken_);
  }

  int resets = 0;  ///< environments that were reset so far

 private:
  PointSettings settings_;
  tasks::TaskSpec spec_;
  std::vector<float> position_, speed_, reward_, wind_;
  std::vector<std::uint64_t> seed_;
  std::vector<std::int64_t> step_;
  std::vector<std::uint8_t> success_, terminated_, truncated_, broken_;
};

}  // namespace cohort::rl
