/// Proximal policy optimization: what is done with a rollout.
///
///   Ppo ppo(networks, settings);
///   rollout.compute_returns(last_values, settings.gamma, settings.lam);
///   const PpoLosses losses = ppo.update(rollout, [&](int epoch) { return shuffled_order(n, seed, epoch); });
///
/// Networks with memory learn from whole environments, through all steps of the rollout, as rsl_rl's do: order() then
/// gives environments.
///
/// With bf16 the forward passes of actor and critic run under autocast, their last layers in float32, so that values of
/// 100 are not rounded to halves; weights, probabilities, losses, gradients and the optimizer are in float32. A policy
/// acts in float32. What was then probable is computed again at the beginning of an update by the passes that learn, and
/// so are means and values, so that the ratio is 1 in the first minibatch. Without that rounding alone moves it: on the
/// cart-pole mean |ratio - 1| is 0.0004 with a deviation of 1 and 0.008 with one of 0.17, and at most 0.008 and 0.17, which
/// is nearly clip_param.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/thread_team.h"
#include "parallel/strategy.h"
#include "rl/actor_critic.h"
#include "rl/fused_gru.h"
#include "rl/fused_mlp.h"
#include "rl/rollout.h"
#include "rl/settings.h"
#include "train/ema.h"
#include "train/optimizer.h"
#include "train/precision.h"

namespace cohort::rl {

/// Means over the minibatches of an update.
struct PpoLosses {
  double surrogate = 0, value = 0, entropy = 0;
  double loss = 0;  ///< what was lowered: surrogate + value_loss_coef value - entropy_coef entropy
  double kl = 0;    ///< of the last minibatch: how far the policy has gone
  double actor_norm = 0, critic_norm = 0;  ///< of the gradients, before clipping
  /// What was not finite; then nothing was changed from there on, and the weights are no good. Empty: all is well.
  std::string diverged;
};

/// -min(A r, A clip(r, 1 - c, 1 + c)), the mean: eq. 7 of the paper, negative. All (B).
at::Tensor surrogate_loss(const at::Tensor& log_probs, const at::Tensor& old_log_probs, const at::Tensor& advantages,
                          double clip_param);
/// Mean squared error; with clipped the larger one of it and that of values which move by clip_param at most. All (B).
at::Tensor value_loss(const at::Tensor& values, const at::Tensor& old_values, const at::Tensor& returns, bool clipped,
                      double clip_param);

/// What a Ppo learns with.
struct PpoOptions {
  /// Around the networks: averages gradients over devices and processes; null: this process's device alone.
  parallel::Strategy* strategy = nullptr;
  int threads = 1;            ///< cores for networks that FusedMlp computes; the bits are the same for any number
  train::Ema* ema = nullptr;  ///< follows the weights: updated after each step of the optimizer; null: none
  train::Precision precision = train::Precision::kFp32;  ///< of the forward passes, kFp32 or kBf16
};

class Ppo {
 public:
  Ppo(ActorCritic& networks, const PpoSettings& settings, const PpoOptions& options = {});

  /// order(epoch): a permutation of the rollout's transitions, (T N) int64, with step t of environment n at t N + n; for
  /// networks with memory of its environments, (N).
  /// The networks' moments stay as they are. Losses, KL and gradients are means over the minibatches of all ranks.
  PpoLosses update(const Rollout& rollout, const std::function<at::Tensor(int epoch)>& order);

  double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate) { learning_rate_ = rate; }
  train::Optimizer& optimizer() { return optimizer_; }
  /// The weights were changed by somebody else.
  void weights_changed();
  /// The threads that learn, for who acts meanwhile.
  ThreadTeam& team() { return *team_; }

 private:
  /// A minibatch: tensors in the order of Rollout's, transitions (B, ...), or with memory environments (B, T, ...).
  struct Minibatch {
    at::Tensor observations, actions, old_means, old_log_probs, old_values, advantages, returns;
    at::Tensor keep, actor_memory, critic_memory;  ///< (B, T), (B, layers, H); undefined without memory
  };
  static const std::vector<std::pair<const char*, at::Tensor Minibatch::*>> kFields;
  /// With autograd, float32.
  at::Tensor means_of(const ActorCritic& networks, const Minibatch& batch) const;
  at::Tensor values_of(const ActorCritic& networks, const Minibatch& batch) const;
  /// What the old policy said of `all`, by the passes that learn, `size` rows at a time.
  void compute_old_again(Minibatch& all, const at::Tensor& old_log_std, std::int64_t size) const;
  /// Loss, surrogate, value, entropy, KL: (5) with a graph.
  at::Tensor figures_of(const ActorCritic& networks, const Minibatch& batch, const at::Tensor& mean,
                        const at::Tensor& value, const at::Tensor& old_log_std) const;
  /// Fills the gradients, the means over devices and processes; gives the figures, likewise, (5) float64.
  at::Tensor backward(const Minibatch& batch, const at::Tensor& old_log_std);
  /// Adds to the gradients without autograd; gives the figures, (5) without a graph.
  at::Tensor fused_backward(const Minibatch& batch, const at::Tensor& old_log_std);
  /// figures_of() by fused_backward().
  at::Tensor fused_figures(const Minibatch& batch, const at::Tensor& old_log_std);
  at::Tensor entropy_of(const ActorCritic& networks, const Minibatch& batch, const at::Tensor& old_log_std,
                        const at::Tensor& mean) const;
  Minibatch whole(const Rollout& rollout) const;
  Minibatch pick(const Minibatch& all, const at::Tensor& rows) const;
  at::Tensor pick(const at::Tensor& x, const at::Tensor& rows) const;

  /// Actor or critic, computed outside of autograd.
  struct FusedNetwork {
    FusedNetwork(const Gru* memory, const Mlp& mlp, FusedMlp::Activation activation,
                 const std::shared_ptr<ThreadTeam>& team);
    /// As ActorCritic::means(); without memory (B, in) -> (B, out).
    at::Tensor forward(const at::Tensor& seen, const at::Tensor& state, const at::Tensor& keep);
    /// Adds to .grad.
    void backward(const at::Tensor& gradient);
    std::optional<FusedGru> gru;
    FusedMlp mlp;
  };

  ActorCritic& networks_;
  /// Listed once: walking the modules takes longer than the step of a small network.
  const std::vector<at::Tensor> parameters_, actor_parameters_, critic_parameters_;
  PpoSettings settings_;
  std::unique_ptr<parallel::Strategy> own_strategy_;
  parallel::Strategy& strategy_;
  train::Ema* ema_;
  train::Precision precision_;
  std::shared_ptr<ThreadTeam> team_;
  std::optional<FusedNetwork> fused_actor_, fused_critic_;
  double learning_rate_;
  train::Optimizer optimizer_;
};

}  // namespace cohort::rl
