#include <algorithm>
#include <vector>

#include "core/philox.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace cohort::tasks {
namespace {

class RandomActor final : public Actor {
 public:
  explicit RandomActor(std::uint64_t seed) : seed_(seed) {}
  std::string name() const override { return "random"; }

  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds, const std::string&) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto env = static_cast<std::size_t>(envs[i]);
      if (env >= episodes_.size()) episodes_.resize(env + 1);
      episodes_[env] = {seeds[i], 0};
    }
  }

  void act(Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    const ActionSpec& spec = task.spec().action;
    const auto width = static_cast<std::size_t>(spec.width());
    const std::span<float> rows = actions.span<float>();
    for (const std::int32_t env : envs) {
      Episode& episode = episodes_.at(static_cast<std::size_t>(env));
      const RandomStream draw(seed_, RandomPurpose::kAction, episode.seed, episode.step++);
      for (std::size_t i = 0; i < width; ++i)
        rows[static_cast<std::size_t>(env) * width + i] = spec.low[i] + (spec.high[i] - spec.low[i]) * draw.uniform(i);
    }
  }

 private:
  struct Episode {
    std::uint64_t seed = 0, step = 0;
  };
  std::uint64_t seed_;
  std::vector<Episode> episodes_;
};

class ZeroActor final : public Actor {
 public:
  std::string name() const override { return "zero"; }
  void begin(std::span<const std::int32_t>, std::span<const std::uint64_t>, const std::string&) override {}
  void act(Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    const ActionSpec& spec = task.spec().action;
    const auto width = static_cast<std::size_t>(spec.width());
    const std::span<float> rows = actions.span<float>();
    for (const std::int32_t env : envs)
      for (std::size_t i = 0; i < width; ++i)
        rows[static_cast<std::size_t>(env) * width + i] = std::clamp(0.0f, spec.low[i], spec.high[i]);
  }
};

}  // namespace

std::unique_ptr<Actor> make_zero_actor() {
  return std::make_unique<ZeroActor>();
}

std::unique_ptr<Actor> make_random_actor(std::uint64_t seed) {
  return std::make_unique<RandomActor>(seed);
}

}  // namespace cohort::tasks
