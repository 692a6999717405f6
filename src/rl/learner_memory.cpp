#include "rl/learner_memory.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "rl/actor_critic.h"

namespace cohort::rl {
namespace {

constexpr double kFloatBytes = 4, kIndexBytes = 8;
// Copies of weights: themselves, gradient, two moments of Adam, three in a checkpoint, pieces of a gradient (FusedMlp).
constexpr double kCopiesOfWeights = 24;
constexpr double kCopiesOfAverage = 2;  // itself, and in a checkpoint
constexpr double kNumbersOfAGate = 10;  // what a GRU keeps for its backward pass, for each number that it remembers

/// Numbers of a network's weights, and of what its layers give for a row.
struct NetworkSize {
  double weights = 0, outputs = 0;
};

NetworkSize network_size(double in, const std::vector<int>& hidden, double out, const PolicySettings& policy) {
  NetworkSize size;
  if (policy.recurrent()) {
    const double remembered = policy.rnn_hidden_dim;
    for (int layer = 0; layer < policy.rnn_num_layers; ++layer, in = remembered) {
      size.weights += 3 * remembered * (in + remembered + 2);
      size.outputs += kNumbersOfAGate * remembered;
    }
  }
  for (const int width : hidden) {
    size.weights += (in + 1) * width;
    size.outputs += width;
    in = width;
  }
  return {size.weights + (in + 1) * out, size.outputs + out};
}

}  // namespace

LearnerMemory learner_memory(const LearnerSize& size) {
  const auto observations = static_cast<double>(observation_width(size.task)),
             actions = static_cast<double>(size.task.action.width());
  const NetworkSize actor = network_size(observations, size.policy.actor_hidden_dims, actions, size.policy),
                    critic = network_size(observations, size.policy.critic_hidden_dims, 1, size.policy);
  // Actions and means, probabilities, values, rewards, ends, advantages, returns.
  const double others = 2 * actions + 6;
  const double rollout = observations + others;
  const double as_seen = observations + (size.policy.recurrent() ? others : 0);
  const double minibatch = (rollout + actor.outputs + critic.outputs) / size.ppo.num_mini_batches;
  const double steps = size.runner.num_steps_per_env;
  // An episode's actions are kept to play it again, with room to grow, and twice more while a checkpoint is written.
  const double age =
      std::min(static_cast<double>(size.task.horizon), steps * static_cast<double>(size.runner.max_iterations));
  return {.per_environment = steps * (kFloatBytes * (rollout + as_seen + minibatch) + 2 * kIndexBytes) +
                             4 * kFloatBytes * age * actions,
          .fixed = (kCopiesOfWeights + (size.runner.ema.enabled ? kCopiesOfAverage : 0)) * kFloatBytes *
                   (actor.weights + critic.weights)};
}

void need_memory(const LearnerSize& size, double available) {
  const LearnerMemory memory = learner_memory(size);
  const auto ranks = static_cast<double>(size.ranks);
  COHORT_THROW_UNLESS(memory.fixed <= available,
                      "the networks' weights, gradients and moments take {}; this process can get {}: make "
                      "policy.actor_hidden_dims and policy.critic_hidden_dims smaller",
                      format_bytes(memory.fixed), format_bytes(available));
  const double need = memory.fixed + memory.per_environment * static_cast<double>(size.n_envs) / ranks;
  if (need <= available) return;
  const auto divides = [&](std::int64_t n) {
    const std::int64_t samples = size.policy.recurrent() ? n : n * size.runner.num_steps_per_env;
    return n % size.ranks == 0 && samples % size.ppo.num_mini_batches == 0;
  };
  // Somewhat less than what would just fit: the simulator's memory is smaller then, too.
  auto fits = static_cast<std::int64_t>(
      std::min((available - memory.fixed) / memory.per_environment * ranks, static_cast<double>(size.n_envs - 1)));
  while (fits > 0 && !divides(fits)) --fits;
  throw Error(
      format("learning from n_envs = {} x num_steps_per_env = {} takes {}{} ({} an environment); this process "
             "can get {}: {}",
             size.n_envs, size.runner.num_steps_per_env, format_bytes(need), size.ranks > 1 ? " on each rank" : "",
             format_bytes(memory.per_environment), format_bytes(available),
             fits > 0 ? format("enough for n_envs={}, the simulator's own memory aside", fits)
                      : "lower num_steps_per_env, too"));
}

}  // namespace cohort::rl
