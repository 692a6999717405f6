/// PPO's losses of a minibatch and their derivatives in one pass over its rows, where autograd takes some sixty. On the
/// CPU, for Gaussian actions.
///
///   const FusedLosses found = fused_losses({.mean = mean, ...}, settings, team);
///   actor_pass.backward(found.d_mean);
///
/// The formulas are those of surrogate_loss(), value_loss() (ppo.h) and gaussian.h. The same bits for any number of
/// threads.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/thread_team.h"
#include "rl/settings.h"

namespace cohort::rl {

/// All float32; rows (R): transitions in any order, the same for all.
struct LossInputs {
  at::Tensor mean, value;                ///< (R, A), (R): what the networks say now
  at::Tensor log_std, old_log_std;       ///< (A)
  at::Tensor actions, old_means;         ///< (R, A)
  at::Tensor old_log_probs, old_values;  ///< (R)
  at::Tensor advantages, returns;        ///< (R)
};

struct FusedLosses {
  at::Tensor figures;          ///< (5): loss, surrogate, value, entropy, KL
  at::Tensor d_mean, d_value;  ///< of the loss: (R, A), (R)
  at::Tensor d_log_std;        ///< (A)
};

FusedLosses fused_losses(const LossInputs& inputs, const PpoSettings& settings, ThreadTeam& team);

}  // namespace cohort::rl
