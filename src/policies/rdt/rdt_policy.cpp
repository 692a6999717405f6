#include "policies/rdt/rdt_policy.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"
#include "models/diffusion/noise.h"
#include "models/host_values.h"
#include "models/initialise.h"
#include "models/receding_horizon.h"
#include "policies/rdt/state_vector.h"

namespace cohort::models {
namespace {

/// Places in a sample's stream, behind those of its noise (models/diffusion/noise.h).
constexpr std::uint64_t kMaskDraws = std::uint64_t{1} << 40;
constexpr std::uint64_t kStateDraws = std::uint64_t{1} << 41;
constexpr std::uint64_t kTimestepDraws = std::uint64_t{1} << 42;

/// What one training step draws, on the device. Masks are 1 where a condition is seen, else 0.
struct Drawn {
  at::Tensor timesteps, factors, noise;             // (B·draws), (2, B·draws), (B·draws, T, S)
  at::Tensor frequency, state, elements, language;  // (B)
  at::Tensor images;                                // (B, frames, cameras)
  at::Tensor state_noise;                           // (B, numbers of the state)
};

class RdtPolicy final : public PolicyNetwork, public Initialised {
 public:
  explicit RdtPolicy(const RdtSettings& s)
      : PolicyNetwork("RdtPolicy"), settings_(s), rdt_(std::make_shared<Rdt>(s.network, s.vision.patches())) {
    // At the top level, where the reference's files have them.
    for (const auto& child : rdt_->named_children()) register_module(child.key(), child.value());
    for (const ObservationSettings& o : s.observations) {
      if (o.is_camera())
        cameras_.push_back(o);
      else if (o.name != s.language_observation && o.name != kInstructionObservation)
        low_dim_.push_back(o);
    }
    vision_ = register_module("vision_encoder", std::make_shared<SiglipVision>(s.vision));
    if (!s.train_vision)
      for (at::Tensor& p : vision_->parameters()) p.requires_grad_(false);
    const std::int64_t width = s.network.lang_token_dim;
    if (!s.instructions.empty()) {
      const auto n = static_cast<std::int64_t>(s.instructions.size());
      lang_embeds_ = register_buffer("lang_embeds", at::zeros({n, s.lang_tokens, width}));
      lang_mask_ = register_buffer("lang_mask", at::zeros({n, s.lang_tokens}));
    } else if (s.lang_tokens > 0)
      lang_embed_ = register_buffer("lang_embed", at::zeros({s.lang_tokens, width}));
    else if (s.language_observation.empty())
      lang_token_ = register_parameter("lang_token", at::empty({1, width}));
    if (s.empty_lang_tokens > 0)
      empty_lang_embed_ = register_buffer("empty_lang_embed", at::zeros({s.empty_lang_tokens, width}));
    state_slots_ = indices_of(s.state_slots);
    action_slots_ = indices_of(s.action_slots);
  }

  const RdtSettings& settings() const { return settings_; }
  void set_frequency(double hz) { settings_.ctrl_freq = hz; }
  const std::vector<ObservationSettings>& observations() const override { return settings_.observations; }

  at::Tensor loss(const Observations& observations, const at::Tensor& actions) const override {
    const RdtNetworkSettings& n = settings_.network;
    const auto width = static_cast<std::int64_t>(settings_.action_slots.size());
    COHORT_THROW_UNLESS(actions.dim() == 3 && actions.size(1) >= n.horizon && actions.size(2) == width,
                        "actions have shape {}, but must be (samples, {}, {}): horizon rows of actions",
                        c10::str(actions.sizes()), n.horizon, width);
    const at::Tensor rows = actions.narrow(1, 0, n.horizon).to(at::kFloat);
    const Drawn drawn = draw_step(rows.size(0), rows.device());
    const at::Tensor clean = in_slots(rows, action_slots_);
    return rdt_loss(*rdt_, conditions(observations, &drawn), clean, drawn.noise, drawn.timesteps, drawn.factors);
  }

  at::Tensor draw(const Observations& observations, const std::vector<std::uint64_t>& ids,
                  std::uint64_t seed) override {
    std::vector<SamplingKey> keys;
    for (const std::uint64_t id : ids) keys.push_back({.seed = seed, .id = id, .count = 0});
    return sample(observations, keys);
  }

  std::unique_ptr<PolicyControl> control(std::uint64_t seed) override {
    return std::make_unique<RecedingHorizon>(
        ChunkSource{.policy = this,
                    .observations = &settings_.observations,
                    .frames = frames(),
                    .rows = settings_.exec_horizon,
                    .in_episode = shows_background() ? kInEpisodeObservation : "",
                    .draw =
                        [this](const Observations& observations, const std::vector<SamplingKey>& keys) {
                          return sample(observations, keys).narrow(1, 0, settings_.exec_horizon);
                        }},
        seed);
  }

  void initialise(Initialiser& initialiser) override {
    if (lang_token_.defined()) initialiser.normal(lang_token_, 1.0);
  }

  std::int64_t add_instruction(const at::Tensor& embedding) {
    COHORT_CHECK(lang_embeds_.defined(), "the policy takes no instructions");
    const std::int64_t width = settings_.network.lang_token_dim;
    COHORT_THROW_UNLESS(
        embedding.dim() == 2 && embedding.size(1) == width && embedding.size(0) <= settings_.network.max_lang_cond_len,
        "an embedded instruction has shape {}, but must be (up to {}, {})", c10::str(embedding.sizes()),
        settings_.network.max_lang_cond_len, width);
    added_.push_back(embedding.to(at::kFloat));
    return lang_embeds_.size(0) + static_cast<std::int64_t>(added_.size()) - 1;
  }

 private:
  int frames() const { return cameras_.empty() ? 1 : settings_.network.img_history_size; }

  bool shows_background() const { return settings_.before_episode == "background" && frames() > 1; }

  static at::Tensor indices_of(const std::vector<int>& slots) {
    const std::vector<std::int64_t> numbers(slots.begin(), slots.end());
    return torch::tensor(numbers, at::kLong);
  }

  /// (..., numbers) -> (..., S), zero where no number belongs.
  at::Tensor in_slots(const at::Tensor& values, const at::Tensor& slots) const {
    std::vector<std::int64_t> shape = values.sizes().vec();
    shape.back() = settings_.network.state_token_dim;
    return at::zeros(shape, values.options()).index_copy(-1, slots.to(values.device()), values);
  }

  at::Tensor mask_of(const at::Tensor& slots, std::int64_t samples, at::Device device) const {
    return in_slots(at::ones({samples, slots.size(0)}, at::TensorOptions(at::kFloat).device(device)), slots);
  }

  /// (B, numbers): the state at the newest frame.
  at::Tensor state_of(const Observations& observations, std::int64_t samples, at::Device device) const {
    std::vector<at::Tensor> parts;
    for (const ObservationSettings& o : low_dim_) {
      const at::Tensor x = at(observations, o.name);
      COHORT_THROW_UNLESS(x.dim() == 3 && x.size(0) == samples && x.size(1) >= frames() && x.size(2) == o.shape[0],
                          "observation {} has shape {}, but must be ({}, {}, {})", o.name, c10::str(x.sizes()), samples,
                          frames(), o.shape[0]);
      parts.push_back(x.select(1, frames() - 1).to(at::kFloat));
    }
    return parts.empty() ? at::zeros({samples, 0}, at::TensorOptions(at::kFloat).device(device)) : at::cat(parts, 1);
  }

  static const at::Tensor& at(const Observations& observations, const std::string& name) {
    const auto found = observations.find(name);
    COHORT_THROW_UNLESS(found != observations.end(), "observation {} is missing from the batch", name);
    return found->second;
  }

  /// (B·frames, 3, H, W) in [0, 1].
  at::Tensor images_of(const Observations& observations, const ObservationSettings& camera) const {
    const at::Tensor& x = at(observations, camera.name);
    COHORT_THROW_UNLESS(x.dim() == 5 && x.size(1) >= frames(),
                        "observation {} has shape {}, but must be (samples, {}, ...)", camera.name, c10::str(x.sizes()),
                        frames());
    const at::Tensor flat = x.narrow(1, 0, frames()).flatten(0, 1);
    return flat.scalar_type() == at::kByte ? flat.permute({0, 3, 1, 2}).to(at::kFloat) / 255.0 : flat;
  }

  at::Tensor seen(const at::Tensor& pixels) const {
    if (settings_.train_vision) return vision_->forward(pixels);
    const at::NoGradGuard no_grad;
    return vision_->forward(pixels);
  }

  /// (B, frames · places · patches, width).
  at::Tensor image_tokens(const Observations& observations, std::int64_t samples, at::Device device,
                          const Drawn* drawn) const {
    const RdtNetworkSettings& n = settings_.network;
    const std::int64_t patches = settings_.vision.patches(), width = settings_.vision.hidden_size;
    const std::int64_t side = settings_.vision.image_size, history = n.img_history_size;
    at::Tensor in_episode;  // (B, frames)
    if (const auto given = observations.find(kInEpisodeObservation); shows_background() && given != observations.end())
      in_episode = given->second.narrow(1, 0, frames()).to(at::kFloat);
    // The background that the reference puts where there is no image.
    const at::Tensor background =
        siglip_pixels(at::full({1, 3, side, side}, 127.0 / 255.0, at::TensorOptions(at::kFloat).device(device)), side);
    std::vector<at::Tensor> pixels;
    for (std::size_t c = 0; c < cameras_.size(); ++c) {
      const at::Tensor images = images_of(observations, cameras_[c]);
      const auto column = static_cast<std::int64_t>(c);
      at::Tensor own = siglip_pixels(images, side);
      at::Tensor kept = in_episode;
      if (drawn != nullptr) {
        const at::Tensor shown = drawn->images.select(2, column);
        kept = kept.defined() ? kept * shown : shown;
      }
      if (kept.defined()) {
        kept = kept.reshape({-1, 1, 1, 1});
        own = kept * own + (1 - kept) * background;
      }
      pixels.push_back(own);
    }
    const std::int64_t absent = n.num_cameras - static_cast<std::int64_t>(cameras_.size());
    // One pass for all cameras, and the background once.
    if (absent > 0) pixels.push_back(background);
    const at::Tensor tokens = seen(at::cat(pixels));
    std::vector<at::Tensor> places;
    const std::int64_t images = samples * history;
    for (std::size_t c = 0; c < cameras_.size(); ++c)
      places.push_back(
          tokens.narrow(0, static_cast<std::int64_t>(c) * images, images).view({samples, history, 1, patches, width}));
    if (absent > 0)
      places.push_back(tokens.narrow(0, tokens.size(0) - 1, 1)
                           .view({1, 1, 1, patches, width})
                           .expand({samples, history, absent, patches, width}));
    return at::cat(places, 2).reshape({samples, -1, width});
  }

  /// Tokens (B, L, width) of the instructions that the samples name, and their mask. L is the same in every batch.
  std::pair<at::Tensor, at::Tensor> named_instructions(const Observations& observations) const {
    const at::Tensor& x = at(observations, kInstructionObservation);
    const at::Tensor rows = x.select(1, x.size(1) - 1).reshape({-1}).to(at::kLong);
    at::Tensor table = lang_embeds_, mask = lang_mask_;
    for (const at::Tensor& more : added_) {
      const std::int64_t length = std::max(table.size(1), more.size(0));
      const auto padded = [&](const at::Tensor& y) { return at::constant_pad_nd(y, {0, 0, 0, length - y.size(-2)}); };
      const at::Tensor own = more.to(table.device());
      table = at::cat({padded(table), padded(own).unsqueeze(0)});
      mask = at::cat({at::constant_pad_nd(mask, {0, length - mask.size(1)}),
                      at::constant_pad_nd(at::ones({1, own.size(0)}, mask.options()), {0, length - own.size(0)})});
    }
    return {table.index_select(0, rows), mask.index_select(0, rows) > 0};
  }

  /// Tokens (B, L, width) and their mask.
  std::pair<at::Tensor, at::Tensor> language_of(const Observations& observations, std::int64_t samples,
                                                const Drawn* drawn) const {
    const std::int64_t width = settings_.network.lang_token_dim;
    at::Tensor tokens, told;
    if (lang_embeds_.defined()) {
      std::tie(tokens, told) = named_instructions(observations);
    } else if (!settings_.language_observation.empty()) {
      const at::Tensor& x = at(observations, settings_.language_observation);
      tokens = x.select(1, x.size(1) - 1).to(at::kFloat).unsqueeze(1);
    } else {
      tokens = (lang_embed_.defined() ? lang_embed_ : lang_token_).unsqueeze(0).expand({samples, -1, -1});
    }
    if (drawn == nullptr) return {tokens, told};
    const std::int64_t length = std::max<std::int64_t>(tokens.size(1), settings_.empty_lang_tokens);
    const auto padded = [&](const at::Tensor& x) { return at::constant_pad_nd(x, {0, 0, 0, length - x.size(1)}, 0.0); };
    const at::Tensor kept = drawn->language.view({samples, 1, 1});
    const at::Tensor empty =
        empty_lang_embed_.defined() ? empty_lang_embed_.unsqueeze(0) : at::zeros({1, 1, width}, tokens.options());
    const at::Tensor place = at::arange(length, tokens.options().dtype(at::kLong)).unsqueeze(0);
    const at::Tensor own =
        told.defined() ? at::constant_pad_nd(told, {0, length - told.size(1)}, 0) : place < tokens.size(1);
    const at::Tensor mask = at::where(drawn->language.view({samples, 1}) > 0, own, place < empty.size(1));
    return {kept * padded(tokens) + (1 - kept) * padded(empty), mask};
  }

  RdtConditions conditions(const Observations& observations, const Drawn* drawn) const {
    const at::Tensor& first = at(observations, settings_.observations.front().name);
    const std::int64_t samples = first.size(0);
    const at::Device device = first.device();
    RdtConditions c;
    at::Tensor state = state_of(observations, samples, device);
    c.state_mask_BS = mask_of(state_slots_, samples, device);
    c.action_mask_BS = mask_of(action_slots_, samples, device);
    c.frequency_B = at::full({samples}, settings_.ctrl_freq, at::TensorOptions(at::kFloat).device(device));
    if (const auto own = observations.find(kFrequencyObservation); own != observations.end())
      c.frequency_B = own->second.reshape({samples}).to(at::kFloat);
    if (drawn != nullptr) {
      if (settings_.state_noise_snr) state = state + drawn->state_noise;
      if (!settings_.state_mean.empty()) {
        const at::Tensor mean = torch::tensor(settings_.state_mean, at::kFloat).to(device);
        state = at::where(drawn->state.unsqueeze(1) > 0, state, mean);
      } else {
        state = state * drawn->state.unsqueeze(1);
      }
      c.state_mask_BS = c.state_mask_BS * drawn->elements.unsqueeze(1);
      c.action_mask_BS = c.action_mask_BS * drawn->elements.unsqueeze(1);
      c.frequency_B = c.frequency_B * drawn->frequency;
    }
    c.state_BS = in_slots(state, state_slots_);
    c.images_BLE = image_tokens(observations, samples, device, drawn);
    std::tie(c.language_BLE, c.language_mask_BL) = language_of(observations, samples, drawn);
    return c;
  }

  at::Tensor sample(const Observations& observations, const std::vector<SamplingKey>& keys) const {
    const at::NoGradGuard no_grad;
    const RdtNetworkSettings& n = settings_.network;
    const RdtConditions c = conditions(observations, nullptr);
    COHORT_CHECK(c.state_BS.size(0) == static_cast<std::int64_t>(keys.size()), "{} keys for {} samples", keys.size(),
                 c.state_BS.size(0));
    const at::Device device = c.state_BS.device();
    const at::Tensor noise = draw_sampling_noise(keys, 0, n.horizon, n.state_token_dim).to(device);
    return rdt_sample(*rdt_, c, noise, n.sampler).index_select(2, action_slots_.to(device));
  }

  Drawn draw_step(std::int64_t samples, at::Device device) const {
    const std::vector<at::Tensor> v = host_values(device, [this, samples](const RandomContext& context) {
      const RdtSettings& s = settings_;
      const RdtNetworkSettings& n = s.network;
      const TrainingNoise noise = draw_training_noise(context, samples, n.schedule.num_train_timesteps, s.noise_samples,
                                                      n.horizon, n.state_token_dim);
      // Each draw at a timestep of its own.
      at::Tensor timesteps = noise.timesteps.unsqueeze(1).repeat({1, s.noise_samples});
      const std::int64_t history = n.img_history_size, cameras = n.num_cameras, images = history * cameras;
      at::Tensor kept = at::empty({samples, 4 + images});
      const auto numbers = static_cast<std::int64_t>(s.state_std.size());
      at::Tensor state_noise = at::zeros({samples, numbers});
      const at::Tensor ids = context.sample_ids.defined() ? context.sample_ids.contiguous() : at::arange(samples);
      for (std::int64_t i = 0; i < samples; ++i) {
        const auto id = static_cast<std::uint64_t>(ids.const_data_ptr<std::int64_t>()[i]);
        const RandomStream stream(context.seed, RandomPurpose::kDiffusion, id, context.step);
        for (std::int64_t k = 1; k < s.noise_samples; ++k)
          timesteps.mutable_data_ptr<std::int64_t>()[i * s.noise_samples + k] =
              stream.below(kTimestepDraws + static_cast<std::uint64_t>(k),
                           static_cast<std::uint32_t>(n.schedule.num_train_timesteps));
        float* row = kept.mutable_data_ptr<float>() + i * (4 + images);
        for (std::int64_t k = 0; k < 4 + images; ++k) {
          const bool first_camera = k >= 4 && (k - 4) % cameras == 0;
          const double hidden = first_camera && s.cam_ext_mask_prob >= 0 ? s.cam_ext_mask_prob : s.cond_mask_prob;
          row[k] =
              static_cast<double>(stream.uniform(kMaskDraws + static_cast<std::uint64_t>(k))) < hidden ? 0.0f : 1.0f;
        }
        if (!s.state_noise_snr) continue;
        // 10·log10(deviation² / noise²) = snr.
        const double share = std::pow(10.0, -*s.state_noise_snr / 20.0);
        for (std::int64_t k = 0; k < numbers; ++k)
          state_noise.mutable_data_ptr<float>()[i * numbers + k] =
              static_cast<float>(share * s.state_std[static_cast<std::size_t>(k)] *
                                 static_cast<double>(stream.normal(kStateDraws + static_cast<std::uint64_t>(k))));
      }
      timesteps = timesteps.flatten();
      return std::vector<at::Tensor>{timesteps, rdt_->schedule().factors(timesteps),
                                     noise.noise.transpose(0, 1).flatten(0, 1), kept, state_noise};
    });
    const at::Tensor& kept = v[3];
    return {.timesteps = v[0],
            .factors = v[1],
            .noise = v[2],
            .frequency = kept.select(1, 0),
            .state = kept.select(1, 1),
            .elements = kept.select(1, 2),
            .language = kept.select(1, 3),
            .images = kept.narrow(1, 4, kept.size(1) - 4)
                          .view({samples, settings_.network.img_history_size, settings_.network.num_cameras}),
            .state_noise = v[4]};
  }

  RdtSettings settings_;
  std::shared_ptr<Rdt> rdt_;
  std::shared_ptr<SiglipVision> vision_;
  std::vector<ObservationSettings> cameras_, low_dim_;
  std::vector<at::Tensor> added_;  // instructions beside those of the weights
  at::Tensor lang_token_, lang_embeds_, lang_mask_, lang_embed_, empty_lang_embed_, state_slots_, action_slots_;
};

}  // namespace

void describe(config::Fields& fields, RdtSettings& s) {
  describe(fields, s.network);
  fields.add("exec_horizon", s.exec_horizon, "actions of a chunk that are executed before the next one is drawn");
  fields.add("ctrl_freq", s.ctrl_freq, "Hz at which the data's actions follow one another");
  fields.add("cond_mask_prob", s.cond_mask_prob, "how often training hides each condition");
  fields.add("cam_ext_mask_prob", s.cam_ext_mask_prob,
             "how often training hides the first camera; below 0: as cond_mask_prob says");
  fields.add_choice("before_episode", s.before_episode, {"background", "first_frame"},
                    "what the image history shows of the time before an episode: grey as the reference, or the first "
                    "frame once more");
  fields.add("noise_samples", s.noise_samples,
             "noisy chunks that training draws of each sample, whose images are encoded once");
  fields.add("state_noise_snr", s.state_noise_snr, "dB between states and the noise that training adds to them");
  fields.add("image_aug", s.image_aug,
             "colours, noise and blur of every other training image, as the reference: data.image_transforms gets "
             "rdt_augment");
  fields.section("vision", [&] { describe(fields, s.vision); });
  fields.add("train_vision", s.train_vision, "the vision encoder learns along; false: it is frozen");
  fields.add("vision_weights", s.vision_weights, "weights of a SigLIP: .safetensors, .bin or their folder");
  fields.add("ctrl_freqs", s.ctrl_freqs, "Hz of each data set in training; empty: ctrl_freq of all");
  fields.add("lang_embed", s.lang_embed,
             "file or folder of the embedded instructions (`cohort data embed`); empty: a learned token");
  fields.add("instruction", s.instruction, "of all episodes, where the data do not say it");
  fields.add("instructions", s.instructions, "texts whose embeddings the policy carries; from the data and lang_embed");
  fields.add("empty_lang_embed", s.empty_lang_embed, "file of the embedded empty instruction; empty: zeros");
  fields.add("lang_tokens", s.lang_tokens, "tokens of lang_embed; from the file");
  fields.add("empty_lang_tokens", s.empty_lang_tokens, "tokens of empty_lang_embed; from the file");
  fields.add("data_sets", s.data_sets, "names of data.paths in the reference's files, in order");
  fields.add("dataset_stat", s.dataset_stat, "the reference's dataset_stat.json, for the state's mean");
  fields.add("slots", s.slots, "\"COMPONENT: SLOT, SLOT, ...\" for fields that RDT's table does not know by name");
  fields.add("state_slots", s.state_slots, "slots of the state's numbers; from the data");
  fields.add("action_slots", s.action_slots, "slots of the action's numbers; from the data");
  fields.add("state_mean", s.state_mean, "mean of the state's numbers; from the data");
  fields.add("state_std", s.state_std, "deviation of the state's numbers; from the data");
}

void check(const RdtSettings& s) {
  check(s.network);
  check(s.vision);
  COHORT_THROW_UNLESS(s.network.state_token_dim == kStateSlots, "the unified vector has {} slots, not {}", kStateSlots,
                      s.network.state_token_dim);
  COHORT_THROW_UNLESS(s.exec_horizon >= 1 && s.exec_horizon <= s.network.horizon,
                      "exec_horizon = {}, but must be from 1 to horizon = {}", s.exec_horizon, s.network.horizon);
  COHORT_THROW_UNLESS(s.vision.hidden_size == s.network.img_token_dim,
                      "img_token_dim = {}, but the vision encoder's tokens have vision.hidden_size = {} numbers",
                      s.network.img_token_dim, s.vision.hidden_size);
  COHORT_THROW_UNLESS(s.before_episode == "background" || s.before_episode == "first_frame",
                      "before_episode = \"{}\" is neither background nor first_frame", s.before_episode);
  COHORT_THROW_UNLESS(s.noise_samples >= 1, "noise_samples = {}, but must be at least 1", s.noise_samples);
  COHORT_THROW_UNLESS(s.ctrl_freq >= 0, "ctrl_freq = {} Hz must not be negative", s.ctrl_freq);
  for (const double frequency : s.ctrl_freqs)
    COHORT_THROW_UNLESS(frequency >= 0, "ctrl_freqs: {} Hz must not be negative", frequency);
  COHORT_THROW_UNLESS(s.cond_mask_prob >= 0 && s.cond_mask_prob <= 1 && s.cam_ext_mask_prob <= 1,
                      "cond_mask_prob = {} and cam_ext_mask_prob = {} are probabilities", s.cond_mask_prob,
                      s.cam_ext_mask_prob);
  for (const int tokens : {s.lang_tokens, s.empty_lang_tokens})
    COHORT_THROW_UNLESS(tokens <= s.network.max_lang_cond_len,
                        "an instruction of {} tokens, but max_lang_cond_len = {}", tokens, s.network.max_lang_cond_len);
  COHORT_THROW_UNLESS(s.instructions.empty() || s.lang_tokens > 0, "{} instructions, but lang_tokens = 0",
                      s.instructions.size());
  const auto cameras = std::count_if(s.observations.begin(), s.observations.end(),
                                     [](const ObservationSettings& o) { return o.is_camera(); });
  COHORT_THROW_UNLESS(cameras <= s.network.num_cameras, "{} cameras, but num_cameras = {} places for them", cameras,
                      s.network.num_cameras);
}

std::shared_ptr<PolicyNetwork> make_rdt_policy(const RdtSettings& settings, std::uint64_t seed) {
  check(settings);
  COHORT_THROW_UNLESS(!settings.observations.empty(), "the policy has no observations");
  COHORT_THROW_UNLESS(!settings.action_slots.empty(), "the slots of the action are not known: model.rdt.action_slots");
  std::size_t numbers = 0;
  for (const ObservationSettings& o : settings.observations)
    if (!o.is_camera() && o.name != settings.language_observation && o.name != kInstructionObservation)
      numbers += static_cast<std::size_t>(o.shape[0]);
  COHORT_THROW_UNLESS(numbers == settings.state_slots.size(), "the state has {} numbers, but model.rdt.state_slots {}",
                      numbers, settings.state_slots.size());
  COHORT_THROW_UNLESS(!settings.state_noise_snr || settings.state_std.size() == numbers,
                      "state_noise_snr needs the deviation of the state's {} numbers: model.rdt.state_std", numbers);
  auto policy = std::make_shared<RdtPolicy>(settings);
  initialise(*policy, seed);
  return policy;
}

std::int64_t add_rdt_instruction(torch::nn::Module& policy, const at::Tensor& embedding) {
  auto* own = dynamic_cast<RdtPolicy*>(&policy);
  COHORT_CHECK(own != nullptr, "the policy is no RDT");
  return own->add_instruction(embedding);
}

void set_rdt_frequency(torch::nn::Module& policy, double hz) {
  auto* own = dynamic_cast<RdtPolicy*>(&policy);
  COHORT_CHECK(own != nullptr, "the policy is no RDT");
  own->set_frequency(hz);
}

const RdtSettings* rdt_settings(const torch::nn::Module& policy) {
  const auto* own = dynamic_cast<const RdtPolicy*>(&policy);
  return own == nullptr ? nullptr : &own->settings();
}

}  // namespace cohort::models
