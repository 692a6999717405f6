#include "tasks/gymnasium/gymnasium_task.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/files.h"
#include "core/format.h"
#include "core/program_folder.h"
#include "tasks/registry.h"

namespace cohort::tasks {
namespace {

std::size_t env_index(int env) {
  return static_cast<std::size_t>(env);
}

/// COHORT_GYMNASIUM_ASSETS; else the copy beside an installed program; else where set-up has put it.
std::filesystem::path assets_folder() {
  namespace fs = std::filesystem;
  if (const char* named = std::getenv("COHORT_GYMNASIUM_ASSETS"); named && *named) return named;
  std::error_code unknown;
  if (const fs::path programs = program_folder(); !programs.empty()) {
    fs::path installed = programs.parent_path() / COHORT_GYMNASIUM_INSTALLED;
    if (fs::is_directory(installed, unknown)) return installed;
  }
  return COHORT_GYMNASIUM_ASSETS;
}

}  // namespace

std::string gymnasium_model(const GymnasiumModel& model) {
  std::error_code unknown;
  const std::filesystem::path file = assets_folder() / model.file;
  COHORT_THROW_UNLESS(
      std::filesystem::exists(file, unknown),
      "{}: its model is part of gymnasium, and {} is not there: `scripts/setup` brings it, or "
      "set COHORT_GYMNASIUM_ASSETS to the folder gymnasium/envs/mujoco/assets of an installed gymnasium",
      model.name, file.string());
  return read_file(file);
}

namespace {

std::string summary_of(const GymnasiumModel& model) {
  return format("gymnasium's: {}", model.summary);
}

SceneTaskSettings defaults_of(const GymnasiumModel& model) {
  SceneTaskSettings defaults;
  defaults.horizon = model.horizon;
  defaults.end_on_success = false;  // there is none
  return defaults;
}

}  // namespace

void register_gymnasium(const GymnasiumModel& model, std::function<std::unique_ptr<Task>(const TaskSettings&)> make,
                        std::vector<std::string> ppo) {
  register_task({.name = model.name,
                 .summary = summary_of(model),
                 .make = std::move(make),
                 .settings = [&model] { return fields_of(defaults_of(model)); },
                 .ppo = std::move(ppo)});
}

std::vector<std::string> rl_games_ppo(const std::string& hidden_dims, std::vector<std::string> more) {
  std::vector<std::string> ppo{"n_envs=64",
                               "num_steps_per_env=64",
                               "reward_scale=0.1",
                               "init_at_random_ep_len=true",
                               "policy.actor_hidden_dims=" + hidden_dims,
                               "policy.critic_hidden_dims=" + hidden_dims,
                               "algorithm.num_learning_epochs=4",
                               "algorithm.learning_rate=3e-4",
                               "algorithm.desired_kl=0.008",
                               "algorithm.entropy_coef=0"};
  ppo.insert(ppo.end(), more.begin(), more.end());
  return ppo;
}

std::vector<std::string> cleanrl_ppo(std::vector<std::string> more) {
  std::vector<std::string> ppo{"n_envs=64",
                               "num_steps_per_env=32",
                               "init_at_random_ep_len=true",
                               "max_iterations=488",
                               "policy.actor_hidden_dims=[64,64]",
                               "policy.critic_hidden_dims=[64,64]",
                               "policy.activation=tanh",
                               "algorithm.num_learning_epochs=10",
                               "algorithm.num_mini_batches=32",
                               "algorithm.learning_rate=3e-4",
                               "algorithm.schedule=fixed",
                               "algorithm.entropy_coef=0",
                               "algorithm.max_grad_norm=0.5"};
  ppo.insert(ppo.end(), more.begin(), more.end());
  return ppo;
}

SceneTaskSetup gymnasium_setup(const TaskSettings& settings, const GymnasiumModel& model) {
  SceneTaskSettings own = defaults_of(model);
  SceneTaskSetup setup = read_settings(settings, own);
  TaskSpec& spec = setup.spec;
  spec.name = model.name;
  spec.summary = summary_of(model);
  spec.instruction = model.summary;
  if (model.has_camera) spec.cameras = {"track"};
  for (int i = 0; i < model.nu; ++i) {
    spec.action.names.push_back(format("motor{}", i));
    spec.action.low.push_back(-model.high);
    spec.action.high.push_back(model.high);
  }
  spec.action.unit = "of each motor's gear; costs are those of the actions before they are clipped";
  spec.control_period = model.period;
  setup.clip_actions = false;
  setup.mjcf = gymnasium_model(model);
  return setup;
}

GymnasiumTask::GymnasiumTask(const TaskSettings& settings, const GymnasiumModel& model, SceneTaskSetup setup)
    : SceneTask(settings, setup), period_(model.period), before_(env_index(n_envs())), squares_(env_index(n_envs())) {
  const sim::ModelInfo& info = scene().info();
  COHORT_THROW_UNLESS(info.nq == model.nq && info.nv == model.nv && info.nu == model.nu,
                      "{}: {} is another model than gymnasium 1.4's: nq {}, nv {}, nu {}", model.name, model.file,
                      info.nq, info.nv, info.nu);
  derived_at_ = {0};
  for (const sim::Field field : setup.leaves)
    derived_at_.push_back(derived_at_.back() + static_cast<std::size_t>(sim::field_size(info, field)));
}

std::span<const double> GymnasiumTask::derived(const EnvState& now, std::size_t i) const {
  return now.derived.subspan(derived_at_[i], derived_at_[i + 1] - derived_at_[i]);
}

std::span<const double> GymnasiumTask::derived_point(const EnvState& now, std::size_t i, int link) const {
  return derived(now, i).subspan(3 * static_cast<std::size_t>(link), 3);
}

double GymnasiumTask::speed(int env, const EnvState& now) const {
  return (position(now) - before_[env_index(env)]) / period_;
}

void GymnasiumTask::control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) {
  double squares = 0;
  for (std::size_t i = 0; i < action.size(); ++i) {
    const auto a = static_cast<double>(action[i]);
    squares += a * a;
    ctrl[i] = a;  // the engine clips it to the motor's range
  }
  squares_[env_index(env)] = squares;
  before_[env_index(env)] = position(now);
}

void GymnasiumTask::observe_numbers(std::span<const double> values, double limit, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(std::clamp(values[i], -limit, limit));
}

void GymnasiumTask::observe_state(const EnvState& now, std::size_t skip, double limit, ObservationRows& out) {
  const std::span<float> qpos = out[0];
  for (std::size_t i = 0; i < qpos.size(); ++i) qpos[i] = static_cast<float>(now.qpos[i + skip]);
  observe_numbers(now.qvel, limit, out[1]);
}

void GymnasiumTask::add_uniform(std::span<double> values, double scale, const RandomStream& random,
                                std::uint64_t first) {
  for (double& value : values) value += scale * (2.0 * static_cast<double>(random.uniform(first++)) - 1.0);
}

void GymnasiumTask::add_normal(std::span<double> values, double scale, const RandomStream& random) {
  // Normal numbers take four words each.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * static_cast<double>(random.normal(1000 + i));
}

}  // namespace cohort::tasks
