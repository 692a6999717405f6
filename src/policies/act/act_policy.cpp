#include "policies/act/act_policy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/diffusion/noise.h"
#include "models/host_values.h"
#include "models/initialise.h"
#include "models/layers.h"
#include "models/module_group.h"
#include "models/receding_horizon.h"
#include "models/vision/resnet.h"
#include "policies/act/act_layers.h"
#include "policies/act/temporal_ensemble.h"

namespace cohort::models {
namespace {

bool is_environment(const ActSettings& s, const ObservationSettings& o) {
  return std::find(s.environment_state.begin(), s.environment_state.end(), o.name) != s.environment_state.end();
}

int depth_of(const std::string& backbone) {
  return backbone == "resnet18" ? 18 : backbone == "resnet34" ? 34 : 50;
}

ActLayerSettings layers_of(const ActSettings& s, bool xavier) {
  return {.width = s.dim_model,
          .heads = s.n_heads,
          .feed_forward = s.dim_feedforward,
          .dropout = s.dropout,
          .pre_norm = s.pre_norm,
          .gelu = s.feedforward_activation == "gelu",
          .xavier = xavier};
}

/// What the weights are called after.
class Model : public ModuleGroup {
 public:
  at::Tensor hold_buffer(const std::string& name, at::Tensor value) { return register_buffer(name, std::move(value)); }
};

/// What the network reads of a batch: normalised vectors (B, width), undefined where there are none; cameras (B, 3, H, W).
struct Seen {
  at::Tensor state, environment;
  std::vector<at::Tensor> pictures;
  std::int64_t samples = 0;
};

class ActPolicy final : public PolicyNetwork {
 public:
  explicit ActPolicy(const ActSettings& s) : PolicyNetwork("ActPolicy"), settings_(s) {
    const std::int64_t width = s.dim_model;
    std::int64_t state = 0, environment = 0, cameras = 0;
    for (const ObservationSettings& o : s.observations)
      if (o.is_camera())
        ++cameras;
      else
        (is_environment(s, o) ? environment : state) += o.shape[0];
    // The parts in the reference's order, which is that of its file and of the numbers that the weights are drawn by.
    const auto model = register_module("model", std::make_shared<Model>());
    LayerIds ids;
    if (s.use_vae) {
      vae_encoder_ = model->hold("vae_encoder",
                                 std::make_shared<ActStack>(s.n_vae_encoder_layers, layers_of(s, false), false, ids));
      class_token_ = model->hold("vae_encoder_cls_embed", std::make_shared<ActEmbedding>(1, width));
      if (state > 0)
        vae_state_in_ = model->hold("vae_encoder_robot_state_input_proj", std::make_shared<Linear>(state, width));
      vae_action_in_ = model->hold("vae_encoder_action_input_proj", std::make_shared<Linear>(s.action_width, width));
      latent_out_ = model->hold("vae_encoder_latent_output_proj", std::make_shared<Linear>(width, 2 * s.latent_dim));
      const std::int64_t tokens = 1 + (state > 0 ? 1 : 0) + s.chunk_size;
      vae_positions_ = model->hold_buffer("vae_encoder_pos_enc", act_sinusoid_table(tokens, width).unsqueeze(0));
    }
    if (cameras > 0)
      backbone_ = model->hold("backbone", std::make_shared<ResNet>(depth_of(s.vision_backbone), 3,
                                                                   ResNetNames::kTorchvision, ResNetNorm::kFrozen));
    encoder_ = model->hold("encoder", std::make_shared<ActStack>(s.n_encoder_layers, layers_of(s, true), false, ids));
    decoder_ = model->hold("decoder", std::make_shared<ActStack>(s.n_decoder_layers, layers_of(s, true), true, ids));
    if (state > 0) state_in_ = model->hold("encoder_robot_state_input_proj", std::make_shared<Linear>(state, width));
    if (environment > 0)
      environment_in_ = model->hold("encoder_env_state_input_proj", std::make_shared<Linear>(environment, width));
    latent_in_ = model->hold("encoder_latent_input_proj", std::make_shared<Linear>(s.latent_dim, width));
    if (cameras > 0)
      map_in_ = model->hold("encoder_img_feat_input_proj",
                            std::make_shared<ActMapProjection>(backbone_->output_channels(), width));
    const std::int64_t vectors = 1 + (state > 0 ? 1 : 0) + (environment > 0 ? 1 : 0);
    positions_ = model->hold("encoder_1d_feature_pos_embed", std::make_shared<ActEmbedding>(vectors, width));
    queries_ = model->hold("decoder_pos_embed", std::make_shared<ActEmbedding>(s.chunk_size, width));
    action_out_ = model->hold("action_head", std::make_shared<Linear>(width, s.action_width));
  }

  const std::vector<ObservationSettings>& observations() const override { return settings_.observations; }

  at::Tensor loss(const Observations& observations, const at::Tensor& actions) const override {
    at::Tensor noise;
    if (encodes())
      noise = host_values(actions.device(),
                          [samples = actions.size(0), width = settings_.latent_dim](const RandomContext& context) {
                            return std::vector<at::Tensor>{
                                draw_training_noise(context, samples, 1, 1, 1, width).noise.reshape({samples, width})};
                          })[0];
    return losses(observations, actions, noise).total;
  }

  ActLosses losses(const Observations& observations, const at::Tensor& actions, const at::Tensor& noise) const {
    const ActSettings& s = settings_;
    COHORT_THROW_UNLESS(actions.dim() == 3 && actions.size(1) == s.chunk_size && actions.size(2) == s.action_width,
                        "actions have shape {}, but must be (samples, {}, {}): chunk_size rows of actions",
                        c10::str(actions.sizes()), s.chunk_size, s.action_width);
    const at::Tensor target = actions.to(at::kFloat);
    const Seen seen = read(observations);
    COHORT_THROW_UNLESS(seen.samples == target.size(0), "{} samples of observations, but {} of actions", seen.samples,
                        target.size(0));
    const auto found = observations.find(kActionMaskObservation);
    const at::Tensor valid = found == observations.end()
                                 ? at::ones({target.size(0), s.chunk_size}, target.options().dtype(at::kBool))
                                 : found->second.to(at::kBool);
    ActLosses result;
    at::Tensor latent;
    if (encodes()) {
      const at::Tensor parameters = encode(seen, target, valid);
      const at::Tensor mean = parameters.narrow(1, 0, s.latent_dim),
                       log_variance = parameters.narrow(1, s.latent_dim, s.latent_dim);
      latent = mean + (log_variance / 2).exp() * noise;
      result.kl = (-0.5 * (1 + log_variance - mean.square() - log_variance.exp())).sum(-1).mean();
    }
    const at::Tensor error = (chunk(seen, latent) - target).abs();
    const at::Tensor counted = valid.unsqueeze(-1).to(at::kFloat);
    const at::Tensor numbers = (counted.sum() * static_cast<double>(s.action_width)).clamp_min(1.0);
    result.l1 = (error * counted).sum() / numbers;
    result.total = result.kl.defined() ? result.l1 + result.kl * s.kl_weight : result.l1;
    return result;
  }

  /// (B, chunk_size, A) float32; an undefined latent is zero.
  at::Tensor chunk(const Observations& observations) const { return chunk(read(observations), {}); }

  at::Tensor draw(const Observations& observations, const std::vector<std::uint64_t>& ids, std::uint64_t) override {
    const at::NoGradGuard no_grad;
    const at::Tensor drawn = chunk(observations);
    COHORT_CHECK(static_cast<std::size_t>(drawn.size(0)) == ids.size(), "{} ids for {} samples", ids.size(),
                 drawn.size(0));
    return drawn;
  }

  std::unique_ptr<PolicyControl> control(std::uint64_t seed) override {
    if (settings_.temporal_ensemble_coeff)
      return std::make_unique<TemporalEnsemble>(*this, settings_.chunk_size, *settings_.temporal_ensemble_coeff,
                                                [this](const Observations& seen) { return chunk(seen); });
    return std::make_unique<RecedingHorizon>(
        ChunkSource{.policy = this,
                    .observations = &settings_.observations,
                    .frames = 1,
                    .rows = settings_.n_action_steps,
                    .in_episode = "",
                    .draw =
                        [this](const Observations& seen, const std::vector<SamplingKey>&) {
                          return chunk(seen).narrow(1, 0, settings_.n_action_steps);
                        }},
        seed);
  }

 private:
  bool encodes() const { return settings_.use_vae && is_training(); }

  Seen read(const Observations& observations) const {
    Seen seen;
    std::vector<at::Tensor> state, environment;
    std::size_t camera = 0;
    for (const ObservationSettings& o : settings_.observations) {
      const auto found = observations.find(o.name);
      COHORT_THROW_UNLESS(found != observations.end(), "observation {} is missing from the batch", o.name);
      const at::Tensor& x = found->second;
      if (o.is_camera()) {
        seen.pictures.push_back(picture(o, x, camera++));
      } else {
        COHORT_THROW_UNLESS(x.dim() == 3 && x.size(1) == 1 && x.size(2) == o.shape[0],
                            "observation {} has shape {}, but must be (samples, 1, {})", o.name, c10::str(x.sizes()),
                            o.shape[0]);
        (is_environment(settings_, o) ? environment : state).push_back(x.select(1, 0).to(at::kFloat));
      }
      COHORT_THROW_UNLESS(seen.samples == 0 || seen.samples == x.size(0),
                          "observation {} has {} samples, but others have {}", o.name, x.size(0), seen.samples);
      seen.samples = x.size(0);
    }
    if (!state.empty()) seen.state = at::cat(state, 1);
    if (!environment.empty()) seen.environment = at::cat(environment, 1);
    return seen;
  }

  /// (B, 1, H, W, 3) bytes or (B, 1, 3, H, W) float in [0, 1] -> (B, 3, H, W), normalised.
  at::Tensor picture(const ObservationSettings& o, const at::Tensor& x, std::size_t camera) const {
    const bool bytes = x.scalar_type() == at::kByte;
    const std::int64_t c = o.shape[0], h = o.shape[1], w = o.shape[2];
    const std::vector<std::int64_t> wanted =
        bytes ? std::vector<std::int64_t>{1, h, w, c} : std::vector<std::int64_t>{1, c, h, w};
    COHORT_THROW_UNLESS(x.dim() == 5 && x.sizes().slice(1) == at::IntArrayRef(wanted),
                        "observation {} has shape {}, but must be (samples, {}): {}", o.name, c10::str(x.sizes()),
                        join(std::vector<std::string>{std::to_string(wanted[0]), std::to_string(wanted[1]),
                                                      std::to_string(wanted[2]), std::to_string(wanted[3])},
                             ", "),
                        bytes ? "bytes, colours last" : "colours first");
    const at::NoGradGuard no_grad;
    const at::Tensor frame = x.select(1, 0);
    const at::Tensor colours = bytes ? frame.permute({0, 3, 1, 2}).to(at::kFloat) / 255.0 : frame.to(at::kFloat);
    const auto of = [&](const std::vector<double>& all) {
      const std::size_t first = all.size() == 3 ? 0 : 3 * camera;
      // Written on the device: a step that is recorded as a graph copies nothing there.
      std::vector<at::Tensor> three;
      for (std::size_t i = first; i < first + 3; ++i)
        three.push_back(at::full({1, 1, 1, 1}, all[i], colours.options()));
      return at::cat(three, 1);
    };
    return ((colours - of(settings_.image_mean)) / (of(settings_.image_std) + 1e-8)).contiguous();
  }

  /// (B, 2 latent_dim): mean and logarithm of the variance of the latent, of state and actions.
  at::Tensor encode(const Seen& seen, const at::Tensor& actions, const at::Tensor& valid) const {
    const std::int64_t samples = actions.size(0), width = settings_.dim_model;
    std::vector<at::Tensor> tokens{class_token_->weight().unsqueeze(0).expand({samples, 1, width})};
    if (vae_state_in_) tokens.push_back(vae_state_in_->forward(seen.state).unsqueeze(1));
    tokens.push_back(vae_action_in_->forward(actions));
    for (at::Tensor& token : tokens) token = token.to(tokens.back().scalar_type());
    const auto before = static_cast<std::int64_t>(tokens.size()) - 1;
    const at::Tensor padded = at::cat({at::zeros({samples, before}, valid.options()), valid.logical_not()}, 1);
    const at::Tensor mask =
        at::zeros(padded.sizes(), actions.options()).masked_fill(padded, -std::numeric_limits<float>::infinity());
    const at::Tensor out = vae_encoder_->forward(at::cat(tokens, 1), vae_positions_, mask, {}, {});
    return latent_out_->forward(out.select(1, 0)).to(at::kFloat);
  }

  at::Tensor chunk(const Seen& seen, const at::Tensor& latent) const {
    const std::int64_t width = settings_.dim_model;
    const at::TensorOptions real = positions_->weight().options().requires_grad(false);
    std::vector<at::Tensor> tokens{
        latent_in_->forward(latent.defined() ? latent : at::zeros({seen.samples, settings_.latent_dim}, real))
            .unsqueeze(1)};
    if (state_in_) tokens.push_back(state_in_->forward(seen.state).unsqueeze(1));
    if (environment_in_) tokens.push_back(environment_in_->forward(seen.environment).unsqueeze(1));
    std::vector<at::Tensor> places{positions_->weight().unsqueeze(0)};
    add_pictures(seen.pictures, tokens, places);
    for (at::Tensor& token : tokens) token = token.to(tokens.front().scalar_type());
    const at::Tensor memory_places = at::cat(places, 1);
    const at::Tensor memory = encoder_->forward(at::cat(tokens, 1), memory_places, {}, {}, {});
    const at::Tensor out = decoder_->forward(at::zeros({seen.samples, settings_.chunk_size, width}, real),
                                             queries_->weight().unsqueeze(0), {}, memory, memory_places);
    return action_out_->forward(out).to(at::kFloat);
  }

  /// Cells of the feature maps as tokens, with their places. One pass for all cameras of one size.
  void add_pictures(const std::vector<at::Tensor>& pictures, std::vector<at::Tensor>& tokens,
                    std::vector<at::Tensor>& places) const {
    for (std::size_t first = 0; first < pictures.size();) {
      std::size_t end = first + 1;
      while (end < pictures.size() && pictures[end].sizes() == pictures[first].sizes()) ++end;
      const at::Tensor all =
          end == first + 1 ? pictures[first]
                           : at::cat(std::vector<at::Tensor>(pictures.begin() + static_cast<std::ptrdiff_t>(first),
                                                             pictures.begin() + static_cast<std::ptrdiff_t>(end)));
      const at::Tensor map = backbone_->forward(all);
      for (const at::Tensor& cells : map_in_->forward(map).chunk(static_cast<std::int64_t>(end - first))) {
        tokens.push_back(cells);
        places.push_back(act_map_positions(map.size(2), map.size(3), settings_.dim_model, map.device()));
      }
      first = end;
    }
  }

  ActSettings settings_;
  std::shared_ptr<ActStack> vae_encoder_, encoder_, decoder_;
  std::shared_ptr<ActEmbedding> class_token_, positions_, queries_;
  std::shared_ptr<Linear> vae_state_in_, vae_action_in_, latent_out_, state_in_, environment_in_, latent_in_,
      action_out_;
  at::Tensor vae_positions_;
  std::shared_ptr<ResNet> backbone_;
  std::shared_ptr<ActMapProjection> map_in_;
};

const ActPolicy& as_act_policy(const torch::nn::Module& module) {
  const auto* policy = dynamic_cast<const ActPolicy*>(&module);
  COHORT_CHECK(policy != nullptr, "this module ({}) is no ACT", module.name());
  return *policy;
}

}  // namespace

void describe(config::Fields& fields, ActSettings& s) {
  fields.add("chunk_size", s.chunk_size, "actions in a chunk");
  fields.add("n_action_steps", s.n_action_steps, "actions executed before the next chunk is drawn");
  fields.add("temporal_ensemble_coeff", s.temporal_ensemble_coeff,
             "m: a chunk at every step, and the mean over all with weights exp(-m i), oldest first (0.01); wants "
             "n_action_steps=1; null: off");
  fields.add("environment_state", s.environment_state,
             "observations that are the environment's state, a token of their own; all others are the robot's");
  fields.add_choice("vision_backbone", s.vision_backbone, {"resnet18", "resnet34", "resnet50"},
                    "what reads pictures, with frozen batch norm");
  fields.add("image_mean", s.image_mean, "of the pictures' colours in [0, 1]: three numbers, or three per camera");
  fields.add("image_std", s.image_std, "their standard deviation, likewise");
  fields.add("pre_norm", s.pre_norm, "layer norms before the parts of a layer instead of behind them");
  fields.add("dim_model", s.dim_model, "width; a multiple of n_heads and of 4");
  fields.add("n_heads", s.n_heads, "attention heads");
  fields.add("dim_feedforward", s.dim_feedforward, "width inside the layers' MLPs");
  fields.add_choice("feedforward_activation", s.feedforward_activation, {"relu", "gelu"}, "of these MLPs");
  fields.add("n_encoder_layers", s.n_encoder_layers, "layers that read the observations");
  fields.add("n_decoder_layers", s.n_decoder_layers, "layers that write the chunk");
  fields.add("use_vae", s.use_vae, "train with a latent that an encoder of the actions draws");
  fields.add("latent_dim", s.latent_dim, "its numbers");
  fields.add("n_vae_encoder_layers", s.n_vae_encoder_layers, "layers of that encoder");
  fields.add("dropout", s.dropout, "inside the layers");
  fields.add("kl_weight", s.kl_weight, "of the latent's divergence from N(0, 1) beside the actions' error");
}

void check(const ActSettings& s) {
  COHORT_THROW_UNLESS(s.action_width >= 1, "action_width = {}, but must be at least 1", s.action_width);
  COHORT_THROW_UNLESS(s.chunk_size >= 1 && s.n_action_steps >= 1,
                      "chunk_size = {} and n_action_steps = {}, but must be at least 1", s.chunk_size,
                      s.n_action_steps);
  COHORT_THROW_UNLESS(
      s.n_action_steps <= s.chunk_size,
      "n_action_steps = {}, but a chunk has chunk_size = {} actions: lower the first or raise the second",
      s.n_action_steps, s.chunk_size);
  COHORT_THROW_UNLESS(
      !s.temporal_ensemble_coeff || s.n_action_steps == 1,
      "n_action_steps = {}, but temporal ensembling draws a chunk at every step: set n_action_steps=1, or "
      "temporal_ensemble_coeff=null",
      s.n_action_steps);
  COHORT_THROW_UNLESS(s.n_heads >= 1 && s.dim_model >= 4 && s.dim_model % s.n_heads == 0 && s.dim_model % 4 == 0,
                      "dim_model = {}, but must be a multiple of 4 and of n_heads = {}", s.dim_model, s.n_heads);
  COHORT_THROW_UNLESS(s.dim_feedforward >= 1 && s.latent_dim >= 1,
                      "dim_feedforward = {} and latent_dim = {}, but must be at least 1", s.dim_feedforward,
                      s.latent_dim);
  COHORT_THROW_UNLESS(
      s.n_encoder_layers >= 1 && s.n_decoder_layers >= 1 && s.n_vae_encoder_layers >= 1,
      "n_encoder_layers = {}, n_decoder_layers = {} and n_vae_encoder_layers = {}, but must be at least "
      "1",
      s.n_encoder_layers, s.n_decoder_layers, s.n_vae_encoder_layers);
  COHORT_THROW_UNLESS(s.dropout >= 0 && s.dropout < 1, "dropout = {}, but must be in [0, 1)", s.dropout);
  COHORT_THROW_UNLESS(s.kl_weight >= 0, "kl_weight = {}, but must not be negative", s.kl_weight);
  std::size_t cameras = 0;
  for (const ObservationSettings& o : s.observations) cameras += o.is_camera() ? 1 : 0;
  const auto colours = [&](const char* name, const std::vector<double>& all) {
    COHORT_THROW_UNLESS(all.size() == 3 || (cameras > 0 && all.size() == 3 * cameras) ||
                            (s.observations.empty() && !all.empty() && all.size() % 3 == 0),
                        "{} has {} numbers, but must have 3, or 3 for each of {} cameras", name, all.size(), cameras);
  };
  colours("image_mean", s.image_mean);
  colours("image_std", s.image_std);
  for (const double std : s.image_std) COHORT_THROW_UNLESS(std > 0, "image_std holds {}, but must be positive", std);
  if (s.observations.empty()) return;
  std::vector<std::string> vectors;
  for (const ObservationSettings& o : s.observations)
    if (!o.is_camera()) vectors.push_back(o.name);
  for (const std::string& name : s.environment_state)
    COHORT_THROW_UNLESS(std::find(vectors.begin(), vectors.end(), name) != vectors.end(),
                        "environment_state names {}, but the policy sees the vectors {}", name, join(vectors, ", "));
}

std::shared_ptr<PolicyNetwork> make_act_policy(const ActSettings& settings, std::uint64_t seed) {
  check(settings);
  auto policy = std::make_shared<ActPolicy>(settings);
  initialise(*policy, seed);
  return policy;
}

ActLosses act_losses(const torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions,
                     const at::Tensor& noise) {
  return as_act_policy(policy).losses(observations, actions, noise);
}

at::Tensor act_chunk(torch::nn::Module& policy, const Observations& observations) {
  const at::NoGradGuard no_grad;
  return as_act_policy(policy).chunk(observations);
}

}  // namespace cohort::models
