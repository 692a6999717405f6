/// What PPO learns from: num_steps control steps of n environments.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "rl/ranks.h"

namespace cohort::rl {

/// Float32 throughout. T steps, N environments, O observations, A actions.
struct Rollout {
  Rollout(std::int64_t steps, std::int64_t n_envs, std::int64_t observation_width, std::int64_t action_width,
          at::Device device = at::kCPU);

  // Written by whoever collects, step by step.
  at::Tensor observations;  ///< (T, N, O), as the task gives them
  at::Tensor actions;       ///< (T, N, A), in the actor's unit, before clipping
  at::Tensor means;         ///< (T, N, A) of the Gaussian that they were drawn from
  at::Tensor log_std;       ///< (A) likewise
  at::Tensor log_probs;     ///< (T, N) of the actions
  at::Tensor values;        ///< (T, N)
  at::Tensor rewards;       ///< (T, N), scaled; where an episode was cut off, with gamma times the value of its end
  at::Tensor dones;         ///< (T, N), 1 where the episode ended with this step, however it ended
  at::Tensor actor_memory, critic_memory;  ///< (layers, N, H) before the first step; undefined without memory

  /// (T, N): 0 where an episode begins with a step, but for the first step, which the memories speak of.
  at::Tensor keep() const;

  // Written by compute_returns().
  at::Tensor advantages;  ///< (T, N), of mean 0 and deviation 1
  at::Tensor returns;     ///< (T, N)

  std::int64_t steps() const { return rewards.size(0); }
  std::int64_t transitions() const { return rewards.numel(); }

  /// Generalized advantage estimation (Schulman et al., "High-dimensional continuous control using generalized
  /// advantage estimation", 2015, eq. 16). last_values (N): of the states behind the last step.
  /// shares: with whom mean and deviation of the advantages are formed; null: of this rollout alone.
  void compute_returns(const at::Tensor& last_values, double gamma, double lam, const Shares* shares = nullptr);
};

/// The order in which a pass over `n` transitions takes them, (n) int64: a permutation keyed by seed, pass and block
/// alone (Fisher and Yates's shuffle).
at::Tensor shuffled_order(std::int64_t n, std::uint64_t seed, std::int64_t pass, std::uint64_t block = 0);

}  // namespace cohort::rl
