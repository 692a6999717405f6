// HalfCheetah-v5, Hopper-v5, Walker2d-v5, Swimmer-v5, InvertedPendulum-v5: what moves in a plane and needs no more than
// its coordinates (gymnasium/envs/mujoco/half_cheetah_v5.py and so on).
#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/gymnasium/gymnasium_task.h"
#include "tasks/gymnasium/gymnasium_tasks.h"

namespace cohort::tasks {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// What tells them apart; names and defaults as in gymnasium's constructors.
struct PlanarTask {
  GymnasiumModel model;
  std::int64_t skipped_qpos;  // exclude_current_positions_from_observation
  double forward_weight, ctrl_cost_weight, healthy_reward;
  double noise;            // reset_noise_scale
  bool normal_velocities;  // of the reset noise; uniform otherwise
  double velocity_limit;   // observed velocities are clipped to it
  // An episode is terminated where qpos[1], qpos[2] or another number of the state is not within these.
  double low_z = -kUnbounded, high_z = kUnbounded, largest_angle = kUnbounded, largest_state = kUnbounded;
  bool pendulum = false;  // qpos[1] is the angle, and 1 is paid for each step within it
  // PPO's settings of CleanRL, whose rewards are divided by the returns' running deviation, ours by 10. Mean returns of
  // five seeds at a million steps: HalfCheetah 2840 (1590 to 3853; CleanRL publishes 1443 for v4), Hopper 2039 (2383):
  // bench/results/2026-11-26-ppo-curves/.
  bool cleanrl = false;
};

constexpr PlanarTask kPlanarTasks[] = {
    {.model = {.name = "HalfCheetah-v5",
               .file = "half_cheetah.xml",
               .summary = "run forward on two legs in the plane",
               .period = 0.05,
               .nq = 9,
               .nv = 9,
               .nu = 6,
               .high = 1,
               .has_camera = true},
     .skipped_qpos = 1,
     .forward_weight = 1,
     .ctrl_cost_weight = 0.1,
     .healthy_reward = 0,
     .noise = 0.1,
     .normal_velocities = true,
     .velocity_limit = kUnbounded,
     .cleanrl = true},
    {.model = {.name = "Hopper-v5",
               .file = "hopper.xml",
               .summary = "hop forward on one leg in the plane",
               .period = 0.008,
               .nq = 6,
               .nv = 6,
               .nu = 3,
               .high = 1,
               .has_camera = true},
     .skipped_qpos = 1,
     .forward_weight = 1,
     .ctrl_cost_weight = 1e-3,
     .healthy_reward = 1,
     .noise = 5e-3,
     .normal_velocities = false,
     .velocity_limit = 10,
     .low_z = 0.7,
     .largest_angle = 0.2,
     .largest_state = 100,
     .cleanrl = true},
    {.model = {.name = "Walker2d-v5",
               .file = "walker2d_v5.xml",
               .summary = "walk forward on two legs in the plane",
               .period = 0.008,
               .nq = 9,
               .nv = 9,
               .nu = 6,
               .high = 1,
               .has_camera = true},
     .skipped_qpos = 1,
     .forward_weight = 1,
     .ctrl_cost_weight = 1e-3,
     .healthy_reward = 1,
     .noise = 5e-3,
     .normal_velocities = false,
     .velocity_limit = 10,
     .low_z = 0.8,
     .high_z = 2,
     .largest_angle = 1,
     .cleanrl = true},
    {.model = {.name = "Swimmer-v5",
               .file = "swimmer.xml",
               .summary = "swim forward in the plane",
               .period = 0.04,
               .nq = 5,
               .nv = 5,
               .nu = 2,
               .high = 1,
               .has_camera = true},
     .skipped_qpos = 2,
     .forward_weight = 1,
     .ctrl_cost_weight = 1e-4,
     .healthy_reward = 0,
     .noise = 0.1,
     .normal_velocities = false,
     .velocity_limit = kUnbounded},
    {.model = {.name = "InvertedPendulum-v5",
               .file = "inverted_pendulum.xml",
               .summary = "keep a pole upright on a cart",
               .period = 0.04,
               .nq = 2,
               .nv = 2,
               .nu = 1,
               .high = 3},
     .skipped_qpos = 0,
     .forward_weight = 0,
     .ctrl_cost_weight = 0,
     .healthy_reward = 1,
     .noise = 0.01,
     .normal_velocities = false,
     .velocity_limit = kUnbounded,
     .largest_angle = 0.2,
     .pendulum = true},
};

SceneTaskSetup planar_setup(const TaskSettings& settings, const PlanarTask& task) {
  SceneTaskSetup setup = gymnasium_setup(settings, task.model);
  TaskSpec& spec = setup.spec;
  spec.observations = {{"qpos", {task.model.nq - task.skipped_qpos}, "m, rad", "positions, without where it is"},
                       {"qvel", {task.model.nv}, "m/s, rad/s", "velocities"}};
  if (task.pendulum) {
    spec.reward_terms = {"survive"};
  } else if (task.healthy_reward > 0) {
    spec.reward_terms = {"forward", "ctrl", "survive"};
  } else {
    spec.reward_terms = {"forward", "ctrl"};
  }
  return setup;
}

class Planar final : public GymnasiumTask {
 public:
  Planar(const TaskSettings& settings, const PlanarTask& task)
      : GymnasiumTask(settings, task.model, planar_setup(settings, task)), task_(task) {}

 private:
  double position(const EnvState& now) const override { return now.qpos[0]; }

  void start(int, const RandomStream& random, Start& start) override {
    add_uniform(start.qpos, task_.noise, random, 0);
    if (task_.normal_velocities) {
      add_normal(start.qvel, task_.noise, random);
    } else {
      add_uniform(start.qvel, task_.noise, random, start.qpos.size());
    }
  }

  void observe(int, const EnvState& now, ObservationRows& out) override {
    observe_state(now, static_cast<std::size_t>(task_.skipped_qpos), task_.velocity_limit, out);
  }

  bool healthy(const EnvState& now) const {
    if (task_.pendulum) return std::abs(now.qpos[1]) <= task_.largest_angle;
    if (!(now.qpos[1] > task_.low_z && now.qpos[1] < task_.high_z)) return false;
    if (!(std::abs(now.qpos[2]) < task_.largest_angle)) return false;
    const auto small = [&](double x) { return std::abs(x) < task_.largest_state; };
    return std::all_of(now.qpos.begin() + 2, now.qpos.end(), small) &&
           std::all_of(now.qvel.begin(), now.qvel.end(), small);
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const bool well = healthy(now);
    const bool can_fall = task_.healthy_reward > 0;
    if (!terms.empty()) {
      if (!task_.pendulum) {
        terms.put("forward", task_.forward_weight * speed(env, now));
        terms.put("ctrl", -task_.ctrl_cost_weight * action_squares(env));
      }
      if (can_fall) terms.put("survive", well ? task_.healthy_reward : 0.0);
    }
    return {.success = false, .terminated = can_fall && !well};
  }

  const PlanarTask& task_;
};

}  // namespace

void register_planar_tasks() {
  for (const PlanarTask& task : kPlanarTasks)
    register_gymnasium(
        task.model, [&task](const TaskSettings& s) { return std::make_unique<Planar>(s, task); },
        task.cleanrl ? cleanrl_ppo({"reward_scale=0.1"}) : std::vector<std::string>());
}

}  // namespace cohort::tasks
