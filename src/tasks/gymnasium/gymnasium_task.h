/// What gymnasium's MuJoCo tasks of version 5 have in common: the model from gymnasium's wheel, its sizes and time
/// limit, costs of actions that are not clipped, a reward for getting forward. Observations, rewards, terminations and
/// the distribution of the reset noise are those of gymnasium 1.4 (gymnasium/envs/mujoco/*_v5.py); the noise itself
/// comes from our generator. Quantities that MuJoCo derives are those that mj_step left behind, as they are there.
///
///   class Runner final : public GymnasiumTask {
///     Runner(const TaskSettings& s) : GymnasiumTask(s, kRunner, runner_setup(s)) {}
///     double position(const EnvState& now) const override { return now.qpos[0]; }
///     ... start(), observe(), judge() of SceneTask
///   };
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tasks/scene_task.h"

namespace cohort::tasks {

/// What is known of a task before its model is compiled; the numbers are those of gymnasium's file and registry.
struct GymnasiumModel {
  const char* name;
  const char* file;     ///< in gymnasium/envs/mujoco/assets
  const char* summary;  ///< what is to be done
  double period;        ///< s: frame_skip times the model's timestep
  std::int64_t horizon = 1000;
  std::int64_t nq, nv;
  int nu;
  float high;               ///< of every action; the lower bound is its negative
  bool has_camera = false;  ///< one that is called `track`
};

/// Text of the model, from COHORT_GYMNASIUM_ASSETS, else from share/cohort/gymnasium of an installed prefix, else from
/// set-up's wheels. Throws Error, with the command that brings it, where it is not there.
std::string gymnasium_model(const GymnasiumModel& model);

/// Registers the task of this model.
void register_gymnasium(const GymnasiumModel& model, std::function<std::unique_ptr<Task>(const TaskSettings&)> make,
                        std::vector<std::string> ppo = {});

/// PPO's settings (TaskEntry::ppo) of rl_games for gymnasium's runners in many environments (Denys88/rl_games,
/// configs/mujoco/*_envpool.yaml), with hidden layers "[256,128,64]", and what is given behind them.
std::vector<std::string> rl_games_ppo(const std::string& hidden_dims, std::vector<std::string> more);
/// And of CleanRL for a million steps (vwxyzjn/cleanrl, ppo_continuous_action.py), its 2,048 steps of a rollout shared
/// out.
std::vector<std::string> cleanrl_ppo(std::vector<std::string> more = {});

/// All of a setup but observations and reward terms, with settings read.
SceneTaskSetup gymnasium_setup(const TaskSettings& settings, const GymnasiumModel& model);

class GymnasiumTask : public SceneTask {
 public:
  /// Throws Error where the file is another gymnasium's.
  GymnasiumTask(const TaskSettings& settings, const GymnasiumModel& model, SceneTaskSetup setup);

 protected:
  /// Where the forward reward is measured; read before and after a step.
  virtual double position(const EnvState&) const { return 0; }
  /// m/s, of position() over the last step.
  double speed(int env, const EnvState& now) const;
  /// Sum of the last action's squares.
  double action_squares(int env) const { return squares_[static_cast<std::size_t>(env)]; }
  /// SceneTaskSetup::leaves[i] of this state.
  std::span<const double> derived(const EnvState& now, std::size_t i) const;
  /// Of a link, x y z, in leaves[i], which has three numbers of each.
  std::span<const double> derived_point(const EnvState& now, std::size_t i, int link) const;

  /// qpos from `skip` on, and all of qvel within +-limit, to the first two fields.
  static void observe_state(const EnvState& now, std::size_t skip, double limit, ObservationRows& out);
  /// Numbers to a field, each within +-limit.
  static void observe_numbers(std::span<const double> values, double limit, std::span<float> out);
  /// Adds to every number what is uniform in +-scale, with the random numbers from `first` on.
  static void add_uniform(std::span<double> values, double scale, const RandomStream& random, std::uint64_t first);
  /// Adds normal noise of this deviation; of a stretch that uniform numbers do not reach.
  static void add_normal(std::span<double> values, double scale, const RandomStream& random);

 private:
  void control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) final;
  /// The tasks themselves remember nothing.
  void visit_variables(StateVisitor& state) final {
    state.add("position_before", before_);
    state.add("action_squares", squares_);
  }

  double period_;
  std::vector<double> before_, squares_;  // (n_envs)
  std::vector<std::size_t> derived_at_;   // where each of the leaves begins, and the end
};

}  // namespace cohort::tasks
