// A task that needs memory: a sign is shown in the first step of an episode, and what is wanted in all later ones is the
// action that it told of.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/philox.h"
#include "tasks/task.h"

namespace cohort::rl {

class RecallTask final : public tasks::Task {
 public:
  explicit RecallTask(int n, std::int64_t horizon = 8) : n_(n) {
    spec_.name = "recall";
    spec_.summary = "do what was told at the start";
    spec_.observations = {{"sign", {1}, "1", "-1 or 1 in the first step, then 0"}, {"age", {1}, "1", "of the episode"}};
    spec_.action = {.names = {"answer"}, .low = {-1}, .high = {1}, .unit = "1"};
    spec_.control_period = 0.1;
    spec_.horizon = horizon;
    spec_.reward_terms = {"right"};
    const auto size = static_cast<std::size_t>(n);
    sign_.resize(size), shown_.resize(size), age_.resize(size), reward_.resize(size), step_.resize(size);
    success_.resize(size), terminated_.resize(size), truncated_.resize(size), broken_.resize(size);
  }

  const tasks::TaskSpec& spec() const override { return spec_; }
  int n_envs() const override { return n_; }

  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto e = static_cast<std::size_t>(envs[i]);
      const RandomStream random(seeds[i], RandomPurpose::kEnvironment, 0, 0);
      sign_[e] = shown_[e] = random.uniform(0) < 0.5f ? -1.0f : 1.0f;
      // Episodes of several lengths, so that environments begin at different times.
      step_[e] = random.below(1, 3);
      age_[e] = 0, reward_[e] = 0, truncated_[e] = 0;
    }
  }

  /// 1 for the right answer, less for others; nothing in the step in which the sign is shown.
  void step(ArrayView actions) override {
    const std::span<float> answer = actions.span<float>();
    for (std::size_t e = 0; e < sign_.size(); ++e) {
      const float off = std::clamp(answer[e], -1.0f, 1.0f) - sign_[e];
      reward_[e] = shown_[e] != 0 ? 0 : 1 - off * off;
      shown_[e] = 0;
      age_[e] += 0.1f;
      truncated_[e] = ++step_[e] >= spec_.horizon;
    }
  }

  ArrayView observation(std::size_t field) override { return make_view((field == 0 ? shown_ : age_).data(), {n_, 1}); }
  ArrayView reward() override { return make_view(reward_.data(), {n_}); }
  ArrayView success() override { return make_view(success_.data(), {n_}); }
  ArrayView terminated() override { return make_view(terminated_.data(), {n_}); }
  ArrayView truncated() override { return make_view(truncated_.data(), {n_}); }
  ArrayView broken() override { return make_view(broken_.data(), {n_}); }

  void visit_state(tasks::StateVisitor& state) override {
    state.add("sign", sign_);
    state.add("shown", shown_);
    state.add("age", age_);
    state.add("reward", reward_);
    state.add("step", step_);
    state.add("truncated", truncated_);
  }

 private:
  int n_;
  tasks::TaskSpec spec_;
  std::vector<float> sign_, shown_, age_, reward_;
  std::vector<std::int64_t> step_;
  std::vector<std::uint8_t> success_, terminated_, truncated_, broken_;
};

}  // namespace cohort::rl
