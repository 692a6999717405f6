/// The networks of PPO: an actor whose outputs are the means of a Gaussian over actions, a critic that estimates what a
/// state is worth, and the moments by which both normalise what they see.
///
///   ActorCritic networks(settings, task.spec(), /*seed=*/1);
///   at::Tensor seen = networks.normalize(observations);          // (n, O)
///   at::Tensor mean = networks.mean(seen), value = networks.value(seen);
///   at::Tensor actions = networks.to_task(mean);                 // between the task's bounds where |mean| <= 1
///
/// Names of weights: actor.0.weight, actor.0.bias, actor.2.weight, ..., critic.*, log_std; of buffers:
/// observations.count, .mean, .m2, action_offset, action_scale; actor_columns where the critic sees more than the
/// actor. With memory (PolicySettings::recurrent) also actor_memory.* and critic_memory.*, named as in gru.h: an MLP sees
/// what its memory makes of the observations.
///
///   NetworkMemory memory = networks.begin(n);                    // of n environments whose episodes begin
///   mean = networks.mean(seen, memory.actor);                    // a control step; memory is then that of after it
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/initialise.h"
#include "rl/gru.h"
#include "rl/running_moments.h"
#include "rl/settings.h"
#include "tasks/task.h"

namespace cohort::rl {

/// Linear layers with an activation between them; layer i of the parameters is called 2i, as in PyTorch's Sequential.
class Mlp : public torch::nn::Module {
 public:
  Mlp(std::int64_t in, const std::vector<int>& hidden, std::int64_t out, const std::string& activation);
  ~Mlp() override;
  /// (n, in) -> (n, out). Under autocast the last layer stays in float32.
  at::Tensor forward(at::Tensor x) const;
  /// Weight and bias of each layer, in order.
  std::vector<std::pair<at::Tensor, at::Tensor>> parameters_of_layers() const;

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

/// What of an environment's observations, all side by side, who sees: the critic everything, the actor these columns.
struct ObservationLayout {
  std::int64_t width = 0;
  std::vector<std::int64_t> actor_columns;  ///< ascending
};
/// Throws Error for a name in settings.critic_only that the task does not observe, and where nothing is left.
ObservationLayout observation_layout(const PolicySettings& settings, const tasks::TaskSpec& task);

/// What an environment's networks remember, each (layers, n, H); undefined for networks without memory.
struct NetworkMemory {
  at::Tensor actor, critic;
  /// Forgets where dones (n) is 1.
  void forget(const at::Tensor& dones);
};

/// x (n, W) with rows of zeros up to a multiple of 16: LibTorch gives a row other bits in smaller batches and in tails.
at::Tensor whole_rows(const at::Tensor& x);

class ActorCritic : public torch::nn::Module, public models::Initialised {
 public:
  /// Weights are drawn from `seed`; PyTorch's initial distributions.
  ActorCritic(const PolicySettings& settings, const tasks::TaskSpec& task, std::uint64_t seed);
  /// For weights that are read: the task may lack what only the critic sees.
  ActorCritic(const PolicySettings& settings, const ObservationLayout& layout, const tasks::ActionSpec& action,
              std::uint64_t seed);

  /// All fields of an environment side by side, (n, O) -> (n, O).
  at::Tensor normalize(const at::Tensor& observations) const;
  /// What the actor sees of it, (n, O) -> (n, Oa); the same tensor where that is all.
  at::Tensor for_actor(const at::Tensor& normalised) const;
  at::Tensor mean(const at::Tensor& normalised) const {  ///< (n, O) -> (n, A), without memory
    return actor_->forward(for_actor(normalised));
  }
  at::Tensor value(const at::Tensor& normalised) const {  ///< (n, O) -> (n), without memory
    return critic_->forward(normalised).squeeze(-1);
  }

  bool recurrent() const { return settings_.recurrent(); }
  /// Memory of n environments that have seen nothing.
  NetworkMemory begin(std::int64_t n) const;
  /// A control step of environments, without autograd: `memory`, NetworkMemory's of that network, is then that of after
  /// it. Without memory as above. A row's bits do not depend on the others where their number is a multiple of 16.
  at::Tensor mean(const at::Tensor& normalised, at::Tensor& memory) const;
  at::Tensor value(const at::Tensor& normalised, at::Tensor& memory) const;
  /// Of who has only the actor's columns, not normalised: (n, Oa) -> (n, A).
  at::Tensor mean_of_actors_observations(const at::Tensor& observations, at::Tensor& memory) const;
  /// Several steps with autograd: normalised (B, T, O) -> (B, T, A) and (B, T). memory: before the first step,
  /// (layers, B, H); keep (B, T): 0 where an episode begins.
  at::Tensor means(const at::Tensor& normalised, const at::Tensor& memory, const at::Tensor& keep) const;
  at::Tensor values(const at::Tensor& normalised, const at::Tensor& memory, const at::Tensor& keep) const;

  const at::Tensor& log_std() const { return log_std_; }  ///< (A)
  /// From the actor's unit, in which -1 and 1 are the task's bounds, to the task's; it clips what lies outside. Where
  /// a bound is not finite the units are the same. A squashed distribution's numbers go through tanh first.
  at::Tensor to_task(const at::Tensor& actions) const {
    return (squashed() ? actions.tanh() : actions) * action_scale_ + action_offset_;
  }
  const at::Tensor& action_scale() const { return action_scale_; }    ///< (A)
  const at::Tensor& action_offset() const { return action_offset_; }  ///< (A)
  /// What the actor's observations are made normal by, each (Oa): (x - first) / second.
  std::pair<at::Tensor, at::Tensor> actors_normalisation() const;
  bool squashed() const { return settings_.distribution == "squashed"; }

  RunningMoments& moments() { return *moments_; }
  std::int64_t observation_width() const { return moments_->mean().size(0); }
  std::int64_t actor_width() const { return actor_columns_.size(0); }
  std::int64_t action_width() const { return log_std_.size(0); }
  const PolicySettings& settings() const { return settings_; }
  const Mlp& actor() const { return *actor_; }
  const Mlp& critic() const { return *critic_; }
  /// Null without memory.
  const Gru* actor_memory() const { return actor_memory_.get(); }
  const Gru* critic_memory() const { return critic_memory_.get(); }
  /// What each network's optimizer step clips for itself.
  std::vector<at::Tensor> actor_parameters() const;
  std::vector<at::Tensor> critic_parameters() const;

  void initialise(models::Initialiser& initialiser) override;

 private:
  PolicySettings settings_;
  std::shared_ptr<Gru> actor_memory_, critic_memory_;
  std::shared_ptr<Mlp> actor_, critic_;
  std::shared_ptr<RunningMoments> moments_;
  at::Tensor log_std_, action_offset_, action_scale_, actor_columns_;
};

/// Width of all observations of a task side by side.
std::int64_t observation_width(const tasks::TaskSpec& task);
/// (n, O) float32 of a task's present observations, in the order of its spec; a copy. Without the fields of these
/// names.
at::Tensor read_observations(tasks::Task& task, const std::vector<std::string>& except = {});

}  // namespace cohort::rl
