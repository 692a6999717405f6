/// The Robotics Diffusion Transformer and its adaptors, weight for weight those of RDTRunner
/// (thu-ml/RoboticsDiffusionTransformer, models/rdt_runner.py): model.*, lang_adaptor.*, img_adaptor.*,
/// state_adaptor.*.
///
///   Rdt rdt({.hidden_size = 1024, .depth = 14, .num_heads = 32}, /*patches=*/729);
///   initialise(rdt, /*seed=*/1);
///   at::Tensor loss = rdt_loss(rdt, conditions, actions, noise, timesteps, factors);
///   at::Tensor chunk = rdt_sample(rdt, conditions, noise, settings.sampler);   // (B, T, 128)
///
/// It predicts the clean chunk from a noisy one. State and actions are vectors of 128 slots (state_vector.h) with a
/// mask that says which of them mean something.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "core/config.h"
#include "models/diffusion/noise_schedule.h"
#include "models/diffusion/sampler.h"
#include "policies/rdt/blocks.h"

namespace cohort::models {

/// The defaults are RDT-1B's (configs/base.yaml).
struct RdtNetworkSettings {
  int hidden_size = 2048;
  int depth = 28;
  int num_heads = 32;
  int horizon = 64;                          ///< actions in a chunk
  int img_history_size = 2;                  ///< frames of images
  int num_cameras = 3;                       ///< places for cameras; those without one see the background colour
  int state_token_dim = 128;                 ///< slots of a state or an action
  int lang_token_dim = 4096;                 ///< T5-v1.1-XXL's
  int img_token_dim = 1152;                  ///< SigLIP so400m's
  int max_lang_cond_len = 1024;              ///< longest instruction, tokens
  std::string lang_adaptor = "mlp2x_gelu";   ///< mlp<N>x_gelu: N linear layers
  std::string img_adaptor = "mlp2x_gelu";    ///< likewise
  std::string state_adaptor = "mlp3x_gelu";  ///< likewise
  NoiseScheduleSettings schedule{.num_train_timesteps = 1000, .prediction_type = "sample"};
  SamplerSettings sampler{.kind = "dpm_solver++", .num_inference_timesteps = 5};
};

void describe(config::Fields& fields, RdtNetworkSettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const RdtNetworkSettings& settings);

/// What a chunk is conditioned on. B samples, S slots.
struct RdtConditions {
  at::Tensor language_BLE;      ///< (B, L, lang_token_dim)
  at::Tensor language_mask_BL;  ///< bool, true for tokens; undefined: all are
  at::Tensor images_BLE;        ///< (B, history · cameras · patches, img_token_dim)
  at::Tensor state_BS;          ///< (B, S)
  at::Tensor state_mask_BS;     ///< 1 for slots that mean something, else 0
  at::Tensor action_mask_BS;    ///< likewise; the reference has one mask for both
  at::Tensor frequency_B;       ///< Hz at which actions follow one another
};

class Rdt : public torch::nn::Module {
 public:
  /// `patches`: tokens of one image. Throws Error for settings that check() refuses.
  Rdt(const RdtNetworkSettings& settings, std::int64_t patches);
  ~Rdt() override;

  const RdtNetworkSettings& settings() const { return settings_; }
  const NoiseSchedule& schedule() const { return schedule_; }

  /// (B, T, S): what the network gives for noisy chunks (B, T, S) at timesteps (B), int64. With k chunks for each of the
  /// conditions, beside each other, (B·k, T, S) and (B·k): the conditions are then worked on once for all k.
  at::Tensor forward(const at::Tensor& noisy_BTS, const at::Tensor& timesteps_B, const RdtConditions& conditions) const;

 private:
  class Transformer;
  class Adaptor;
  /// The conditions with the width of the transformer.
  struct Adapted {
    at::Tensor language, images, state;
  };
  Adapted adapt(const RdtConditions& conditions) const;
  at::Tensor denoise(const at::Tensor& noisy_BTS, const at::Tensor& timesteps_B, const RdtConditions& conditions,
                     const Adapted& adapted) const;
  friend at::Tensor rdt_sample(const Rdt& rdt, const RdtConditions& conditions, at::Tensor x,
                               const SamplerSettings& sampler);

  RdtNetworkSettings settings_;
  NoiseSchedule schedule_;
  std::shared_ptr<Transformer> model_;
  std::shared_ptr<Adaptor> lang_adaptor_, img_adaptor_, state_adaptor_;
};

/// Mean squared error over all slots, a scalar with a graph (RDTRunner.compute_loss). actions (B, T, S); noise (B·k, T,
/// S), k draws for each sample, and timesteps (B·k); factors (2, B·k): the schedule's, of the timesteps.
at::Tensor rdt_loss(const Rdt& rdt, const RdtConditions& conditions, const at::Tensor& actions_BTS,
                    const at::Tensor& noise_BTS, const at::Tensor& timesteps_B, const at::Tensor& factors_2B);

/// (B, T, S): chunks from noise, without a graph (RDTRunner.conditional_sample); 0 where the action's mask is.
at::Tensor rdt_sample(const Rdt& rdt, const RdtConditions& conditions, at::Tensor noise_BTS,
                      const SamplerSettings& sampler);

}  // namespace cohort::models
