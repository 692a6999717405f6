// Pusher-v5 (gymnasium/envs/mujoco/pusher_v5.py): push a cylinder to a goal with an arm.
#include <array>
#include <cmath>
#include <limits>

#include "tasks/gymnasium/gymnasium_task.h"
#include "tasks/gymnasium/gymnasium_tasks.h"

namespace cohort::tasks {
namespace {

constexpr GymnasiumModel kPusher{.name = "Pusher-v5",
                                 .file = "pusher_v5.xml",
                                 .summary = "push a cylinder to a goal with an arm",
                                 .period = 0.05,
                                 .horizon = 100,
                                 .nq = 11,
                                 .nv = 11,
                                 .nu = 7,
                                 .high = 2};
constexpr std::size_t kPusherJoints = 7;  // the cylinder's two coordinates follow, and the goal's
constexpr double kPusherSpeedNoise = 0.005;
constexpr double kPusherLeastWay = 0.17;                // m from the cylinder to the goal
constexpr double kPusherNear = 0.5, kPusherCtrl = 0.1;  // reward_near_weight, reward_control_weight

SceneTaskSetup pusher_setup(const TaskSettings& settings) {
  SceneTaskSetup setup = gymnasium_setup(settings, kPusher);
  setup.leaves = {sim::Field::kLinkPos};
  setup.spec.observations = {{"qpos", {7}, "rad", "of the arm"},
                             {"qvel", {7}, "rad/s", "likewise"},
                             {"tips_arm", {3}, "m", "where the hand is"},
                             {"object", {3}, "m", "where the cylinder is"},
                             {"goal", {3}, "m", "where it has to go"}};
  setup.spec.reward_terms = {"dist", "ctrl", "near"};
  return setup;
}

class Pusher final : public GymnasiumTask {
 public:
  explicit Pusher(const TaskSettings& settings)
      : GymnasiumTask(settings, kPusher, pusher_setup(settings)),
        links_{scene().info().link("tips_arm"), scene().info().link("object"), scene().info().link("goal")} {}

 private:
  void start(int, const RandomStream& random, Start& start) override {
    add_uniform(start.qvel.first(kPusherJoints), kPusherSpeedNoise, random, 0);
    const std::span<double> cylinder = start.qpos.subspan(kPusherJoints, 2);
    for (std::uint64_t next = 100;; next += 2) {
      cylinder[0] = -0.3 * static_cast<double>(random.uniform(next));
      cylinder[1] = 0.4 * static_cast<double>(random.uniform(next + 1)) - 0.2;
      if (std::hypot(cylinder[0], cylinder[1]) > kPusherLeastWay) break;
    }
    start.qpos[kPusherJoints + 2] = start.qpos[kPusherJoints + 3] = 0;
  }

  void observe(int, const EnvState& now, ObservationRows& out) override {
    constexpr double kAny = std::numeric_limits<double>::infinity();
    observe_numbers(now.qpos, kAny, out["qpos"]);
    observe_numbers(now.qvel, kAny, out["qvel"]);
    for (std::size_t i = 0; i < links_.size(); ++i) observe_numbers(derived_point(now, 0, links_[i]), kAny, out[2 + i]);
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    if (!terms.empty()) {
      const auto way = [&](int from, int to) {
        const std::span<const double> a = derived_point(now, 0, from), b = derived_point(now, 0, to);
        return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
      };
      terms.put("dist", -way(links_[1], links_[2]));
      terms.put("ctrl", -kPusherCtrl * action_squares(env));
      terms.put("near", -kPusherNear * way(links_[1], links_[0]));
    }
    return {};
  }

  std::array<int, 3> links_;  // hand, cylinder, goal
};

}  // namespace

void register_pusher() {
  register_gymnasium(
      kPusher, [](const TaskSettings& s) { return std::make_unique<Pusher>(s); }, cleanrl_ppo());
}

}  // namespace cohort::tasks
