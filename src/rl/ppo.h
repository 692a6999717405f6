/// Proximal policy optimization: what is done with a rollout.
///
///   Ppo ppo(networks, settings);
///   rollout.compute_returns(last_values, settings.gamma, settings.lam);
///   const PpoLosses losses = ppo.update(rollout, [&](int epoch) { return shuffled_order(n, seed, epoch); });
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rl/actor_critic.h"
#include "rl/fused_mlp.h"
#include "rl/ranks.h"
#include "rl/rollout.h"
#include "rl/settings.h"
#include "train/optimizer.h"

namespace cohort::rl {

/// Means over the minibatches of an update.
struct PpoLosses {
  double surrogate = 0, value = 0, entropy = 0;
  double loss = 0;  ///< what was lowered: surrogate + value_loss_coef value - entropy_coef entropy
  double kl = 0;    ///< of the last minibatch: how far the policy has gone
  double actor_norm = 0, critic_norm = 0;  ///< of the gradients, before clipping
  /// What was not finite; then the update ended there, and the weights are no good. Empty: all is well.
  std::string diverged;
};

/// -min(A r, A clip(r, 1 - c, 1 + c)), the mean: eq. 7 of the paper, negative. All (B).
at::Tensor surrogate_loss(const at::Tensor& log_probs, const at::Tensor& old_log_probs, const at::Tensor& advantages,
                          double clip_param);
/// Mean squared error; with clipped the larger one of it and that of values which move by clip_param at most. All (B).
at::Tensor value_loss(const at::Tensor& values, const at::Tensor& old_values, const at::Tensor& returns, bool clipped,
                      double clip_param);

class Ppo {
 public:
  /// ranks: who learns with this process, each from its share of the environments; null: it is alone. threads: cores
  /// for networks that FusedMlp computes; the bits are the same for any number.
  Ppo(ActorCritic& networks, const PpoSettings& settings, Ranks* ranks = nullptr, int threads = 1);

  /// order(epoch): a permutation of the rollout's transitions, (T N) int64, with step t of environment n at t N + n.
  /// The networks' moments stay as they are. Losses, KL and gradients are means over the minibatches of all ranks.
  PpoLosses update(const Rollout& rollout, const std::function<at::Tensor(int epoch)>& order);

  double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate) { learning_rate_ = rate; }
  train::Optimizer& optimizer() { return optimizer_; }

 private:
  /// A minibatch. Tensors in the order of Rollout's, rows picked.
  struct Minibatch {
    at::Tensor observations, actions, old_means, old_log_probs, old_values, advantages, returns;
  };
  /// Fills the gradients; gives figures: loss, surrogate, value, entropy, KL.
  at::Tensor backward(const Minibatch& batch, const at::Tensor& old_log_std);
  at::Tensor entropy_of(const Minibatch& batch, const at::Tensor& old_log_std, const at::Tensor& mean) const;
  /// Means of gradients and figures over the ranks.
  void reduce(at::Tensor& figures);
  void adapt_learning_rate(double kl);

  ActorCritic& networks_;
  PpoSettings settings_;
  Ranks* ranks_;
  std::optional<FusedMlp> actor_pass_, critic_pass_;
  double learning_rate_;
  train::Optimizer optimizer_;
};

}  // namespace cohort::rl
