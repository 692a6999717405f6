#include "rl/ppo.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "parallel/single_device.h"
#include "rl/fused_losses.h"
#include "rl/gaussian.h"
#include "rl/minibatch_step.h"
#include "tensors/processor.h"

namespace cohort::rl {
namespace {

constexpr std::int64_t kLeastPicked = 1 << 14;  // numbers that are worth a thread

train::OptimizerSettings adam() {
  train::OptimizerSettings settings;
  settings.kind = "adam";
  return settings;
}

std::unique_ptr<parallel::Strategy> on_one_device(ActorCritic& networks) {
  const at::Device device = networks.log_std().device();
  // The networks outlive it.
  return std::make_unique<parallel::SingleDevice>(
      std::shared_ptr<torch::nn::Module>(std::shared_ptr<torch::nn::Module>(), &networks),
      DeviceId{.kind = device.is_cuda() ? DeviceKind::kCuda : DeviceKind::kCpu,
               .index = device.has_index() ? device.index() : 0});
}

/// Of a loss, which somebody else has computed.
struct KnownGradients {
  std::vector<at::Tensor> of_parameters;
};

/// Figures whose first, the loss, has the known gradients.
struct GiveGradients : public torch::autograd::Function<GiveGradients> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& figures, at::TensorList,
                            const KnownGradients& known) {
    context->save_for_backward(known.of_parameters);
    return figures.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& outer) {
    const double factor = outer[0][0].item<double>();
    torch::autograd::variable_list gradients = context->get_saved_variables();
    if (factor != 1)
      for (at::Tensor& gradient : gradients) gradient = gradient * factor;
    gradients.emplace(gradients.begin());  // of figures, and below of what is no tensor
    gradients.emplace_back();
    return gradients;
  }
};

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

const std::vector<std::pair<const char*, at::Tensor Ppo::Minibatch::*>> Ppo::kFields{
    {"observations", &Minibatch::observations}, {"actions", &Minibatch::actions},
    {"old_means", &Minibatch::old_means},       {"old_log_probs", &Minibatch::old_log_probs},
    {"old_values", &Minibatch::old_values},     {"advantages", &Minibatch::advantages},
    {"returns", &Minibatch::returns},           {"keep", &Minibatch::keep},
    {"actor_memory", &Minibatch::actor_memory}, {"critic_memory", &Minibatch::critic_memory}};

at::Tensor Ppo::means_of(const ActorCritic& networks, const Minibatch& batch) const {
  const train::PrecisionGuard autocast(precision_, batch.observations.device().type());
  if (!networks.recurrent()) return networks.mean(batch.observations);
  return networks.means(batch.observations, batch.actor_memory.transpose(0, 1), batch.keep);
}

at::Tensor Ppo::values_of(const ActorCritic& networks, const Minibatch& batch) const {
  const train::PrecisionGuard autocast(precision_, batch.observations.device().type());
  if (!networks.recurrent()) return networks.value(batch.observations);
  return networks.values(batch.observations, batch.critic_memory.transpose(0, 1), batch.keep);
}

void Ppo::compute_old_again(Minibatch& all, const at::Tensor& old_log_std, std::int64_t size) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> means, values;
  for (std::int64_t first = 0; first < all.actions.size(0); first += size) {
    Minibatch part;
    for (const auto& [name, field] : kFields)
      if ((all.*field).defined()) part.*field = (all.*field).narrow(0, first, size);
    means.push_back(means_of(networks_, part));
    values.push_back(values_of(networks_, part));
  }
  all.old_means = at::cat(means);
  all.old_values = at::cat(values);
  all.old_log_probs = gaussian_log_prob(all.old_means, old_log_std, all.actions);
}

Ppo::FusedNetwork::FusedNetwork(const Gru* memory, const Mlp& network, FusedMlp::Activation activation,
                                const std::shared_ptr<ThreadTeam>& team)
    : mlp(network.parameters_of_layers(), activation, team) {
  if (memory) gru.emplace(*memory, team);
}

at::Tensor Ppo::FusedNetwork::forward(const at::Tensor& seen, const at::Tensor& state, const at::Tensor& keep) {
  if (!gru) return mlp.forward(seen);
  const at::Tensor remembered = gru->forward(seen.transpose(0, 1), state, keep.t());  // (T, B, H)
  return mlp.forward(remembered.flatten(0, 1)).view({seen.size(1), seen.size(0), -1}).transpose(0, 1);
}

void Ppo::FusedNetwork::backward(const at::Tensor& gradient) {
  if (!gru) return mlp.backward(gradient);
  at::Tensor remembered;
  mlp.backward(gradient.transpose(0, 1).flatten(0, 1), &remembered);
  gru->backward(remembered.view({gradient.size(1), gradient.size(0), -1}));
}

Ppo::Ppo(ActorCritic& networks, const PpoSettings& settings, const PpoOptions& options)
    : networks_(networks),
      parameters_(networks.parameters()),
      actor_parameters_(networks.actor_parameters()),
      critic_parameters_(networks.critic_parameters()),
      settings_(settings),
      own_strategy_(options.strategy ? nullptr : on_one_device(networks)),
      strategy_(options.strategy ? *options.strategy : *own_strategy_),
      ema_(options.ema),
      precision_(options.precision),
      team_(std::make_shared<ThreadTeam>(options.threads)),
      learning_rate_(settings.learning_rate),
      optimizer_(train::parameter_groups(networks, adam()), adam()) {
  check(settings);
  tensors::prepare_arithmetic();
  if (const auto activation = FusedMlp::activation(networks.settings().activation);
      activation && networks.log_std().is_cpu() && strategy_.replicas() == 1 && precision_ == train::Precision::kFp32) {
    fused_actor_.emplace(networks.actor_memory(), networks.actor(), *activation, team_);
    fused_critic_.emplace(networks.critic_memory(), networks.critic(), *activation, team_);
  }
}

void Ppo::weights_changed() {
  strategy_.parameters_changed();
}

at::Tensor Ppo::entropy_of(const ActorCritic& networks, const Minibatch& batch, const at::Tensor& old_log_std,
                           const at::Tensor& mean) const {
  const at::Tensor entropy = gaussian_entropy(networks.log_std());
  if (!networks.squashed()) return entropy;
  // Of tanh u: that of u, plus the expected logarithm of tanh's derivative, for which the drawn noise stands.
  const at::Tensor noise = (batch.actions - batch.old_means) * (-old_log_std).exp();
  const at::Tensor drawn = mean + networks.log_std().exp() * noise;
  return entropy + log_tanh_derivative(drawn).sum(-1).mean();
}

at::Tensor Ppo::figures_of(const ActorCritic& networks, const Minibatch& batch, const at::Tensor& mean,
                           const at::Tensor& value, const at::Tensor& old_log_std) const {
  const at::Tensor& log_std = networks.log_std();
  // A squashed action's probability has the same factor before and after: it drops out of the ratio.
  const at::Tensor log_probs = gaussian_log_prob(mean, log_std, batch.actions);
  const at::Tensor kl = gaussian_kl(batch.old_means, old_log_std, mean.detach(), log_std.detach()).mean();
  const at::Tensor surrogate = surrogate_loss(log_probs, batch.old_log_probs, batch.advantages, settings_.clip_param);
  const at::Tensor values =
      value_loss(value, batch.old_values, batch.returns, settings_.use_clipped_value_loss, settings_.clip_param);
  const at::Tensor entropy = entropy_of(networks, batch, old_log_std, mean);
  const at::Tensor loss = surrogate + settings_.value_loss_coef * values - settings_.entropy_coef * entropy;
  return at::stack({loss, surrogate, values, entropy, kl});
}

/// Each device computes the loss of its part of this process's minibatch; the strategy averages the gradients.
at::Tensor Ppo::backward(const Minibatch& batch, const at::Tensor& old_log_std) {
  if (fused_actor_ &&
      strategy_.world_size() == 1) {  // Nobody to average with: no graph is needed to hand gradients on.
    for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    return fused_backward(batch, old_log_std).to(at::kDouble);
  }
  parallel::Batch samples;
  for (const auto& [name, field] : kFields)
    if ((batch.*field).defined()) samples.add(name, batch.*field);
  const std::int64_t n = samples.size();
  if (strategy_.replicas() > 1) samples.sample_ids = at::arange(n, at::kLong);
  std::mutex mutex;
  std::map<std::int64_t, at::Tensor> figures;  // of the parts, by their first samples
  strategy_.zero_grad();
  strategy_.forward_backward(
      samples,
      [&](torch::nn::Module& module, const parallel::Batch& part) {
        const auto& networks = dynamic_cast<const ActorCritic&>(module);
        Minibatch of_part;
        for (const auto& [name, field] : kFields)
          if ((batch.*field).defined()) of_part.*field = part.at(name);
        const at::Tensor found =
            fused_actor_ ? fused_figures(of_part, old_log_std)
                         : figures_of(networks, of_part, means_of(networks, of_part), values_of(networks, of_part),
                                      old_log_std.to(of_part.actions.device()));
        const at::Tensor share = found.detach() * (static_cast<double>(part.size()) / static_cast<double>(n));
        const std::lock_guard<std::mutex> lock(mutex);
        figures[part.sample_ids.defined() ? part.sample_ids[0].item<std::int64_t>() : 0] = share;
        return found[0];
      },
      {});
  at::Tensor sum;
  for (const auto& [first, share] : figures) {
    const at::Tensor here = share.to(old_log_std.device());
    sum = sum.defined() ? sum + here : here;
  }
  sum = sum.to(at::kDouble);
  strategy_.mean_over_ranks(sum);
  return sum;
}

/// The networks compute outside of autograd; so do the losses of Gaussian actions. Returns the figures.
at::Tensor Ppo::fused_backward(const Minibatch& batch, const at::Tensor& old_log_std) {
  const auto layers_first = [](const at::Tensor& memory) { return memory.defined() ? memory.transpose(0, 1) : memory; };
  const at::Tensor mean = fused_actor_->forward(networks_.for_actor(batch.observations),
                                                layers_first(batch.actor_memory), batch.keep),
                   value = fused_critic_->forward(batch.observations, layers_first(batch.critic_memory), batch.keep)
                               .squeeze(-1);
  FusedLosses losses;
  if (networks_.squashed()) {
    mean.requires_grad_(), value.requires_grad_();
    const at::Tensor figures = figures_of(networks_, batch, mean, value, old_log_std);
    const auto gradients = torch::autograd::grad({figures[0]}, {mean, value, networks_.log_std()});
    losses = {.figures = figures.detach(), .d_mean = gradients[0], .d_value = gradients[1], .d_log_std = gradients[2]};
  } else {
    losses = fused_losses({.mean = mean,
                           .value = value,
                           .log_std = networks_.log_std().detach(),
                           .old_log_std = old_log_std,
                           .actions = batch.actions,
                           .old_means = batch.old_means,
                           .old_log_probs = batch.old_log_probs,
                           .old_values = batch.old_values,
                           .advantages = batch.advantages,
                           .returns = batch.returns},
                          settings_, *team_);
  }
  fused_actor_->backward(losses.d_mean);
  fused_critic_->backward(losses.d_value.unsqueeze(-1));
  networks_.log_std().mutable_grad() = losses.d_log_std;
  return losses.figures;
}

/// Figures whose first has a graph: autograd hands the gradients on, so that the strategy sees each parameter's come.
at::Tensor Ppo::fused_figures(const Minibatch& batch, const at::Tensor& old_log_std) {
  const at::Tensor figures = fused_backward(batch, old_log_std);
  KnownGradients gradients;
  for (const at::Tensor& parameter : parameters_)
    gradients.of_parameters.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
  return GiveGradients::apply(figures, at::TensorList(parameters_), gradients);
}

/// All of a rollout, as the networks see it.
Ppo::Minibatch Ppo::whole(const Rollout& rollout) const {
  const bool recurrent = networks_.recurrent();
  const auto flat = [&](const at::Tensor& x) { return recurrent ? x.transpose(0, 1).contiguous() : x.flatten(0, 1); };
  Minibatch all{.observations = networks_.normalize(flat(rollout.observations)),
                .actions = flat(rollout.actions),
                .old_means = flat(rollout.means),
                .old_log_probs = flat(rollout.log_probs),
                .old_values = flat(rollout.values),
                .advantages = flat(rollout.advantages),
                .returns = flat(rollout.returns),
                .keep = {},
                .actor_memory = {},
                .critic_memory = {}};
  if (recurrent) {
    all.keep = flat(rollout.keep());
    all.actor_memory = flat(rollout.actor_memory);
    all.critic_memory = flat(rollout.critic_memory);
  }
  return all;
}

at::Tensor Ppo::pick(const at::Tensor& x, const at::Tensor& rows) const {
  if (!x.is_cpu() || team_->size() == 1) return x.index_select(0, rows);
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes[0] = rows.size(0);
  at::Tensor out = at::empty(sizes, x.options());
  const std::int64_t pieces = std::clamp<std::int64_t>(out.numel() / kLeastPicked, 1, team_->size());
  team_->for_each(pieces, [&](std::int64_t i, int) {
    const at::NoGradGuard no_grad;
    const std::int64_t first = rows.size(0) * i / pieces, count = rows.size(0) * (i + 1) / pieces - first;
    at::Tensor part = out.narrow(0, first, count);
    at::index_select_out(part, x, 0, rows.narrow(0, first, count));
  });
  return out;
}

Ppo::Minibatch Ppo::pick(const Minibatch& all, const at::Tensor& rows) const {
  Minibatch batch;
  for (const auto& [name, field] : kFields)
    if ((all.*field).defined()) batch.*field = pick(all.*field, rows);
  return batch;
}

PpoLosses Ppo::update(const Rollout& rollout, const std::function<at::Tensor(int epoch)>& order) {
  Minibatch all = whole(rollout);
  const std::int64_t n = all.actions.size(0), size = n / settings_.num_mini_batches;
  COHORT_CHECK(size * settings_.num_mini_batches == n, "{} {} and {} minibatches", n,
               networks_.recurrent() ? "environments" : "transitions", settings_.num_mini_batches);
  const at::Tensor old_log_std = rollout.log_std.clone();
  if (precision_ != train::Precision::kFp32) compute_old_again(all, old_log_std, size);
  const at::Device device = all.actions.device();
  std::vector<at::Tensor> passes;
  for (int epoch = 0; epoch < settings_.num_learning_epochs; ++epoch) passes.push_back(order(epoch));
  const at::Tensor orders = at::stack(passes).to(device);
  const MinibatchSteps::Parts parts{settings_, optimizer_, actor_parameters_, critic_parameters_};
  const auto steps = fused_actor_ ? MinibatchSteps::at_once(parts, learning_rate_)
                                  : MinibatchSteps::on_device(parts, learning_rate_, device);
  bool sound = true;
  for (int epoch = 0; epoch < settings_.num_learning_epochs && sound; ++epoch) {
    for (int batch = 0; batch < settings_.num_mini_batches; ++batch) {
      const at::Tensor rows = orders.select(0, epoch).narrow(0, batch * size, size);
      sound = steps->step(backward(pick(all, rows), old_log_std));
      if (!sound) break;
      if (ema_) ema_->update();
      weights_changed();
    }
  }
  const UpdateFigures found = steps->figures();
  learning_rate_ = found.learning_rate;
  PpoLosses total{.surrogate = found.mean[kSurrogate],
                  .value = found.mean[kValue],
                  .entropy = found.mean[kEntropy],
                  .loss = found.mean[kLoss],
                  .kl = found.last_kl,
                  .actor_norm = found.mean[kActorNorm],
                  .critic_norm = found.mean[kCriticNorm],
                  .diverged = {}};
  if (found.diverged) {
    total.diverged = format("loss {:g} (surrogate {:g}, value {:g}), gradient norms {:g} (actor) and {:g} (critic)",
                            found.bad[kLoss], found.bad[kSurrogate], found.bad[kValue], found.bad[kActorNorm],
                            found.bad[kCriticNorm]);
  }
  return total;
}

}  // namespace cohort::rl
