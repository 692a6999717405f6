/// Settings of PPO, under the names and with the defaults of rsl_rl (https://github.com/leggedrobotics/rsl_rl, 5.5).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"
#include "train/ema.h"
#include "train/precision.h"

namespace cohort::rl {

/// The networks: an actor and a critic, each an MLP; with memory, each behind a recurrent network of its own.
struct PolicySettings {
  std::string class_name = "ActorCritic";  ///< or ActorCriticRecurrent: with memory
  double init_noise_std = 1.0;             ///< of the actions at the start, in halves of the range between their bounds
  std::vector<int> actor_hidden_dims{256, 256, 256};
  std::vector<int> critic_hidden_dims{256, 256, 256};
  std::string activation = "elu";         ///< elu, relu, selu, lrelu or tanh
  std::string distribution = "gaussian";  ///< of the actions; or squashed: tanh of a Gaussian, within the bounds
  /// Observations that the critic sees and the actor does not (asymmetric actor and critic): names of fields.
  std::vector<std::string> critic_only;
  bool empirical_normalization = true;  ///< observations by their running mean and deviation
  std::string rnn_type = "gru";         ///< of ActorCriticRecurrent; rsl_rl's LSTM is not here
  int rnn_hidden_dim = 256;             ///< numbers that a layer remembers
  int rnn_num_layers = 1;
  bool recurrent() const { return class_name == "ActorCriticRecurrent"; }
};

/// The algorithm (Schulman et al., "Proximal policy optimization algorithms", 2017, arXiv 1707.06347).
struct PpoSettings {
  int num_learning_epochs = 5;  ///< passes over a rollout
  int num_mini_batches = 4;     ///< of a pass; divides n_envs x num_steps_per_env, with memory n_envs
  double clip_param = 0.2;      ///< how far the ratio of probabilities goes (and the values, where they are clipped)
  bool use_clipped_value_loss = true;
  double value_loss_coef = 1.0;
  double entropy_coef = 0.01;
  double learning_rate = 1e-3;        ///< of Adam; with `adaptive` and `linear` where it begins
  /// adaptive: by the KL divergence, within [1e-5, 1e-2]; fixed; or linear: evenly down to 0 at max_iterations, so that
  /// the last policy is one that has settled (CleanRL's anneal_lr).
  std::string schedule = "adaptive";
  double desired_kl = 0.01;           ///< adaptive: the rate falls above twice this, and rises below half of it
  double gamma = 0.99;                ///< discount of a step
  double lam = 0.95;                  ///< lambda of generalized advantage estimation
  double max_grad_norm = 1.0;         ///< of the actor's gradient and of the critic's, each for itself
};

/// The loop: rollouts and what is kept.
struct RunnerSettings {
  std::uint64_t seed = 1;
  int num_steps_per_env = 24;          ///< control steps of a rollout
  std::int64_t max_iterations = 300;   ///< rollouts, each with its update
  bool init_at_random_ep_len = false;  ///< the first episodes are cut off at random ages: later ones end apart
  double reward_scale = 1.0;           ///< what is learnt from is the task's reward times this
  std::string precision = "fp32";      ///< of the learner's forward passes, fp32 or bf16; see ppo.h
  train::EmaSettings ema;              ///< of the weights, an update after each step of the optimizer
};

/// Throws Error for what is no precision, and for fp16: its losses would have to be scaled.
train::Precision learner_precision(const RunnerSettings& settings);

void describe(config::Fields& fields, PolicySettings& settings);
void describe(config::Fields& fields, PpoSettings& settings);
void describe(config::Fields& fields, RunnerSettings& settings);

/// Throw Error naming the setting that is out of range.
void check(const PolicySettings& settings);
void check(const PpoSettings& settings);
/// Also that a rollout of n_envs environments divides into minibatches, with memory its environments; names the nearest
/// n_envs that do.
void check(const RunnerSettings& settings, const PpoSettings& ppo, int n_envs, bool recurrent = false);

}  // namespace cohort::rl
