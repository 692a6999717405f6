// Reacher-v5 (gymnasium/envs/mujoco/reacher_v5.py): bring the tip of a two-link arm to a target in the plane.
#include <array>
#include <cmath>

#include "tasks/gymnasium/gymnasium_task.h"
#include "tasks/gymnasium/gymnasium_tasks.h"

namespace cohort::tasks {
namespace {

constexpr GymnasiumModel kReacher{.name = "Reacher-v5",
                                  .file = "reacher.xml",
                                  .summary = "bring the tip of a two-link arm to a target in the plane",
                                  .period = 0.02,
                                  .horizon = 50,
                                  .nq = 4,
                                  .nv = 4,
                                  .nu = 2,
                                  .high = 1};
constexpr std::size_t kReacherJoints = 2;  // the other two coordinates are the target's
constexpr double kReacherNoise = 0.1, kReacherSpeedNoise = 0.005, kReacherGoal = 0.2;

SceneTaskSetup reacher_setup(const TaskSettings& settings) {
  SceneTaskSetup setup = gymnasium_setup(settings, kReacher);
  setup.leaves = {sim::Field::kLinkPos};
  setup.spec.observations = {{"cos", {2}, "1", "of the joints' angles"},
                             {"sin", {2}, "1", "likewise"},
                             {"target", {2}, "m", "where the target is"},
                             {"qvel", {2}, "rad/s", "of the joints"},
                             {"reach", {2}, "m", "from the target to the tip"}};
  setup.spec.reward_terms = {"dist", "ctrl"};
  return setup;
}

class Reacher final : public GymnasiumTask {
 public:
  explicit Reacher(const TaskSettings& settings)
      : GymnasiumTask(settings, kReacher, reacher_setup(settings)),
        tip_(scene().info().link("fingertip")),
        target_(scene().info().link("target")) {}

 private:
  void start(int, const RandomStream& random, Start& start) override {
    add_uniform(start.qpos, kReacherNoise, random, 0);
    add_uniform(start.qvel.first(kReacherJoints), kReacherSpeedNoise, random, start.qpos.size());
    const std::span<double> goal = start.qpos.subspan(kReacherJoints);
    // Uniform in the circle.
    for (std::uint64_t next = 100;; next += 2) {
      goal[0] = goal[1] = 0;
      add_uniform(goal, kReacherGoal, random, next);
      if (std::hypot(goal[0], goal[1]) < kReacherGoal) break;
    }
  }

  std::array<double, 3> reach(const EnvState& now) const {
    const std::span<const double> tip = derived_point(now, 0, tip_), target = derived_point(now, 0, target_);
    return {tip[0] - target[0], tip[1] - target[1], tip[2] - target[2]};
  }

  void observe(int, const EnvState& now, ObservationRows& out) override {
    const std::array<double, 3> from = reach(now);
    out.put("cos", {std::cos(now.qpos[0]), std::cos(now.qpos[1])});
    out.put("sin", {std::sin(now.qpos[0]), std::sin(now.qpos[1])});
    out.put("target", {now.qpos[2], now.qpos[3]});
    out.put("qvel", {now.qvel[0], now.qvel[1]});
    out.put("reach", {from[0], from[1]});
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    if (!terms.empty()) {
      const std::array<double, 3> from = reach(now);
      terms.put("dist", -std::hypot(from[0], from[1], from[2]));
      terms.put("ctrl", -action_squares(env));
    }
    return {};
  }

  int tip_, target_;
};

}  // namespace

void register_reacher() {
  register_gymnasium(
      kReacher, [](const TaskSettings& s) { return std::make_unique<Reacher>(s); }, cleanrl_ppo());
}

}  // namespace cohort::tasks
