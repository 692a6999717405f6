// HalfCheetah-v5, Hopper-v5, Walker2d-v5, Swimmer-v5, InvertedPendulum-v5: gymnasium's tasks of these names, so that
// figures compare. Observation, reward, termination, time limit and the distribution of the reset noise are those of
// gymnasium 1.4 (gymnasium/envs/mujoco/*_v5.py); the noise itself comes from our generator. The models are read from
// the wheel.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "core/files.h"
#include "core/format.h"
#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// What tells them apart; names and defaults as in gymnasium's constructors.
struct GymnasiumTask {
  const char *name, *file, *summary;
  double period;     // s: frame_skip times the model's timestep
  int skipped_qpos;  // exclude_current_positions_from_observation
  double forward_weight, ctrl_cost_weight, healthy_reward;
  double noise;            // reset_noise_scale
  bool normal_velocities;  // of the reset noise; uniform otherwise
  double velocity_limit;   // observed velocities are clipped to it
  // An episode is terminated where qpos[1], qpos[2] or another number of the state is not within these.
  double low_z = -kUnbounded, high_z = kUnbounded, largest_angle = kUnbounded, largest_state = kUnbounded;
  bool pendulum = false;  // qpos[1] is the angle, and 1 is paid for each step within it
};

constexpr GymnasiumTask kGymnasiumTasks[] = {
    {.name = "HalfCheetah-v5",
     .file = "half_cheetah.xml",
     .summary = "gymnasium's: run forward on two legs in the plane",
     .period = 0.05,
     .skipped_qpos = 1,
     .forward_weight = 1,
     .ctrl_cost_weight = 0.1,
     .healthy_reward = 0,
     .noise = 0.1,
     .normal_velocities = true,
     .velocity_limit = kUnbounded},
    {.name = "Hopper-v5",
     .file = "hopper.xml",
     .summary = "gymnasium's: hop forward on one leg in the plane",
     .period = 0.008,
     .skipped_qpos = 1,
     .forward_weight = 1,
     .ctrl_cost_weight = 1e-3,
     .healthy_reward = 1,
     .noise = 5e-3,
     .normal_velocities = false,
     .velocity_limit = 10,
     .low_z = 0.7,
     .largest_angle = 0.2,
     .largest_state = 100},
    {.name = "Walker2d-v5",
     .file = "walker2d_v5.xml",
     .summary = "gymnasium's: walk forward on two legs in the plane",
     .period = 0.008,
     .skipped_qpos = 1,
     .forward_weight = 1,
     .ctrl_cost_weight = 1e-3,
     .healthy_reward = 1,
     .noise = 5e-3,
     .normal_velocities = false,
     .velocity_limit = 10,
     .low_z = 0.8,
     .high_z = 2,
     .largest_angle = 1},
    {.name = "Swimmer-v5",
     .file = "swimmer.xml",
     .summary = "gymnasium's: swim forward in the plane",
     .period = 0.04,
     .skipped_qpos = 2,
     .forward_weight = 1,
     .ctrl_cost_weight = 1e-4,
     .healthy_reward = 0,
     .noise = 0.1,
     .normal_velocities = false,
     .velocity_limit = kUnbounded},
    {.name = "InvertedPendulum-v5",
     .file = "inverted_pendulum.xml",
     .summary = "gymnasium's: keep a pole upright on a cart",
     .period = 0.04,
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

std::string model_text(const GymnasiumTask& task) {
  const char* named = std::getenv("COHORT_GYMNASIUM_ASSETS");
  const std::filesystem::path folder = named ? named : COHORT_GYMNASIUM_ASSETS;
  const std::filesystem::path file = folder / task.file;
  std::error_code unknown;
  COHORT_THROW_UNLESS(
      std::filesystem::exists(file, unknown),
      "{}: its model is part of gymnasium, and {} is not there: `scripts/setup --tests` brings it, or "
      "set COHORT_GYMNASIUM_ASSETS to the folder gymnasium/envs/mujoco/assets of an installed gymnasium",
      task.name, file.string());
  return read_file(file);
}

struct GymnasiumSettings : SceneTaskSettings {
  GymnasiumSettings() { horizon = 1000; }
};

/// The model's sizes are known only when it is compiled: the numbers here are its file's.
struct Sizes {
  std::int64_t nq, nv;
  std::vector<float> high;  // of the actions
};
Sizes sizes_of(const GymnasiumTask& task) {
  const std::string name = task.name;
  if (name == "HalfCheetah-v5") return {9, 9, std::vector<float>(6, 1)};
  if (name == "Hopper-v5") return {6, 6, std::vector<float>(3, 1)};
  if (name == "Walker2d-v5") return {9, 9, std::vector<float>(6, 1)};
  if (name == "Swimmer-v5") return {5, 5, std::vector<float>(2, 1)};
  return {2, 2, {3}};
}

SceneTaskSetup gymnasium_setup(const TaskSettings& settings, const GymnasiumTask& task) {
  GymnasiumSettings own;
  SceneTaskSetup setup = read_settings(settings, static_cast<SceneTaskSettings&>(own));
  const Sizes sizes = sizes_of(task);
  TaskSpec& spec = setup.spec;
  spec.name = task.name;
  spec.summary = task.summary;
  spec.instruction = std::string(task.summary).substr(std::string("gymnasium's: ").size());
  spec.observations = {{"qpos", {sizes.nq - task.skipped_qpos}, "m, rad", "positions, without where it is"},
                       {"qvel", {sizes.nv}, "m/s, rad/s", "velocities"}};
  if (!task.pendulum) spec.cameras = {"track"};
  for (std::size_t i = 0; i < sizes.high.size(); ++i) {
    spec.action.names.push_back(format("motor{}", i));
    spec.action.low.push_back(-sizes.high[i]);
    spec.action.high.push_back(sizes.high[i]);
  }
  spec.action.unit = "of each motor's gear; costs are those of the actions before they are clipped";
  spec.control_period = task.period;
  if (task.pendulum) {
    spec.reward_terms = {"survive"};
  } else if (task.healthy_reward > 0) {
    spec.reward_terms = {"forward", "ctrl", "survive"};
  } else {
    spec.reward_terms = {"forward", "ctrl"};
  }
  setup.clip_actions = false;
  setup.mjcf = model_text(task);
  return setup;
}

class Gymnasium final : public SceneTask {
 public:
  Gymnasium(const TaskSettings& settings, const GymnasiumTask& task)
      : SceneTask(settings, gymnasium_setup(settings, task)),
        task_(task),
        before_(static_cast<std::size_t>(n_envs())),
        cost_(static_cast<std::size_t>(n_envs())) {
    const sim::ModelInfo& model = scene().info();
    const Sizes sizes = sizes_of(task);
    COHORT_THROW_UNLESS(model.nq == sizes.nq && model.nv == sizes.nv && model.nu == static_cast<int>(sizes.high.size()),
                        "{}: {} is another model than gymnasium 1.4's: nq {}, nv {}, nu {}", task.name, task.file,
                        model.nq, model.nv, model.nu);
  }

 private:
  void start(int, const RandomStream& random, Start& start) override {
    std::uint64_t next = 0;
    const auto uniform = [&] { return task_.noise * (2.0 * static_cast<double>(random.uniform(next++)) - 1.0); };
    for (double& q : start.qpos) q += uniform();
    // Normal numbers take four words each: of a stretch that uniform ones do not reach.
    for (std::size_t i = 0; i < start.qvel.size(); ++i)
      start.qvel[i] = task_.normal_velocities ? task_.noise * static_cast<double>(random.normal(1000 + i)) : uniform();
  }

  void control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) override {
    double squares = 0;
    for (std::size_t i = 0; i < action.size(); ++i) {
      const auto a = static_cast<double>(action[i]);
      squares += a * a;
      ctrl[i] = a;  // the engine clips it to the motor's range
    }
    before_[static_cast<std::size_t>(env)] = now.qpos[0];
    cost_[static_cast<std::size_t>(env)] = task_.ctrl_cost_weight * squares;
  }

  void observe(int, const EnvState& now, ObservationRows& out) override {
    const std::span<float> qpos = out[0], qvel = out[1];
    for (std::size_t i = 0; i < qpos.size(); ++i)
      qpos[i] = static_cast<float>(now.qpos[i + static_cast<std::size_t>(task_.skipped_qpos)]);
    for (std::size_t i = 0; i < qvel.size(); ++i)
      qvel[i] = static_cast<float>(std::clamp(now.qvel[i], -task_.velocity_limit, task_.velocity_limit));
  }

  bool healthy(const EnvState& now) const {
    if (task_.pendulum) return std::abs(now.qpos[1]) <= task_.largest_angle;
    if (!(now.qpos[1] > task_.low_z && now.qpos[1] < task_.high_z)) return false;
    if (!(std::abs(now.qpos[2]) < task_.largest_angle)) return false;
    const auto small = [&](double x) { return std::abs(x) < task_.largest_state; };
    return std::all_of(now.qpos.begin() + 2, now.qpos.end(), small) &&
           std::all_of(now.qvel.begin(), now.qvel.end(), small);
  }

  Judgement judge(int env, const EnvState& now, std::span<float> terms) override {
    const auto e = static_cast<std::size_t>(env);
    const bool well = healthy(now);
    const bool can_fall = task_.healthy_reward > 0;
    if (!terms.empty()) {
      const auto survive = static_cast<float>(well ? task_.healthy_reward : 0.0);
      if (task_.pendulum) {
        terms[0] = survive;
      } else {
        terms[0] = static_cast<float>(task_.forward_weight * (now.qpos[0] - before_[e]) / task_.period);
        terms[1] = static_cast<float>(-cost_[e]);
        if (can_fall) terms[2] = survive;
      }
    }
    return {.success = false, .terminated = can_fall && !well};
  }

  const GymnasiumTask& task_;
  std::vector<double> before_, cost_;
};

}  // namespace

void register_gymnasium_tasks() {
  for (const GymnasiumTask& task : kGymnasiumTasks)
    register_task({.name = task.name, .summary = task.summary, .make = [&task](const TaskSettings& s) {
                     return std::make_unique<Gymnasium>(s, task);
                   }});
}

}  // namespace cohort::tasks
