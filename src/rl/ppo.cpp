#include "rl/ppo.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "rl/gaussian.h"

namespace cohort::rl {
namespace {

constexpr double kLowestRate = 1e-5, kHighestRate = 1e-2;  // of the adaptive schedule, as rsl_rl's

/// As torch.nn.utils.clip_grad_norm_; returns the norm before.
double clip_gradients(const std::vector<at::Tensor>& parameters, double max_norm) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  const double norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2).item<double>();
  if (norm > max_norm) at::_foreach_mul_(gradients, max_norm / (norm + 1e-6));
  return norm;
}

train::OptimizerSettings adam() {
  train::OptimizerSettings settings;
  settings.kind = "adam";
  return settings;
}

}  // namespace

at::Tensor surrogate_loss(const at::Tensor& log_probs, const at::Tensor& old_log_probs, const at::Tensor& advantages,
                          double clip_param) {
  const at::Tensor ratio = (log_probs - old_log_probs).exp();
  return at::max(-advantages * ratio, -advantages * ratio.clamp(1 - clip_param, 1 + clip_param)).mean();
}

at::Tensor value_loss(const at::Tensor& values, const at::Tensor& old_values, const at::Tensor& returns, bool clipped,
                      double clip_param) {
  const at::Tensor squares = (values - returns).square();
  if (!clipped) return squares.mean();
  const at::Tensor near = old_values + (values - old_values).clamp(-clip_param, clip_param);
  return at::max(squares, (near - returns).square()).mean();
}

Ppo::Ppo(ActorCritic& networks, const PpoSettings& settings, Ranks* ranks, int threads)
    : networks_(networks),
      settings_(settings),
      ranks_(ranks),
      learning_rate_(settings.learning_rate),
      optimizer_(train::parameter_groups(networks, adam()), adam()) {
  check(settings);
  if (const auto activation = FusedMlp::activation(networks.settings().activation);
      activation && networks.log_std().is_cpu()) {
    actor_pass_.emplace(networks.actor().parameters_of_layers(), *activation, threads);
    critic_pass_.emplace(networks.critic().parameters_of_layers(), *activation, threads);
  }
}

void Ppo::adapt_learning_rate(double kl) {
  if (settings_.schedule != "adaptive") return;
  if (kl > 2 * settings_.desired_kl)
    learning_rate_ = std::max(kLowestRate, learning_rate_ / 1.5);
  else if (kl > 0 && kl < settings_.desired_kl / 2)
    learning_rate_ = std::min(kHighestRate, learning_rate_ * 1.5);
}

at::Tensor Ppo::entropy_of(const Minibatch& batch, const at::Tensor& old_log_std, const at::Tensor& mean) const {
  const at::Tensor entropy = gaussian_entropy(networks_.log_std());
  if (!networks_.squashed()) return entropy;
  // Of tanh u: that of u, plus the expected logarithm of tanh's derivative, for which the drawn noise stands.
  const at::Tensor noise = (batch.actions - batch.old_means) * (-old_log_std).exp();
  const at::Tensor drawn = mean + networks_.log_std().exp() * noise;
  return entropy + log_tanh_derivative(drawn).sum(-1).mean();
}

at::Tensor Ppo::backward(const Minibatch& batch, const at::Tensor& old_log_std) {
  // The networks compute outside of autograd where FusedMlp has their activation; the losses behind them within.
  at::Tensor mean, value;
  if (actor_pass_) {
    mean = actor_pass_->forward(networks_.for_actor(batch.observations)).requires_grad_();
    value = critic_pass_->forward(batch.observations).squeeze(-1).requires_grad_();
  } else {
    mean = networks_.mean(batch.observations);
    value = networks_.value(batch.observations);
  }
  const at::Tensor log_std = networks_.log_std();
  // A squashed action's probability has the same factor before and after: it drops out of the ratio.
  const at::Tensor log_probs = gaussian_log_prob(mean, log_std, batch.actions);
  const at::Tensor kl = gaussian_kl(batch.old_means, old_log_std, mean.detach(), log_std.detach()).mean();
  const at::Tensor surrogate = surrogate_loss(log_probs, batch.old_log_probs, batch.advantages, settings_.clip_param);
  const at::Tensor values =
      value_loss(value, batch.old_values, batch.returns, settings_.use_clipped_value_loss, settings_.clip_param);
  const at::Tensor entropy = entropy_of(batch, old_log_std, mean);
  const at::Tensor loss = surrogate + settings_.value_loss_coef * values - settings_.entropy_coef * entropy;
  networks_.zero_grad();
  loss.backward();
  if (actor_pass_) {
    actor_pass_->backward(mean.grad());
    critic_pass_->backward(value.grad().unsqueeze(-1));
  }
  return at::stack({loss, surrogate, values, entropy, kl}).detach();
}

void Ppo::reduce(at::Tensor& figures) {
  if (!ranks_ || ranks_->size() == 1) return;
  std::vector<at::Tensor> flat{figures};
  for (const at::Tensor& gradient : optimizer_.gradients()) flat.push_back(gradient.flatten());
  at::Tensor all = at::cat(flat);
  ranks_->mean(all);
  std::int64_t place = figures.numel();
  figures = all.narrow(0, 0, place).clone();
  for (const at::Tensor& gradient : optimizer_.gradients()) {
    gradient.copy_(all.narrow(0, place, gradient.numel()).view_as(gradient));
    place += gradient.numel();
  }
}

PpoLosses Ppo::update(const Rollout& rollout, const std::function<at::Tensor(int epoch)>& order) {
  const std::int64_t n = rollout.transitions(), size = n / settings_.num_mini_batches;
  COHORT_CHECK(size * settings_.num_mini_batches == n, "{} transitions and {} minibatches", n,
               settings_.num_mini_batches);
  const auto flat = [](const at::Tensor& x) { return x.flatten(0, 1); };
  const at::Tensor observations = networks_.normalize(flat(rollout.observations)), actions = flat(rollout.actions),
                   old_means = flat(rollout.means), old_log_probs = flat(rollout.log_probs),
                   old_values = flat(rollout.values), advantages = flat(rollout.advantages),
                   returns = flat(rollout.returns);
  const at::Tensor old_log_std = rollout.log_std.clone();
  const double share = 1.0 / (settings_.num_learning_epochs * settings_.num_mini_batches);
  PpoLosses total;
  for (int epoch = 0; epoch < settings_.num_learning_epochs; ++epoch) {
    const at::Tensor permutation = order(epoch).to(observations.device());
    for (int batch = 0; batch < settings_.num_mini_batches; ++batch) {
      const at::Tensor rows = permutation.narrow(0, batch * size, size);
      const auto pick = [&rows](const at::Tensor& x) { return x.index_select(0, rows); };
      at::Tensor figures = backward({pick(observations), pick(actions), pick(old_means), pick(old_log_probs),
                                     pick(old_values), pick(advantages), pick(returns)},
                                    old_log_std);
      reduce(figures);
      figures = figures.cpu();
      const auto* figure = figures.const_data_ptr<float>();
      const double loss = static_cast<double>(figure[0]), surrogate = static_cast<double>(figure[1]),
                   values = static_cast<double>(figure[2]), entropy = static_cast<double>(figure[3]);
      total.kl = static_cast<double>(figure[4]);
      const double actor_norm = clip_gradients(networks_.actor_parameters(), settings_.max_grad_norm);
      const double critic_norm = clip_gradients(networks_.critic_parameters(), settings_.max_grad_norm);
      if (!std::isfinite(loss) || !std::isfinite(actor_norm) || !std::isfinite(critic_norm)) {
        total.diverged = format("loss {:g} (surrogate {:g}, value {:g}), gradient norms {:g} (actor) and {:g} (critic)",
                                loss, surrogate, values, actor_norm, critic_norm);
        return total;
      }
      adapt_learning_rate(total.kl);
      optimizer_.step(learning_rate_);
      total.loss += loss * share;
      total.surrogate += surrogate * share;
      total.value += values * share;
      total.entropy += entropy * share;
      total.actor_norm += actor_norm * share;
      total.critic_norm += critic_norm * share;
    }
  }
  return total;
}

}  // namespace cohort::rl
