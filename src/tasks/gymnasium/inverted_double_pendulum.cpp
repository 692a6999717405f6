// InvertedDoublePendulum-v5 (gymnasium/envs/mujoco/inverted_double_pendulum_v5.py): keep two poles, one on the other,
// upright on a cart.
#include <cmath>

#include "tasks/gymnasium/gymnasium_task.h"
#include "tasks/gymnasium/gymnasium_tasks.h"

namespace cohort::tasks {
namespace {

constexpr GymnasiumModel kDoublePendulum{.name = "InvertedDoublePendulum-v5",
                                         .file = "inverted_double_pendulum.xml",
                                         .summary = "keep two poles, one on the other, upright on a cart",
                                         .period = 0.05,
                                         .nq = 3,
                                         .nv = 3,
                                         .nu = 1,
                                         .high = 1};
constexpr double kDoubleNoise = 0.1;   // reset_noise_scale
constexpr double kDoubleHealthy = 10;  // healthy_reward
constexpr double kDoubleLimit = 10;    // of observed velocities and forces
constexpr double kUpperPole = 0.6;     // m: the site `tip` is there on pole2's z axis
constexpr double kLowestTip = 1;       // m: an episode ends there

enum DoubleLeft { kDoubleLinkPos, kDoubleLinkQuat, kDoubleConstraint };

SceneTaskSetup double_pendulum_setup(const TaskSettings& settings) {
  SceneTaskSetup setup = gymnasium_setup(settings, kDoublePendulum);
  setup.leaves = {sim::Field::kLinkPos, sim::Field::kLinkQuat, sim::Field::kQfrcConstraint};
  setup.spec.observations = {{"cart", {1}, "m", "where the cart is"},
                             {"sin", {2}, "1", "of the poles' angles"},
                             {"cos", {2}, "1", "likewise"},
                             {"qvel", {3}, "m/s, rad/s", "velocities, within +-10"},
                             {"constraint", {1}, "N", "of the rail's ends on the cart, within +-10"}};
  setup.spec.reward_terms = {"survive", "distance_penalty", "velocity_penalty"};
  return setup;
}

class InvertedDoublePendulum final : public GymnasiumTask {
 public:
  explicit InvertedDoublePendulum(const TaskSettings& settings)
      : GymnasiumTask(settings, kDoublePendulum, double_pendulum_setup(settings)),
        pole_(static_cast<std::size_t>(scene().info().link("pole2"))) {}

 private:
  void start(int, const RandomStream& random, Start& start) override {
    add_uniform(start.qpos, kDoubleNoise, random, 0);
    add_normal(start.qvel, kDoubleNoise, random);
  }

  void observe(int, const EnvState& now, ObservationRows& out) override {
    out.put("cart", {now.qpos[0]});
    out.put("sin", {std::sin(now.qpos[1]), std::sin(now.qpos[2])});
    out.put("cos", {std::cos(now.qpos[1]), std::cos(now.qpos[2])});
    observe_numbers(now.qvel, kDoubleLimit, out["qvel"]);
    observe_numbers(derived(now, kDoubleConstraint), kDoubleLimit, out["constraint"]);
  }

  Judgement judge(int, const EnvState& now, Terms& terms) override {
    const std::span<const double> pos = derived_point(now, kDoubleLinkPos, static_cast<int>(pole_));
    const std::span<const double> q = derived(now, kDoubleLinkQuat).subspan(4 * pole_, 4);
    // The pole's z axis: the rotation's third column.
    const double x = pos[0] + kUpperPole * 2 * (q[1] * q[3] + q[0] * q[2]);
    const double z = pos[2] + kUpperPole * (1 - 2 * (q[1] * q[1] + q[2] * q[2]));
    const bool fallen = z <= kLowestTip;
    if (!terms.empty()) {
      const double v1 = now.qvel[1], v2 = now.qvel[2];
      terms.put("survive", fallen ? 0.0 : kDoubleHealthy);
      terms.put("distance_penalty", -(0.01 * x * x + (z - 2) * (z - 2)));
      terms.put("velocity_penalty", -(1e-3 * v1 * v1 + 5e-3 * v2 * v2));
    }
    return {.success = false, .terminated = fallen};
  }

  std::size_t pole_;
};

}  // namespace

void register_inverted_double_pendulum() {
  // Returns of 10,000, which CleanRL divides by their running deviation.
  register_gymnasium(
      kDoublePendulum, [](const TaskSettings& s) { return std::make_unique<InvertedDoublePendulum>(s); },
      cleanrl_ppo({"reward_scale=0.02"}));
}

}  // namespace cohort::tasks
