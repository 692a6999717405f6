// Humanoid-v5 (gymnasium/envs/mujoco/humanoid_v5.py): run forward on two legs.
#include <algorithm>
#include <limits>

#include "tasks/gymnasium/gymnasium_task.h"
#include "tasks/gymnasium/gymnasium_tasks.h"

namespace cohort::tasks {
namespace {

constexpr GymnasiumModel kHumanoid{.name = "Humanoid-v5",
                                   .file = "humanoid.xml",
                                   .summary =
                                       "run forward on two legs; the engine batched solves contacts by Newton's "
                                       "method, where the model's file asks for PGS",
                                   .period = 0.015,
                                   .nq = 24,
                                   .nv = 23,
                                   .nu = 17,
                                   .high = 0.4f,
                                   .has_camera = true};
constexpr std::size_t kHumanoidPlace = 2;          // x and y are not observed
constexpr double kHumanoidNoise = 1e-2;            // reset_noise_scale
constexpr double kHumanoidForward = 1.25;          // forward_reward_weight
constexpr double kHumanoidCtrlCost = 0.1;          // ctrl_cost_weight
constexpr double kHumanoidContactCost = 5e-7;      // contact_cost_weight
constexpr double kHumanoidMostContactCost = 10;    // contact_cost_range
constexpr double kHumanoidHealthy = 5;             // healthy_reward
constexpr double kHumanoidHeight[2] = {1.0, 2.0};  // m, healthy_z_range
constexpr std::int64_t kHumanoidLinks = 14;        // with the world
constexpr std::int64_t kHumanoidRoot = 6;          // dofs of the free joint

enum HumanoidLeft { kHumanoidCom, kHumanoidInertia, kHumanoidVelocity, kHumanoidActuator, kHumanoidForce };

SceneTaskSetup humanoid_setup(const TaskSettings& settings) {
  SceneTaskSetup setup = gymnasium_setup(settings, kHumanoid);
  setup.spec.instruction = "run forward on two legs";
  setup.batched_solver = "Newton";
  setup.leaves = {sim::Field::kLinkCom, sim::Field::kLinkInertia, sim::Field::kLinkVelocity, sim::Field::kQfrcActuator,
                  sim::Field::kLinkForce};
  const std::int64_t links = kHumanoidLinks - 1;
  setup.spec.observations = {
      {"qpos",
       {kHumanoid.nq - static_cast<std::int64_t>(kHumanoidPlace)},
       "m, 1, rad",
       "height and orientation of the torso, joints"},
      {"qvel", {kHumanoid.nv}, "m/s, rad/s", "velocities"},
      {"cinert", {10 * links}, "kg m^2, kg m, kg", "of each link: inertia about the whole body's centre of mass"},
      {"cvel", {6 * links}, "rad/s, m/s", "of each link: velocity at the whole body's centre of mass"},
      {"qfrc_actuator", {kHumanoid.nv - kHumanoidRoot}, "N m", "of each joint: what the motors apply"},
      {"cfrc_ext", {6 * links}, "N m, N", "of each link: what contacts apply to it"}};
  setup.spec.reward_terms = {"forward", "ctrl", "contact", "survive"};
  return setup;
}

class Humanoid final : public GymnasiumTask {
 public:
  explicit Humanoid(const TaskSettings& settings) : GymnasiumTask(settings, kHumanoid, humanoid_setup(settings)) {
    for (const sim::LinkInfo& link : scene().info().links) {
      masses_.push_back(link.mass);
      mass_ += link.mass;
    }
  }

 private:
  /// x of the centre of mass.
  double position(const EnvState& now) const override {
    const std::span<const double> com = derived(now, kHumanoidCom);
    double sum = 0;
    for (std::size_t k = 0; k < masses_.size(); ++k) sum += masses_[k] * com[3 * k];
    return sum / mass_;
  }

  void start(int, const RandomStream& random, Start& start) override {
    add_uniform(start.qpos, kHumanoidNoise, random, 0);
    add_uniform(start.qvel, kHumanoidNoise, random, start.qpos.size());
  }

  void observe(int, const EnvState& now, ObservationRows& out) override {
    constexpr double kAny = std::numeric_limits<double>::infinity();
    observe_state(now, kHumanoidPlace, kAny, out);
    observe_numbers(derived(now, kHumanoidInertia).subspan(10), kAny, out["cinert"]);
    observe_numbers(derived(now, kHumanoidVelocity).subspan(6), kAny, out["cvel"]);
    observe_numbers(derived(now, kHumanoidActuator).subspan(kHumanoidRoot), kAny, out["qfrc_actuator"]);
    // mj_forward, which is what a reset calls, computes no external forces.
    observe_numbers(derived(now, kHumanoidForce).subspan(6), now.step == 0 ? 0 : kAny, out["cfrc_ext"]);
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const bool well = now.qpos[2] > kHumanoidHeight[0] && now.qpos[2] < kHumanoidHeight[1];
    if (!terms.empty()) {
      double squares = 0;
      for (const double force : derived(now, kHumanoidForce)) squares += force * force;
      terms.put("forward", kHumanoidForward * speed(env, now));
      terms.put("ctrl", -kHumanoidCtrlCost * action_squares(env));
      terms.put("contact", -std::min(kHumanoidContactCost * squares, kHumanoidMostContactCost));
      terms.put("survive", well ? kHumanoidHealthy : 0.0);
    }
    return {.success = false, .terminated = !well};
  }

  std::vector<double> masses_;
  double mass_ = 0;
};

}  // namespace

void register_humanoid() {
  register_gymnasium(
      kHumanoid, [](const TaskSettings& s) { return std::make_unique<Humanoid>(s); },
      rl_games_ppo("[512,256,128]", {"algorithm.gamma=0.995", "algorithm.use_clipped_value_loss=false",
                                     "algorithm.max_grad_norm=0.5", "max_iterations=5000"}));
}

}  // namespace cohort::tasks
