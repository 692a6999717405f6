#include "policies/diffusion/diffusion_policy.h"

#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/host_values.h"
#include "models/initialise.h"
#include "models/receding_horizon.h"

namespace cohort::models {
namespace {

/// The id under which draw number `draw` of a sample meets its own dropout masks.
constexpr std::int64_t kDrawStride = std::int64_t{1} << 40;

/// The noise of a training step with all draws of the batch one after another, n = draws x samples: noise (n, chunk,
/// width), timesteps (n), and the schedule's factors (2, n).
struct PlacedNoise {
  at::Tensor noise, timesteps, factors;
};

class Parts : public torch::nn::Module {
 public:
  template <class M>
  std::shared_ptr<M> hold(const std::string& name, std::shared_ptr<M> child) {
    return register_module(name, std::move(child));
  }
};

class DiffusionPolicy final : public PolicyNetwork {
 public:
  explicit DiffusionPolicy(const DiffusionPolicySettings& s)
      : PolicyNetwork("DiffusionPolicy"), settings_(s), schedule_(s.schedule) {
    const auto parts = register_module("policy", std::make_shared<Parts>());
    encoder_ = parts->hold("obs_encoder", std::make_shared<ObservationEncoder>(s.encoder));
    const int features = static_cast<int>(encoder_->width()), frames = s.horizon.observation_horizon;
    network_ = parts->hold(
        "noise_pred_net",
        s.network == "unet"
            ? make_unet(s.unet, s.horizon.prediction_horizon, s.action_width, frames * features)
            : make_transformer(s.transformer, s.horizon.prediction_horizon, s.action_width, frames, features));
  }

  const DiffusionPolicySettings& settings() const { return settings_; }
  const std::vector<ObservationSettings>& observations() const override { return settings_.encoder.observations; }

  at::Tensor loss(const Observations& observations, const at::Tensor& actions) const override {
    return loss(observations, actions, draw(actions.size(0), actions.device()));
  }

  at::Tensor draw(const Observations& observations, const std::vector<std::uint64_t>& ids,
                  std::uint64_t seed) override {
    std::vector<SamplingKey> keys;
    for (const std::uint64_t id : ids) keys.push_back({.seed = seed, .id = id, .count = 0});
    return sample(observations, keys, settings_.sampler);
  }

  std::unique_ptr<PolicyControl> control(std::uint64_t seed) override {
    return std::make_unique<RecedingHorizon>(chunk_source(*this), seed);
  }

  at::Tensor encode(const Observations& observations) const {
    return encoder_->forward(observations, settings_.horizon.observation_horizon);
  }

  PlacedNoise place(const TrainingNoise& drawn, at::Device device) const {
    PlacedNoise placed = all_draws(drawn);
    for (at::Tensor* tensor : {&placed.noise, &placed.timesteps, &placed.factors}) *tensor = tensor->to(device);
    return placed;
  }

  /// What the calling thread's context draws.
  PlacedNoise draw(std::int64_t samples, at::Device device) const {
    const std::vector<at::Tensor> values = host_values(device, [this, samples](const RandomContext& context) {
      const DiffusionPolicySettings& s = settings_;
      const PlacedNoise drawn =
          all_draws(draw_training_noise(context, samples, s.schedule.num_train_timesteps, s.noise_samples,
                                        s.horizon.prediction_horizon, s.action_width));
      return std::vector<at::Tensor>{drawn.noise, drawn.timesteps, drawn.factors};
    });
    return {values[0], values[1], values[2]};
  }

  at::Tensor loss(const Observations& observations, const at::Tensor& actions, const PlacedNoise& drawn) const {
    const std::int64_t rows = settings_.horizon.prediction_horizon, width = settings_.action_width;
    COHORT_THROW_UNLESS(actions.dim() == 3 && actions.size(1) >= rows && actions.size(2) == width,
                        "actions have shape {}, but must be (samples, {}, {}): prediction_horizon rows of actions",
                        c10::str(actions.sizes()), rows, width);
    const at::Tensor x0 = actions.narrow(1, 0, rows).to(at::kFloat);
    const std::int64_t samples = x0.size(0), draws = drawn.noise.size(0) / samples;
    const at::Tensor features = encode(observations);
    COHORT_THROW_UNLESS(features.size(0) == samples, "{} samples of observations, but {} of actions", features.size(0),
                        samples);
    const at::Tensor clean = x0.repeat({draws, 1, 1});
    const at::Tensor noisy = NoiseSchedule::add_noise_by(drawn.factors, clean, drawn.noise);
    const at::Tensor seen = features.repeat({draws, 1, 1});
    at::Tensor predicted;
    if (draws > 1 && has_random_context()) {
      RandomContext context = random_context();
      const at::Tensor ids = context.sample_ids.defined() ? context.sample_ids : at::arange(samples);
      context.sample_ids = (ids.unsqueeze(0) + at::arange(draws).unsqueeze(1) * kDrawStride).flatten();
      const RandomContextGuard guard(context);
      predicted = network_->forward(noisy, drawn.timesteps, seen);
    } else {
      predicted = network_->forward(noisy, drawn.timesteps, seen);
    }
    return at::mse_loss(predicted.to(at::kFloat), schedule_.target_by(drawn.factors, clean, drawn.noise));
  }

  at::Tensor sample(const Observations& observations, const std::vector<SamplingKey>& keys,
                    const SamplerSettings& sampler_settings) const {
    const at::NoGradGuard no_grad;
    const std::int64_t rows = settings_.horizon.prediction_horizon, width = settings_.action_width;
    const at::Tensor features = encode(observations);
    const auto samples = static_cast<std::int64_t>(keys.size());
    COHORT_CHECK(features.size(0) == samples, "{} keys for {} samples", samples, features.size(0));
    const at::Device device = features.device();
    const auto sampler = make_sampler(sampler_settings, schedule_);
    at::Tensor x = draw_sampling_noise(keys, 0, rows, width).to(device);
    for (std::size_t i = 0; i < sampler->timesteps().size(); ++i) {
      const at::Tensor t = at::full({samples}, sampler->timesteps()[i], at::TensorOptions(at::kLong).device(device));
      const at::Tensor output = network_->forward(x, t, features).to(at::kFloat);
      x = sampler->step(
          i, output, x,
          sampler->needs_noise(i) ? draw_sampling_noise(keys, i + 1, rows, width).to(device) : at::Tensor());
    }
    return x;
  }

 private:
  PlacedNoise all_draws(const TrainingNoise& drawn) const {
    const at::Tensor timesteps = drawn.timesteps.repeat({drawn.noise.size(0)});
    return {drawn.noise.flatten(0, 1), timesteps, schedule_.factors(timesteps)};
  }

  DiffusionPolicySettings settings_;
  NoiseSchedule schedule_;
  std::shared_ptr<ObservationEncoder> encoder_;
  std::shared_ptr<Denoiser> network_;
};

const DiffusionPolicy& as_diffusion_policy(const torch::nn::Module& module) {
  const auto* policy = dynamic_cast<const DiffusionPolicy*>(&module);
  COHORT_CHECK(policy != nullptr, "this module ({}) is no diffusion policy", module.name());
  return *policy;
}

int first_action(const HorizonSettings& h) {
  return h.first_action < 0 ? h.observation_horizon - 1 : h.first_action;
}

}  // namespace

void describe(config::Fields& fields, DiffusionPolicySettings& s) {
  fields.section("horizon", [&] {
    fields.add("observation_horizon", s.horizon.observation_horizon, "frames of observations that condition a chunk");
    fields.add("action_horizon", s.horizon.action_horizon, "actions executed before the next chunk is drawn");
    fields.add("prediction_horizon", s.horizon.prediction_horizon, "actions in a chunk");
    fields.add("first_action", s.horizon.first_action,
               "row of the chunk that belongs to the newest observation; -1: observation_horizon - 1");
  });
  fields.add("noise_samples", s.noise_samples, "noise draws per sample and step");
  fields.add_choice("network", s.network, {"unet", "transformer"}, "what takes the noise out of actions");
  fields.section("unet", [&] { describe(fields, s.unet); });
  fields.section("transformer", [&] { describe(fields, s.transformer); });
  fields.section("schedule", [&] { describe(fields, s.schedule); });
  fields.section("sampler", [&] { describe(fields, s.sampler); });
}

void check(const DiffusionPolicySettings& s) {
  const HorizonSettings& h = s.horizon;
  COHORT_THROW_UNLESS(s.action_width >= 1, "diffusion policy: action_width = {}, but must be at least 1",
                      s.action_width);
  COHORT_THROW_UNLESS(h.observation_horizon >= 1 && h.action_horizon >= 1,
                      "diffusion policy: observation_horizon = {} and action_horizon = {}, but must be at least 1",
                      h.observation_horizon, h.action_horizon);
  COHORT_THROW_UNLESS(first_action(h) + h.action_horizon <= h.prediction_horizon,
                      "diffusion policy: prediction_horizon = {}, but {} actions are executed from row {} on",
                      h.prediction_horizon, h.action_horizon, first_action(h));
  COHORT_THROW_UNLESS(s.noise_samples >= 1, "diffusion policy: noise_samples = {}, but must be at least 1",
                      s.noise_samples);
  COHORT_THROW_UNLESS(s.network == "unet" || s.network == "transformer",
                      "diffusion policy: network = \"{}\", but must be unet or transformer", s.network);
  if (s.network == "unet")
    check(s.unet, h.prediction_horizon);
  else
    check(s.transformer);
  check(s.schedule);
  check(s.sampler, s.schedule);
}

std::shared_ptr<PolicyNetwork> make_diffusion_policy(const DiffusionPolicySettings& settings, std::uint64_t seed) {
  check(settings);
  auto policy = std::make_shared<DiffusionPolicy>(settings);
  initialise(*policy, seed);
  return policy;
}

const DiffusionPolicySettings& diffusion_settings(const torch::nn::Module& policy) {
  return as_diffusion_policy(policy).settings();
}

at::Tensor diffusion_loss(torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions) {
  return as_diffusion_policy(policy).loss(observations, actions);
}

at::Tensor diffusion_loss(torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions,
                          const TrainingNoise& noise) {
  const DiffusionPolicy& diffusion = as_diffusion_policy(policy);
  return diffusion.loss(observations, actions, diffusion.place(noise, actions.device()));
}

at::Tensor sample_actions(torch::nn::Module& policy, const Observations& observations,
                          const std::vector<SamplingKey>& keys) {
  return sample_actions(policy, observations, keys, as_diffusion_policy(policy).settings().sampler);
}

at::Tensor sample_actions(torch::nn::Module& policy, const Observations& observations,
                          const std::vector<SamplingKey>& keys, const SamplerSettings& sampler) {
  return as_diffusion_policy(policy).sample(observations, keys, sampler);
}

ChunkSource chunk_source(torch::nn::Module& policy) {
  const DiffusionPolicySettings& settings = diffusion_settings(policy);  // throws for another module
  return {.policy = &policy,
          .observations = &settings.encoder.observations,
          .frames = settings.horizon.observation_horizon,
          .rows = settings.horizon.action_horizon,
          .in_episode = "",
          .draw = [&policy](const Observations& observations, const std::vector<SamplingKey>& keys) {
            return executed_part(policy, sample_actions(policy, observations, keys));
          }};
}

at::Tensor executed_part(const torch::nn::Module& policy, const at::Tensor& chunks) {
  const HorizonSettings& h = as_diffusion_policy(policy).settings().horizon;
  return chunks.narrow(1, first_action(h), h.action_horizon);
}

}  // namespace cohort::models
