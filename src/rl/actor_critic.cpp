#include "rl/actor_critic.h"

#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/layers.h"
#include "tensors/convert.h"

namespace cohort::rl {
namespace {

using Activation = at::Tensor (*)(const at::Tensor&);

Activation activation_of(const std::string& name) {
  if (name == "elu") return [](const at::Tensor& x) { return at::elu(x); };
  if (name == "relu") return [](const at::Tensor& x) { return at::relu(x); };
  if (name == "selu") return [](const at::Tensor& x) { return at::selu(x); };
  if (name == "lrelu") return [](const at::Tensor& x) { return at::leaky_relu(x); };
  if (name == "tanh") return [](const at::Tensor& x) { return at::tanh(x); };
  throw Error(format("policy.activation = '{}' is none of elu, relu, selu, lrelu, tanh", name));
}

}  // namespace

struct Mlp::Layers {
  std::vector<std::shared_ptr<models::Linear>> linear;
  Activation activation = nullptr;
};

Mlp::Mlp(std::int64_t in, const std::vector<int>& hidden, std::int64_t out, const std::string& activation)
    : layers_(std::make_unique<Layers>()) {
  layers_->activation = activation_of(activation);
  std::vector<std::int64_t> widths{in};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(out);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    layers_->linear.push_back(
        register_module(std::to_string(2 * i), std::make_shared<models::Linear>(widths[i], widths[i + 1])));
}

Mlp::~Mlp() = default;

at::Tensor Mlp::forward(at::Tensor x) const {
  for (std::size_t i = 0; i < layers_->linear.size(); ++i) {
    if (i > 0) x = layers_->activation(x);
    x = layers_->linear[i]->forward(x);
  }
  return x;
}

ActorCritic::ActorCritic(const PolicySettings& settings, const tasks::TaskSpec& task, std::uint64_t seed)
    : settings_(settings) {
  check(settings);
  const std::int64_t observations = rl::observation_width(task), actions = task.action.width();
  COHORT_THROW_UNLESS(observations > 0, "{} observes nothing but pictures; there is nothing for an MLP to see",
                      task.name);
  actor_ = register_module(
      "actor", std::make_shared<Mlp>(observations, settings.actor_hidden_dims, actions, settings.activation));
  critic_ = register_module("critic",
                            std::make_shared<Mlp>(observations, settings.critic_hidden_dims, 1, settings.activation));
  moments_ = register_module("observations", std::make_shared<RunningMoments>(observations));
  log_std_ = register_parameter("log_std", at::empty({actions}));
  action_offset_ = register_buffer("action_offset", at::zeros({actions}));
  action_scale_ = register_buffer("action_scale", at::ones({actions}));
  for (std::int64_t i = 0; i < actions; ++i) {
    const float low = task.action.low[static_cast<std::size_t>(i)],
                high = task.action.high[static_cast<std::size_t>(i)];
    if (!std::isfinite(low) || !std::isfinite(high) || high <= low) continue;
    action_offset_[i] = 0.5f * (low + high);
    action_scale_[i] = 0.5f * (high - low);
  }
  models::initialise(*this, seed);
}

void ActorCritic::initialise(models::Initialiser& initialiser) {
  initialiser.constant(log_std_, std::log(settings_.init_noise_std));
}

at::Tensor ActorCritic::normalize(const at::Tensor& observations) const {
  return settings_.empirical_normalization ? moments_->normalize(observations) : observations;
}

std::vector<at::Tensor> ActorCritic::actor_parameters() const {
  std::vector<at::Tensor> parameters = actor_->parameters();
  parameters.push_back(log_std_);
  return parameters;
}

std::int64_t observation_width(const tasks::TaskSpec& task) {
  std::int64_t width = 0;
  for (const tasks::FieldSpec& field : task.observations) width += field.elements();
  return width;
}

at::Tensor read_observations(tasks::Task& task) {
  std::vector<at::Tensor> fields;
  const std::int64_t n = task.n_envs();
  for (std::size_t i = 0; i < task.spec().observations.size(); ++i)
    fields.push_back(tensors::to_tensor(task.observation(i)).reshape({n, -1}));
  return at::cat(fields, 1);
}

}  // namespace cohort::rl
