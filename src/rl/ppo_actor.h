/// A policy that `cohort train ppo` has trained, as it acts: the mean action of what it sees, without noise.
///
///   const auto task = tasks::make_task("cartpole-balance", {.n_envs = 64});
///   PpoActor actor("outputs/ppo/latest", *task);     // a run, a folder of checkpoints, or a checkpoint
///   actor.act(*task, envs, actions);                 // as any Actor (tasks/actor.h)
///
/// The checkpoint's model.safetensors holds all of it: weights, the observations' moments, offset and scale of actions;
/// so does ema/model.safetensors with the weights' moving average, which acts where there is one.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rl/actor_critic.h"
#include "tasks/actor.h"

namespace cohort::rl {

/// Whether `path` (a run, a folder of checkpoints, or a checkpoint) is one that `cohort train ppo` wrote.
bool is_ppo_run(const std::filesystem::path& path);

/// What a run of `cohort train ppo` has learnt.
struct PpoTask {
  std::string name, engine;
  std::vector<std::string> settings;  ///< key=value
};
/// Throws Error where there is no checkpoint of PPO.
PpoTask task_of_ppo_run(const std::filesystem::path& path);

class PpoActor final : public tasks::Actor {
 public:
  /// averaged = false: the weights themselves, also where there is an average. Throws Error where there is no checkpoint
  /// of PPO, or where its observations or actions are not the task's.
  PpoActor(const std::filesystem::path& path, const tasks::Task& task, bool averaged = true);
  /// Networks that are at hand, e.g. while they learn.
  PpoActor(std::shared_ptr<const ActorCritic> networks, std::string name);

  std::string name() const override { return name_; }
  /// A line for logs: which checkpoint of which task.
  const std::string& summary() const { return summary_; }
  /// In what this task differs from the one that it has learnt: another task, or settings of it that the training
  /// gave; a line each. Empty where it is the same.
  const std::vector<std::string>& differences() const { return differences_; }
  /// Forgets what these environments' last episodes were (policies with memory).
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds, const std::string&) override;
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override;
  /// Observations of the task that it does not look at.
  const std::vector<std::string>& unseen() const { return networks_->settings().critic_only; }
  /// Whether it is recurrent: it must see every step.
  bool remembers() const;
  /// The same networks, and no environment yet.
  PpoActor another() const { return PpoActor(networks_, name_); }

 private:
  std::shared_ptr<const ActorCritic> networks_;
  std::string name_, summary_;
  std::vector<std::string> differences_;
  at::Tensor memory_;  // (layers, environments so far, H); undefined without memory
};

}  // namespace cohort::rl
