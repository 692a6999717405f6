/// A policy that `cohort train ppo` has trained, as it acts (policy/policy.h): the mean action of what it sees, without noise.
///
///   const auto policy = load_ppo_policy("outputs/ppo/latest", {});   // a run, a folder of checkpoints, or a checkpoint
///   actor::PolicyActor actor(*policy, *task, "ppo");
///
/// The checkpoint's model.safetensors holds all of it: weights, the observations' moments, offset and scale of actions;
/// so does ema/model.safetensors with the weights' moving average, which acts where there is one. What the observations are
/// called it does not hold: it takes all of a task but for those of the critic alone, if they are as many numbers.
#pragma once
#include <filesystem>
#include <memory>

#include "policy/registry.h"
#include "rl/actor_critic.h"

namespace cohort::rl {

/// Whether `path` (a run, a folder of checkpoints, or a checkpoint) is one that `cohort train ppo` wrote.
bool is_ppo_run(const std::filesystem::path& path);

/// What a checkpoint holds of whom it can act.
struct PpoCheckpoint {
  std::filesystem::path path;  ///< the checkpoint's own
  std::shared_ptr<const ActorCritic> networks;
  bool averaged = false;  ///< the networks are those of the weights' moving average
  std::string task;       ///< as its run named it: a name, or a file's path
  policy::LearntTask learnt;
  std::int64_t iteration = 0, control_steps = 0;
};
/// takes_average: the moving average, where there is one. Throws Error where there is no checkpoint of PPO.
PpoCheckpoint read_ppo_checkpoint(const std::filesystem::path& path, bool takes_average = true);
/// The task of that name (PpoCheckpoint::task), as it was set, with one environment. Throws Error as tasks::make_task()
/// does.
std::unique_ptr<tasks::Task> make_learnt_task(const std::string& name, const policy::LearntTask& learnt);

/// settings.averaged = false: the weights themselves, also where there is an average. settings.alone: the task that it has
/// learnt is made, whose observations and actions the spec then names. Throws Error where there is no checkpoint of PPO.
std::unique_ptr<policy::Policy> load_ppo_policy(const std::filesystem::path& path,
                                                const policy::LoadSettings& settings);
/// Networks that are at hand, e.g. while they learn.
std::unique_ptr<policy::Policy> ppo_policy(std::shared_ptr<const ActorCritic> networks);

/// policy::load() takes runs and checkpoints of `cohort train ppo`.
void register_ppo_policies();

}  // namespace cohort::rl
