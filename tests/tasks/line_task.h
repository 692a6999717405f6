/// A task that is quick and known in closed form: a point on a line is to come near 0. For tests of whoever runs tasks.
///
/// x begins anywhere in [-1, 1) by the seed and moves by 0.1 times the action, which lies in [-1, 1]; the reward is
/// 1 - |x|, |x| < 0.05 is success and the end. Seeds that leave 3 when divided by 7 have a wind away from 0 that no
/// action beats. An action above 1e6 breaks the simulation. Camera "top": (height, width), all pixels (128 + 100 x,
/// env's step, 7).
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/philox.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace cohort::testing {

class LineTask : public tasks::Task {
 public:
  explicit LineTask(int n_envs, std::int64_t horizon = 40, int height = 8, int width = 8)
      : n_(static_cast<std::size_t>(n_envs)), height_(height), width_(width) {
    spec_.name = "line";
    spec_.summary = "a point on a line is to come near 0";
    spec_.instruction = "come near zero";
    spec_.observations = {{"x", {1}, "m", "place"}, {"clock", {2}, "1", "step, and the same halved"}};
    spec_.cameras = {"top", "side"};
    spec_.action = {.names = {"speed"}, .low = {-1}, .high = {1}, .unit = "m/s"};
    spec_.control_period = 0.1;
    spec_.horizon = horizon;
    spec_.has_expert = true;
    x_.resize(n_);
    clock_.resize(2 * n_);
    reward_.resize(n_);
    seed_.resize(n_);
    for (auto* flags : {&success_, &terminated_, &truncated_, &broken_}) flags->resize(n_);
    pictures_.resize(n_ * static_cast<std::size_t>(height * width) * 3);
  }

  const tasks::TaskSpec& spec() const override { return spec_; }
  int n_envs() const override { return static_cast<int>(n_); }
  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto e = static_cast<std::size_t>(envs[i]);
      seed_[e] = seeds[i];
      x_[e] = 2 * RandomStream(5, RandomPurpose::kTest, seeds[i], 0).uniform(0) - 1;
      clock_[2 * e] = clock_[2 * e + 1] = reward_[e] = 0;
      for (auto* flags : {&success_, &terminated_, &truncated_, &broken_}) (*flags)[e] = 0;
    }
  }
  void step(ArrayView actions) override {
    const auto rows = actions.span<float>();
    for (std::size_t e = 0; e < n_; ++e) {
      if (!std::isfinite(rows[e]) || rows[e] > 1e6f) broken_[e] = 1;
      if (broken_[e]) {
        terminated_[e] = 1;
        success_[e] = 0;
        reward_[e] = 0;
        continue;
      }
      const float wind = seed_[e] % 7 == 3 ? (x_[e] < 0 ? -0.2f : 0.2f) : 0.0f;
      x_[e] += 0.1f * std::clamp(rows[e], -1.0f, 1.0f) + wind;
      clock_[2 * e] += 1;
      clock_[2 * e + 1] = clock_[2 * e] / 2;
      reward_[e] = 1 - std::abs(x_[e]);
      success_[e] = terminated_[e] = std::abs(x_[e]) < 0.05f;
      truncated_[e] = clock_[2 * e] >= static_cast<float>(spec_.horizon);
    }
  }
  ArrayView observation(std::size_t field) override {
    return field == 0 ? make_view(x_.data(), {n_envs(), 1}) : make_view(clock_.data(), {n_envs(), 2});
  }
  ArrayView reward() override { return make_view(reward_.data(), {n_envs()}); }
  ArrayView success() override { return make_view(success_.data(), {n_envs()}); }
  ArrayView terminated() override { return make_view(terminated_.data(), {n_envs()}); }
  ArrayView truncated() override { return make_view(truncated_.data(), {n_envs()}); }
  ArrayView broken() override { return make_view(broken_.data(), {n_envs()}); }
  ArrayView picture(const std::string& camera, std::span<const std::int32_t> envs) override {
    for (const std::int32_t env : envs) {
      const auto e = static_cast<std::size_t>(env), pixels = static_cast<std::size_t>(height_ * width_);
      for (std::size_t p = 0; p < pixels; ++p) {
        std::uint8_t* pixel = pictures_.data() + (e * pixels + p) * 3;
        pixel[0] = static_cast<std::uint8_t>(std::clamp(128 + 100 * x_[e], 0.0f, 255.0f));
        pixel[1] = static_cast<std::uint8_t>(clock_[2 * e]);
        pixel[2] = camera == "top" ? 7 : 9;
      }
    }
    return make_view(pictures_.data(), {n_envs(), height_, width_, 3});
  }
  std::unique_ptr<tasks::Actor> make_expert(std::uint64_t) override;
  std::string description() const override { return R"({"engine": "none"})"; }
  void visit_state(tasks::StateVisitor& state) override {
    state.add("x", x_);
    state.add("clock", clock_);
    state.add("reward", reward_);
    state.add("seed", seed_);
    state.add("success", success_);
    state.add("terminated", terminated_);
    state.add("truncated", truncated_);
    state.add("broken", broken_);
  }

 private:
  tasks::TaskSpec spec_;
  std::size_t n_;
  int height_, width_;
  std::vector<float> x_, clock_, reward_;
  std::vector<std::uint64_t> seed_;
  std::vector<std::uint8_t> success_, terminated_, truncated_, broken_, pictures_;
};

/// Goes towards 0 at half speed. From `nan_after` steps on the episodes of odd seeds get NaN.
class LineExpert final : public tasks::Actor {
 public:
  explicit LineExpert(std::int64_t nan_after = -1) : nan_after_(nan_after) {}
  std::string name() const override { return "expert"; }
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds, const std::string&) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto e = static_cast<std::size_t>(envs[i]);
      if (e >= seeds_.size()) {
        seeds_.resize(e + 1);
        steps_.resize(e + 1);
      }
      seeds_[e] = seeds[i];
      steps_[e] = 0;
    }
  }
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    const auto x = task.observation(0).span<float>(), rows = actions.span<float>();
    for (const std::int32_t env : envs) {
      const auto e = static_cast<std::size_t>(env);
      rows[e] = std::clamp(-5 * x[e], -1.0f, 1.0f);
      if (nan_after_ >= 0 && steps_[e]++ >= nan_after_ && seeds_[e] % 2 == 1) rows[e] = std::nanf("");
    }
  }

 private:
  std::int64_t nan_after_;
  std::vector<std::uint64_t> seeds_;
  std::vector<std::int64_t> steps_;
};

inline std::unique_ptr<tasks::Actor> LineTask::make_expert(std::uint64_t) {
  return std::make_unique<LineExpert>();
}

}  // namespace cohort::testing
