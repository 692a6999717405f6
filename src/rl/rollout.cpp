#include "rl/rollout.h"

#include <cmath>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/philox.h"

namespace cohort::rl {

Rollout::Rollout(std::int64_t steps, std::int64_t n_envs, std::int64_t observation_width, std::int64_t action_width,
                 at::Device device)
    : observations(at::zeros({steps, n_envs, observation_width}, device)),
      actions(at::zeros({steps, n_envs, action_width}, device)),
      means(at::zeros({steps, n_envs, action_width}, device)),
      log_std(at::zeros({action_width}, device)),
      log_probs(at::zeros({steps, n_envs}, device)),
      values(at::zeros({steps, n_envs}, device)),
      rewards(at::zeros({steps, n_envs}, device)),
      dones(at::zeros({steps, n_envs}, device)),
      advantages(at::zeros({steps, n_envs}, device)),
      returns(at::zeros({steps, n_envs}, device)) {}

at::Tensor Rollout::keep() const {
  at::Tensor keep = at::ones_like(dones);
  if (steps() > 1) keep.narrow(0, 1, steps() - 1).copy_(1 - dones.narrow(0, 0, steps() - 1));
  return keep;
}

void Rollout::compute_returns(const at::Tensor& last_values, double gamma, double lam, const Shares* shares) {
  const at::NoGradGuard no_grad;
  at::Tensor next_values = last_values, advantage = at::zeros_like(last_values);
  for (std::int64_t t = steps() - 1; t >= 0; --t) {
    const at::Tensor goes_on = 1 - dones[t];
    const at::Tensor delta = rewards[t] + goes_on * gamma * next_values - values[t];
    advantage = delta + goes_on * gamma * lam * advantage;
    returns[t].copy_(advantage + values[t]);
    next_values = values[t];
  }
  advantages = returns - values;
  const Shares alone{.environments = advantages.size(1)};
  const Moments moments = moments_of(advantages.unsqueeze(-1), shares ? *shares : alone);
  const double mean = moments.mean.item<double>(),
               deviation = std::sqrt(moments.m2.item<double>() / (moments.count - 1));
  advantages = (advantages - mean) / (deviation + 1e-8);
}

at::Tensor shuffled_order(std::int64_t n, std::uint64_t seed, std::int64_t pass, std::uint64_t block) {
  at::Tensor order = at::arange(n, at::kLong);
  auto* places = order.mutable_data_ptr<std::int64_t>();
  const RandomStream random(seed, RandomPurpose::kDataOrder, block, static_cast<std::uint64_t>(pass));
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(places[i], places[random.below(static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(i + 1))]);
  return order;
}

}  // namespace cohort::rl
