/// The networks of PPO: an actor whose outputs are the means of a Gaussian over actions, a critic that estimates what a
/// state is worth, and the moments by which both normalise what they see.
///
///   ActorCritic networks(settings, task.spec(), /*seed=*/1);
///   at::Tensor seen = networks.normalize(observations);          // (n, O)
///   at::Tensor mean = networks.mean(seen), value = networks.value(seen);
///   at::Tensor actions = networks.to_task(mean);                 // between the task's bounds where |mean| <= 1
///
/// Names of weights: actor.0.weight, actor.0.bias, actor.2.weight, ..., critic.*, log_std; of buffers:
/// observations.count, .mean, .m2, action_offset, action_scale.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/initialise.h"
#include "rl/running_moments.h"
#include "rl/settings.h"
#include "tasks/task.h"

namespace cohort::rl {

/// Linear layers with an activation between them; layer i of the parameters is called 2i, as in PyTorch's Sequential.
class Mlp : public torch::nn::Module {
 public:
  Mlp(std::int64_t in, const std::vector<int>& hidden, std::int64_t out, const std::string& activation);
  ~Mlp() override;
  at::Tensor forward(at::Tensor x) const;

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

class ActorCritic : public torch::nn::Module, public models::Initialised {
 public:
  /// Weights are drawn from `seed`; PyTorch's initial distributions.
  ActorCritic(const PolicySettings& settings, const tasks::TaskSpec& task, std::uint64_t seed);

  /// All fields of an environment side by side, (n, O) -> (n, O).
  at::Tensor normalize(const at::Tensor& observations) const;
  at::Tensor mean(const at::Tensor& normalised) const { return actor_->forward(normalised); }  ///< (n, O) -> (n, A)
  at::Tensor value(const at::Tensor& normalised) const {                                       ///< (n, O) -> (n)
    return critic_->forward(normalised).squeeze(-1);
  }
  const at::Tensor& log_std() const { return log_std_; }  ///< (A)
  /// From the actor's unit, in which -1 and 1 are the task's bounds, to the task's; it clips what lies outside. Where
  /// a bound is not finite the units are the same.
  at::Tensor to_task(const at::Tensor& actions) const { return actions * action_scale_ + action_offset_; }

  RunningMoments& moments() { return *moments_; }
  std::int64_t observation_width() const { return moments_->mean().size(0); }
  std::int64_t action_width() const { return log_std_.size(0); }
  /// What each network's optimizer step clips for itself.
  std::vector<at::Tensor> actor_parameters() const;
  std::vector<at::Tensor> critic_parameters() const { return critic_->parameters(); }

  void initialise(models::Initialiser& initialiser) override;

 private:
  PolicySettings settings_;
  std::shared_ptr<Mlp> actor_, critic_;
  std::shared_ptr<RunningMoments> moments_;
  at::Tensor log_std_, action_offset_, action_scale_;
};

/// Width of all observations of a task side by side.
std::int64_t observation_width(const tasks::TaskSpec& task);
/// (n, O) float32 of a task's present observations, in the order of its spec; a copy.
at::Tensor read_observations(tasks::Task& task);

}  // namespace cohort::rl
