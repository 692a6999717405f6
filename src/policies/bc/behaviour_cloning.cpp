#include "policies/bc/behaviour_cloning.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"
#include "models/initialise.h"
#include "models/layers.h"
#include "models/linear.h"
#include "models/module_group.h"

namespace cohort::models {
namespace {

/// torch.nn.LSTM or GRU with batch_first. Weights: weight_ih_l<i>, weight_hh_l<i>, bias_ih_l<i>, bias_hh_l<i>.
class Recurrent : public torch::nn::Module, public Initialised {
 public:
  Recurrent(const RnnSettings& s, std::int64_t in) : settings_(s) {
    const std::int64_t hidden = s.hidden_dim, gates = (s.rnn_type == "LSTM" ? 4 : 3) * hidden;
    for (int i = 0; i < s.num_layers; ++i) {
      const std::string layer = "_l" + std::to_string(i);
      weights_.push_back(register_parameter("weight_ih" + layer, at::empty({gates, i == 0 ? in : hidden})));
      weights_.push_back(register_parameter("weight_hh" + layer, at::empty({gates, hidden})));
      weights_.push_back(register_parameter("bias_ih" + layer, at::empty({gates})));
      weights_.push_back(register_parameter("bias_hh" + layer, at::empty({gates})));
    }
  }

  /// (rows of every step, hidden, cell); undefined states are zeros. States (layers, B, hidden).
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(const at::Tensor& x_BTF, at::Tensor hidden,
                                                         at::Tensor cell) const {
    // oneDNN has no LSTM in fp16: on the CPU these layers stay in float32 then.
    const bool widened = x_BTF.is_cpu() && at::autocast::is_autocast_enabled(at::kCPU) &&
                         at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf;
    std::optional<c10::impl::ExcludeDispatchKeyGuard> no_autocast;
    if (widened) no_autocast.emplace(c10::DispatchKey::AutocastCPU);
    const at::Tensor x = widened ? x_BTF.to(at::kFloat) : x_BTF;
    if (!hidden.defined()) {
      hidden = at::zeros({settings_.num_layers, x.size(0), settings_.hidden_dim}, x.options());
      cell = at::zeros_like(hidden);
    }
    if (settings_.rnn_type == "LSTM")
      return at::lstm(x, {hidden, cell}, weights_, true, settings_.num_layers, 0.0, is_training(), false, true);
    auto [rows, last] = at::gru(x, hidden, weights_, true, settings_.num_layers, 0.0, is_training(), false, true);
    return {rows, last, cell};
  }

  void initialise(Initialiser& initialiser) override {
    for (const at::Tensor& w : weights_)
      initialiser.uniform(w, 1.0 / std::sqrt(static_cast<double>(settings_.hidden_dim)));
  }

 private:
  RnnSettings settings_;
  std::vector<at::Tensor> weights_;
};

/// A mixture of `modes` Gaussians with diagonal covariance, for each of any number of rows.
struct Mixture {
  at::Tensor means, scales;  // (..., modes, A)
  at::Tensor logits;         // (..., modes)

  /// (...): log density of actions (..., A).
  at::Tensor log_probability(const at::Tensor& actions) const {
    const at::Tensor z = (actions.unsqueeze(-2) - means) / scales;
    const at::Tensor component = (-0.5 * z.square() - at::log(scales) - 0.5 * std::log(2 * std::numbers::pi)).sum(-1);
    return at::logsumexp(at::log_softmax(logits, -1) + component, {-1});
  }
};

class BcPolicy final : public PolicyNetwork {
 public:
  explicit BcPolicy(const BcSettings& s) : PolicyNetwork("BcPolicy"), settings_(s) {
    const auto nets =
        register_module("policy", std::make_shared<ModuleGroup>())->hold("nets", std::make_shared<ModuleGroup>());
    encoder_ = nets->hold("encoder", std::make_shared<ObservationEncoder>(s.encoder));
    std::int64_t width = s.rnn.enabled ? s.rnn.hidden_dim : encoder_->width();
    if (!s.actor_layer_dims.empty()) {
      const auto model =
          nets->hold("mlp", std::make_shared<ModuleGroup>())->hold("_model", std::make_shared<ModuleGroup>());
      for (std::size_t i = 0; i < s.actor_layer_dims.size(); ++i) {
        mlp_.push_back(model->hold(std::to_string(2 * i), std::make_shared<Linear>(width, s.actor_layer_dims[i])));
        width = s.actor_layer_dims[i];
      }
    }
    const auto decoder =
        nets->hold("decoder", std::make_shared<ModuleGroup>())->hold("nets", std::make_shared<ModuleGroup>());
    if (s.gmm.enabled) {
      const std::int64_t modes = s.gmm.num_modes, all = modes * s.action_width;
      mean_ = decoder->hold("mean", std::make_shared<Linear>(width, all));
      scale_ = decoder->hold("scale", std::make_shared<Linear>(width, all));
      logits_ = decoder->hold("logits", std::make_shared<Linear>(width, modes));
    } else {
      action_ = decoder->hold("action", std::make_shared<Linear>(width, s.action_width));
    }
    if (s.rnn.enabled)
      rnn_ = nets->hold("rnn", std::make_shared<ModuleGroup>())
                 ->hold("nets", std::make_shared<Recurrent>(s.rnn, encoder_->width()));
  }

  const BcSettings& settings() const { return settings_; }
  const std::vector<ObservationSettings>& observations() const override { return settings_.encoder.observations; }

  /// One action per frame, with the memory of those before it.
  at::Tensor draw(const Observations& observations, const std::vector<std::uint64_t>& ids,
                  std::uint64_t seed) override {
    const std::unique_ptr<PolicyControl> control = this->control(seed);
    std::vector<at::Tensor> rows;
    for (std::int64_t frame = 0; frame < (settings_.rnn.enabled ? settings_.rnn.horizon : 1); ++frame) {
      Observations seen;
      for (const auto& [name, tensor] : observations) seen[name] = tensor.select(1, frame);
      rows.push_back(control->act(ids, seen));
    }
    return at::stack(rows, 1);
  }

  std::unique_ptr<PolicyControl> control(std::uint64_t seed) override {
    return std::make_unique<BcControl>(*this, seed);
  }

  /// Features in front of the output layers, (B, frames, width), and the RNN's states after them.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> features(const Observations& observations, std::int64_t frames,
                                                          const at::Tensor& hidden, const at::Tensor& cell) const {
    at::Tensor x = encoder_->forward(observations, frames), next_hidden, next_cell;
    if (rnn_) std::tie(x, next_hidden, next_cell) = rnn_->forward(x, hidden, cell);
    for (const auto& layer : mlp_) x = at::relu(layer->forward(x));
    return {x, next_hidden, next_cell};
  }

  at::Tensor actions(const at::Tensor& features) const { return at::tanh(action_->forward(features)); }

  Mixture mixture(const at::Tensor& features) const {
    const GmmSettings& g = settings_.gmm;
    const std::vector<std::int64_t> shape{g.num_modes, settings_.action_width};
    const at::Tensor means = at::tanh(mean_->forward(features)).unflatten(-1, shape);
    at::Tensor scales;
    if (g.low_noise_eval && !is_training()) {
      scales = at::full_like(means, 1e-4);
    } else {
      const at::Tensor raw = scale_->forward(features).unflatten(-1, shape);
      scales = (g.std_activation == "exp" ? at::exp(raw) : at::softplus(raw)) + g.min_std;
    }
    return {means, scales, logits_->forward(features)};
  }

  at::Tensor loss(const Observations& observations, const at::Tensor& given) const override {
    const BcSettings& s = settings_;
    COHORT_THROW_UNLESS(given.dim() == 3 && given.size(1) >= 1 && given.size(2) == s.action_width,
                        "actions have shape {}, but must be (samples, rows, {})", c10::str(given.sizes()),
                        s.action_width);
    const std::int64_t rows = s.rnn.enabled ? given.size(1) : 1;
    const at::Tensor target = given.narrow(1, 0, rows).to(at::kFloat);
    const at::Tensor x = std::get<0>(features(observations, rows, {}, {}));
    if (s.gmm.enabled) return -mixture(x).log_probability(target).mean();
    const at::Tensor predicted = actions(x);
    at::Tensor loss = s.loss.l2_weight * at::mse_loss(predicted, target);
    if (s.loss.l1_weight != 0) loss = loss + s.loss.l1_weight * at::smooth_l1_loss(predicted, target);
    if (s.loss.cos_weight != 0) {
      const std::int64_t columns = std::min<std::int64_t>(3, s.action_width);
      const at::Tensor similarity =
          at::cosine_similarity(predicted.narrow(-1, 0, columns), target.narrow(-1, 0, columns), -1);
      loss = loss + s.loss.cos_weight * (1.0 - similarity).mean();
    }
    return loss;
  }

 private:
  BcSettings settings_;
  std::shared_ptr<ObservationEncoder> encoder_;
  std::vector<std::shared_ptr<Linear>> mlp_;
  std::shared_ptr<Linear> action_, mean_, scale_, logits_;
  std::shared_ptr<Recurrent> rnn_;
};

const BcPolicy& as_bc_policy(const torch::nn::Module& module) {
  const auto* policy = dynamic_cast<const BcPolicy*>(&module);
  COHORT_CHECK(policy != nullptr, "this module ({}) is no behaviour cloning policy", module.name());
  return *policy;
}

/// One action from the mixture of row `row`; on the CPU.
at::Tensor draw(const Mixture& mixture, std::int64_t row, const RandomStream& stream) {
  const at::Tensor weights = at::softmax(mixture.logits[row].to(at::kDouble), -1).contiguous();
  const double u = static_cast<double>(stream.uniform(0));
  std::int64_t mode = 0;
  double sum = 0.0;
  for (; mode + 1 < weights.numel(); ++mode) {
    sum += weights.const_data_ptr<double>()[mode];
    if (u < sum) break;
  }
  at::Tensor noise = at::empty({mixture.means.size(-1)}, at::kFloat);
  // One Philox call each, beyond the one that the mode took.
  for (std::int64_t k = 0; k < noise.numel(); ++k)
    noise.mutable_data_ptr<float>()[k] = stream.normal(static_cast<std::uint64_t>(1 + k));
  return mixture.means[row][mode] + mixture.scales[row][mode] * noise;
}

}  // namespace

void describe(config::Fields& fields, BcSettings& s) {
  fields.add("actor_layer_dims", s.actor_layer_dims, "units of the MLP in front of the output");
  fields.section("gmm", [&] {
    fields.add("enabled", s.gmm.enabled, "predict a mixture of Gaussians instead of one action");
    fields.add("num_modes", s.gmm.num_modes, "Gaussians of the mixture");
    fields.add("min_std", s.gmm.min_std, "added to every deviation");
    fields.add_choice("std_activation", s.gmm.std_activation, {"softplus", "exp"}, "makes deviations positive");
    fields.add("low_noise_eval", s.gmm.low_noise_eval, "at evaluation all deviations are 1e-4");
  });
  fields.section("rnn", [&] {
    fields.add("enabled", s.rnn.enabled, "remember former observations");
    fields.add("horizon", s.rnn.horizon, "rows of a training sequence; actions until the memory begins anew");
    fields.add("hidden_dim", s.rnn.hidden_dim, "units per layer");
    fields.add_choice("rnn_type", s.rnn.rnn_type, {"LSTM", "GRU"}, "kind of recurrent layers");
    fields.add("num_layers", s.rnn.num_layers, "recurrent layers");
  });
  fields.section("loss", [&] {
    fields.add("l2_weight", s.loss.l2_weight, "of the mean squared error");
    fields.add("l1_weight", s.loss.l1_weight, "of Huber's loss");
    fields.add("cos_weight", s.loss.cos_weight, "of one minus the cosine of the first three columns");
  });
}

void check(const BcSettings& s) {
  COHORT_THROW_UNLESS(s.action_width >= 1, "bc: action_width = {}, but must be at least 1", s.action_width);
  COHORT_THROW_UNLESS(s.rnn.enabled || !s.actor_layer_dims.empty(),
                      "bc: actor_layer_dims is empty, but a policy without rnn needs at least one layer");
  for (std::size_t i = 0; i < s.actor_layer_dims.size(); ++i)
    COHORT_THROW_UNLESS(s.actor_layer_dims[i] >= 1, "bc: actor_layer_dims[{}] = {}, but must be at least 1", i,
                        s.actor_layer_dims[i]);
  COHORT_THROW_UNLESS(s.gmm.num_modes >= 1, "bc: gmm.num_modes = {}, but must be at least 1", s.gmm.num_modes);
  COHORT_THROW_UNLESS(s.gmm.min_std >= 0, "bc: gmm.min_std = {}, but must not be negative", s.gmm.min_std);
  COHORT_THROW_UNLESS(s.gmm.std_activation == "softplus" || s.gmm.std_activation == "exp",
                      "bc: gmm.std_activation = \"{}\", but must be softplus or exp", s.gmm.std_activation);
  COHORT_THROW_UNLESS(s.rnn.horizon >= 1 && s.rnn.hidden_dim >= 1 && s.rnn.num_layers >= 1,
                      "bc: rnn.horizon = {}, rnn.hidden_dim = {} and rnn.num_layers = {}, but must be at least 1",
                      s.rnn.horizon, s.rnn.hidden_dim, s.rnn.num_layers);
  COHORT_THROW_UNLESS(s.rnn.rnn_type == "LSTM" || s.rnn.rnn_type == "GRU",
                      "bc: rnn.rnn_type = \"{}\", but must be LSTM or GRU", s.rnn.rnn_type);
}

std::shared_ptr<PolicyNetwork> make_bc_policy(const BcSettings& settings, std::uint64_t seed) {
  check(settings);
  auto policy = std::make_shared<BcPolicy>(settings);
  initialise(*policy, seed);
  return policy;
}

const BcSettings& bc_settings(const torch::nn::Module& policy) {
  return as_bc_policy(policy).settings();
}

at::Tensor bc_loss(torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions) {
  return as_bc_policy(policy).loss(observations, actions);
}

BcControl::BcControl(torch::nn::Module& policy, std::uint64_t seed) : policy_(policy), seed_(seed) {
  bc_settings(policy);  // throws for another module
}

bool BcControl::remembers() const {
  return bc_settings(policy_).rnn.enabled;
}

void BcControl::begin(std::uint64_t environment) {
  Environment& e = environments_[environment];
  e.hidden = e.cell = at::Tensor();
  e.steps = 0;
}

at::Tensor BcControl::act(const std::vector<std::uint64_t>& environments, const Observations& frame) {
  const at::NoGradGuard no_grad;
  std::optional<RowsAloneGuard> rows_alone;
  if (exact()) rows_alone.emplace();
  COHORT_CHECK(!policy_.is_training(), "a policy acts in evaluation mode: call eval() first");
  const BcPolicy& policy = as_bc_policy(policy_);
  const BcSettings& s = policy.settings();
  const auto n = static_cast<std::int64_t>(environments.size());
  check_frame(s.encoder.observations, frame, n);
  Observations observations;
  for (const ObservationSettings& o : s.encoder.observations)
    observations[o.name] = padded_rows(frame.at(o.name), block()).unsqueeze(1);
  at::Tensor hidden, cell;
  if (s.rnn.enabled) {
    std::vector<at::Tensor> hiddens, cells;
    const auto options = at::TensorOptions(at::kFloat).device(observations.begin()->second.device());
    for (const std::uint64_t id : environments) {
      Environment& e = environments_[id];
      if (!e.hidden.defined() || e.steps % static_cast<std::uint64_t>(s.rnn.horizon) == 0) {
        e.hidden = at::zeros({s.rnn.num_layers, s.rnn.hidden_dim}, options);
        e.cell = at::zeros_like(e.hidden);
      }
      hiddens.push_back(e.hidden);
      cells.push_back(e.cell);
    }
    hidden = padded_rows(at::stack(hiddens, 1), block(), 1);
    cell = padded_rows(at::stack(cells, 1), block(), 1);
  }
  const auto [features, next_hidden, next_cell] = policy.features(observations, 1, hidden, cell);
  at::Tensor actions;
  if (s.gmm.enabled) {
    Mixture mixture = policy.mixture(features.select(1, 0));
    mixture = {mixture.means.cpu(), mixture.scales.cpu(), mixture.logits.cpu()};
    std::vector<at::Tensor> drawn;
    for (std::size_t i = 0; i < environments.size(); ++i) {
      const RandomStream stream(seed_, RandomPurpose::kSampling, environments[i], environments_[environments[i]].steps);
      drawn.push_back(draw(mixture, static_cast<std::int64_t>(i), stream));
    }
    actions = at::stack(drawn).to(features.device());
  } else {
    actions = policy.actions(features.select(1, 0)).narrow(0, 0, n);
  }
  for (std::size_t i = 0; i < environments.size(); ++i) {
    Environment& e = environments_[environments[i]];
    ++e.steps;
    if (!s.rnn.enabled) continue;
    // Copies: a view would keep the states of all environments.
    e.hidden = next_hidden.select(1, static_cast<std::int64_t>(i)).clone();
    e.cell = next_cell.select(1, static_cast<std::int64_t>(i)).clone();
  }
  return actions;
}

}  // namespace cohort::models
