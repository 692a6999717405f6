/// PPO on a task: rollouts and updates in turn. What it is made of can be called one by one, too (ppo.h, rollout.h,
/// environments.h).
///
///   PpoRunner runner(*task, {.max_iterations = 100}, {}, {});
///   while (runner.iteration() < 100) {
///     const Iteration figures = runner.iterate();
///     figures.episodes.mean_return;
///   }
///   const auto policy = ppo_policy(runner.networks());         // ppo_policy.h
///
/// The same settings give the same bits for any number of the simulator's threads and of PpoResources's; LibTorch's own
/// threads are another matter (at::set_num_threads). Several ranks with a share of the environments each give what one
/// with all of them does, but for the rounding of sums: the same actions until the first update, the same gradients to
/// 1e-5 in it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/array_view.h"
#include "core/error.h"
#include "parallel/strategy.h"
#include "rl/actor_critic.h"
#include "rl/environments.h"
#include "rl/ppo.h"
#include "rl/ranks.h"
#include "rl/rollout.h"
#include "rl/settings.h"
#include "run/initial_weights.h"
#include "tasks/task.h"
#include "train/ema.h"
#include "weights/checkpoint.h"

namespace cohort::rl {

/// The losses are not finite any more: the networks are no good.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// What an iteration did.
struct Iteration {
  std::int64_t number = 0;  ///< from 1
  std::int64_t steps = 0;   ///< control steps of all environments since the beginning
  PpoLosses losses;
  Environments::Episodes episodes;
  /// Name and mean over the rollout's control steps of each of the task's reward terms; empty where it does not show
  /// them.
  std::vector<std::pair<std::string, double>> reward_terms;
  /// Name and mean of each of the task's metrics; without those that had no number in this iteration.
  std::vector<std::pair<std::string, double>> metrics;
  double learning_rate = 0;
  double noise_std = 0;                     ///< mean over the actions
  double collecting_s = 0, learning_s = 0;  ///< s
  double simulating_s = 0;                  ///< s of collecting_s: the task's steps and resets; the rest is acting
};

/// Where PPO stands between two iterations, beside weights, their average and the optimizer's moments: plain values, each
/// named once. Checkpoints hold them among the tensors that are not weights.
struct PpoState {
  double learning_rate = 0;
  /// Of all ranks' environments, in the order of their ids: "envs." and a name (Environments::state), and what the
  /// networks remember of each, (N, layers, H).
  weights::NamedTensors environments;

  template <class Self, class Visitor>
  static void visit(Self& s, Visitor&& v) {
    v("ppo.learning_rate", s.learning_rate);
    v("envs.", s.environments);
  }
};

/// What a runner learns on, and with whom.
struct PpoResources {
  Ranks* ranks = nullptr;  ///< null: this process alone
  int threads = 1;         ///< cores for learning on the CPU
  /// The first has networks and rollout; the task says its own. Several share every minibatch (parallel::DataParallel);
  /// on the CPU each then computes by LibTorch's own operations. Empty: the CPU.
  std::vector<DeviceId> devices;
  const DeviceTensors* device_tensors = nullptr;  ///< null: the real ones; tests give others
};

class PpoRunner {
 public:
  /// task: with this rank's share of the environments, equally many on each. It outlives the runner. Throws Error for
  /// settings that do not fit it.
  PpoRunner(tasks::Task& task, const RunnerSettings& settings, const PpoSettings& ppo, const PolicySettings& policy,
            const PpoResources& resources = {});
  ~PpoRunner();

  /// A rollout and its update. Throws Diverged.
  Iteration iterate();
  std::int64_t iteration() const { return iteration_; }
  /// Of the optimizer from here on; `adaptive` moves it on.
  void set_learning_rate(double rate) { ppo_.set_learning_rate(rate); }
  const std::shared_ptr<ActorCritic>& networks() const { return networks_; }
  /// The weights' moving average, or null: train::EmaWeightsGuard(runner.ema()) lets networks() hold it for a scope.
  train::Ema* ema() { return ema_ ? &*ema_ : nullptr; }
  Environments& environments() { return environments_; }

  /// What the last rollout was, and this rank's place among all; for tests and for who looks closer.
  const Rollout& rollout() const { return rollout_; }
  const Shares& shares() const { return shares_; }

  /// All that resume() needs, but for the configuration. The tensors are live. All ranks call it; all get the same, of
  /// the environments of all, so that any number of ranks can go on.
  weights::CheckpointContent checkpoint();
  /// Goes on where checkpoint() was taken, with the same bits: weights and their average (without one in the checkpoint
  /// it starts from the weights, with a warning), optimizer, moments, learning rate, environments, and what the networks
  /// remember of them. Throws Error naming `source` for one of other networks or environments.
  void resume(const weights::CheckpointContent& content, const std::string& source);
  /// Begins with the weights, and the statistics of observations, of another run. Throws Error naming what does not fit.
  void begin_with(const run::InitialWeights& weights);

 private:
  /// Means of the actions and values of (n, O), n a multiple of 16; memory_ is then that of after the step.
  std::pair<at::Tensor, at::Tensor> act(const at::Tensor& seen);
  /// A rollout. Returns the seconds of the simulation.
  double collect();
  Environments::Episodes episodes_of_all();
  std::vector<std::pair<std::string, double>> reward_terms_of_all();
  std::vector<std::pair<std::string, double>> metrics_of_all();
  /// Collective; the same on all ranks.
  PpoState state();
  void load(const PpoState& state, const std::string& source);
  void restore_memory(const weights::NamedTensors& environments, const std::string& source);

  Ranks alone_;
  Ranks& ranks_;
  tasks::Task& task_;
  RunnerSettings settings_;
  PpoSettings ppo_settings_;
  Shares shares_;
  at::Device device_;
  std::shared_ptr<ActorCritic> networks_;
  std::shared_ptr<parallel::Strategy> strategy_;
  std::optional<train::Ema> ema_;
  Ppo ppo_;
  Environments environments_;
  Rollout rollout_;
  NetworkMemory memory_;  // of the environments, rows up to a multiple of 16
  std::int64_t iteration_ = 0;
};

}  // namespace cohort::rl
