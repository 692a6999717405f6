#include "rl/actor_critic.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/config.h"
#include "core/error.h"
#include "models/layers.h"
#include "models/linear.h"
#include "tensors/convert.h"
#include "train/precision.h"

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

bool is_named(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
    if (i + 1 < layers_->linear.size()) x = layers_->linear[i]->forward(x);
  }
  // Under autocast what comes out is not rounded once more.
  const train::PrecisionGuard full(train::Precision::kFp32, x.device().type());
  return layers_->linear.back()->forward(x.to(layers_->linear.back()->weight().scalar_type()));
}

std::vector<std::pair<at::Tensor, at::Tensor>> Mlp::parameters_of_layers() const {
  std::vector<std::pair<at::Tensor, at::Tensor>> result;
  for (const auto& layer : layers_->linear) result.emplace_back(layer->weight(), layer->bias());
  return result;
}

ObservationLayout observation_layout(const PolicySettings& settings, const tasks::TaskSpec& task) {
  ObservationLayout layout;
  std::vector<std::string> names;
  for (const tasks::FieldSpec& field : task.observations) {
    names.push_back(field.name);
    const bool seen = !is_named(settings.critic_only, field.name);
    for (std::int64_t i = 0; i < field.elements(); ++i, ++layout.width)
      if (seen) layout.actor_columns.push_back(layout.width);
  }
  for (const std::string& name : settings.critic_only) {
    if (is_named(names, name)) continue;
    const std::string near = config::nearest(name, names);
    throw Error(format("policy.critic_only names '{}', which {} does not observe{}; it observes {}", name, task.name,
                       near.empty() ? "" : format(", did you mean '{}'?", near), join(names, ", ")));
  }
  COHORT_THROW_UNLESS(layout.width > 0, "{} observes nothing but pictures; there is nothing for an MLP to see",
                      task.name);
  COHORT_THROW_UNLESS(!layout.actor_columns.empty(), "policy.critic_only leaves the actor nothing of {} to see",
                      task.name);
  return layout;
}

ActorCritic::ActorCritic(const PolicySettings& settings, const tasks::TaskSpec& task, std::uint64_t seed)
    : ActorCritic(settings, observation_layout(settings, task), task.action, seed) {}

ActorCritic::ActorCritic(const PolicySettings& settings, const ObservationLayout& layout,
                         const tasks::ActionSpec& action, std::uint64_t seed)
    : settings_(settings) {
  check(settings);
  const std::int64_t actions = action.width(), seen = std::ssize(layout.actor_columns);
  std::int64_t into_actor = seen, into_critic = layout.width;
  if (recurrent()) {
    const auto memory = [&settings](std::int64_t in) {
      return std::make_shared<Gru>(in, settings.rnn_hidden_dim, settings.rnn_num_layers);
    };
    actor_memory_ = register_module("actor_memory", memory(seen));
    critic_memory_ = register_module("critic_memory", memory(layout.width));
    into_actor = into_critic = settings.rnn_hidden_dim;
  }
  actor_ = register_module("actor",
                           std::make_shared<Mlp>(into_actor, settings.actor_hidden_dims, actions, settings.activation));
  critic_ = register_module("critic",
                            std::make_shared<Mlp>(into_critic, settings.critic_hidden_dims, 1, settings.activation));
  moments_ = register_module("observations", std::make_shared<RunningMoments>(layout.width));
  log_std_ = register_parameter("log_std", at::empty({actions}));
  action_offset_ = register_buffer("action_offset", at::zeros({actions}));
  action_scale_ = register_buffer("action_scale", at::ones({actions}));
  actor_columns_ = torch::tensor(layout.actor_columns, at::kLong);
  if (seen < layout.width) register_buffer("actor_columns", actor_columns_);
  for (std::int64_t i = 0; i < actions; ++i) {
    const float low = action.low[static_cast<std::size_t>(i)], high = action.high[static_cast<std::size_t>(i)];
    if (!std::isfinite(low) || !std::isfinite(high) || high <= low) {
      COHORT_THROW_UNLESS(!squashed(),
                          "policy.distribution = squashed needs bounds, and action {} has none: take gaussian",
                          action.names[static_cast<std::size_t>(i)]);
      continue;
    }
    action_offset_[i] = 0.5f * (low + high);
    action_scale_[i] = 0.5f * (high - low);
  }
  models::initialise(*this, seed);
}

at::Tensor ActorCritic::for_actor(const at::Tensor& normalised) const {
  return actor_width() == observation_width() ? normalised : normalised.index_select(-1, actor_columns_);
}

std::pair<at::Tensor, at::Tensor> ActorCritic::actors_normalisation() const {
  return {moments_->shift().index_select(0, actor_columns_), moments_->divisor().index_select(0, actor_columns_)};
}

NetworkMemory ActorCritic::begin(std::int64_t n) const {
  if (!recurrent()) return {};
  return {actor_memory_->begin(n), critic_memory_->begin(n)};
}

at::Tensor ActorCritic::mean(const at::Tensor& normalised, at::Tensor& memory) const {
  const models::RowsAloneGuard rows_alone;
  const at::Tensor seen = for_actor(normalised);
  return actor_->forward(recurrent() ? actor_memory_->step(seen, memory) : seen);
}

at::Tensor ActorCritic::value(const at::Tensor& normalised, at::Tensor& memory) const {
  const models::RowsAloneGuard rows_alone;
  return critic_->forward(recurrent() ? critic_memory_->step(normalised, memory) : normalised).squeeze(-1);
}

at::Tensor ActorCritic::mean_of_actors_observations(const at::Tensor& observations, at::Tensor& memory) const {
  const models::RowsAloneGuard rows_alone;
  const at::Tensor seen =
      settings_.empirical_normalization ? moments_->normalize(observations, actor_columns_) : observations;
  return actor_->forward(recurrent() ? actor_memory_->step(seen, memory) : seen);
}

at::Tensor ActorCritic::means(const at::Tensor& normalised, const at::Tensor& memory, const at::Tensor& keep) const {
  const at::Tensor seen = actor_memory_->forward(for_actor(normalised).transpose(0, 1), memory, keep.t());
  return actor_->forward(seen.transpose(0, 1));
}

at::Tensor ActorCritic::values(const at::Tensor& normalised, const at::Tensor& memory, const at::Tensor& keep) const {
  const at::Tensor seen = critic_memory_->forward(normalised.transpose(0, 1), memory, keep.t());
  return critic_->forward(seen.transpose(0, 1)).squeeze(-1);
}

void NetworkMemory::forget(const at::Tensor& dones) {
  if (!actor.defined()) return;
  const at::Tensor keep = (1 - dones).to(actor.device()).unsqueeze(-1);
  actor = actor * keep;
  critic = critic * keep;
}

at::Tensor whole_rows(const at::Tensor& x) {
  constexpr std::int64_t kRows = 16;
  const std::int64_t missing = (kRows - x.size(0) % kRows) % kRows;
  return missing == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, missing});
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
  if (recurrent())
    for (const at::Tensor& parameter : actor_memory_->parameters()) parameters.push_back(parameter);
  return parameters;
}

std::vector<at::Tensor> ActorCritic::critic_parameters() const {
  std::vector<at::Tensor> parameters = critic_->parameters();
  if (recurrent())
    for (const at::Tensor& parameter : critic_memory_->parameters()) parameters.push_back(parameter);
  return parameters;
}

std::int64_t observation_width(const tasks::TaskSpec& task) {
  std::int64_t width = 0;
  for (const tasks::FieldSpec& field : task.observations) width += field.elements();
  return width;
}

at::Tensor read_observations(tasks::Task& task, const std::vector<std::string>& except) {
  std::vector<at::Tensor> fields;
  const std::int64_t n = task.n_envs();
  for (std::size_t i = 0; i < task.spec().observations.size(); ++i)
    if (!is_named(except, task.spec().observations[i].name))
      fields.push_back(tensors::to_tensor(task.observation(i)).reshape({n, -1}));
  return at::cat(fields, 1);
}

}  // namespace cohort::rl
