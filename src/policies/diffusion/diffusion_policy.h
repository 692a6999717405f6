/// Diffusion Policy (Chi et al. 2023) as the DROID and robomimic configurations have it: an observation encoder, and a
/// network that takes the noise out of chunks of actions.
///
///   DiffusionPolicySettings settings{...};
///   std::shared_ptr<PolicyNetwork> policy = make_diffusion_policy(settings, /*seed=*/1);
///   const RandomContextGuard guard({.seed = 1, .step = step, .sample_ids = ids});     // training
///   diffusion_loss(*policy, observations, actions).backward();
///   ...
///   policy->eval();
///   at::Tensor chunk = sample_actions(*policy, observations, {{.seed = 1, .id = 0, .count = 0}});  // (1, Tp, A)
///   at::Tensor next = executed_part(*policy, chunk);                                               // (1, Ta, A)
///
/// Weights: policy.obs_encoder.*, policy.noise_pred_net.*: the reference's without the ".module" of its DataParallel
/// (weight_names.h). Actions are normalised to [-1, 1] by whoever makes the batches.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "models/diffusion/noise.h"
#include "models/diffusion/noise_schedule.h"
#include "models/diffusion/sampler.h"
#include "models/policy_network.h"
#include "models/receding_horizon.h"
#include "models/vision/observation_encoder.h"
#include "policies/diffusion/transformer.h"
#include "policies/diffusion/unet.h"

namespace cohort::models {

struct HorizonSettings {
  int observation_horizon = 2;  ///< To: frames of observations that condition a chunk
  int action_horizon = 8;       ///< Ta: actions executed before the next chunk is drawn
  int prediction_horizon = 16;  ///< Tp: actions in a chunk
  /// Row of the chunk that belongs to the newest observation, where execution begins. -1: observation_horizon - 1, for
  /// chunks that begin with the oldest frame (robomimic, Diffusion Policy). 0 for chunks that begin with the newest
  /// (the DROID RLDS pipeline; the reference executes from row 1 on there, which is one step late).
  int first_action = -1;
};

struct DiffusionPolicySettings {
  int action_width = 10;  ///< numbers per action
  HorizonSettings horizon;
  int noise_samples = 8;  ///< noise draws per sample and step, at one timestep
  ObservationEncoderSettings encoder;
  std::string network = "unet";  ///< unet, transformer
  UnetSettings unet;
  TransformerSettings transformer;
  NoiseScheduleSettings schedule;
  SamplerSettings sampler;
};

/// Binds horizon.*, noise_samples, network, unet.*, transformer.*, schedule.*, sampler.*; what follows from the data
/// (action_width, observations) and the image encoder's settings are bound by whoever reads the data.
void describe(config::Fields& fields, DiffusionPolicySettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const DiffusionPolicySettings& settings);

/// A policy in training mode on the CPU, its weights drawn from `seed`.
std::shared_ptr<PolicyNetwork> make_diffusion_policy(const DiffusionPolicySettings& settings, std::uint64_t seed);
const DiffusionPolicySettings& diffusion_settings(const torch::nn::Module& policy);

/// Mean squared error of the predicted noise (or what schedule.prediction_type asks for), a scalar with a graph.
/// actions (B, >= Tp, A): the first Tp rows. Timesteps and noise are drawn by this thread's RandomContext.
at::Tensor diffusion_loss(torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions);
/// The same with given timesteps and noise (noise.h); dropout and randomizers still ask for a RandomContext.
at::Tensor diffusion_loss(torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions,
                          const TrainingNoise& noise);

/// (B, Tp, A): chunks of normalised actions, without a graph. One key per sample: the same key and observations give
/// the same chunk in any batch. `sampler` replaces the settings' one. The policy should be in evaluation mode, and hold
/// its moving average where there is one (train's EmaWeightsGuard).
at::Tensor sample_actions(torch::nn::Module& policy, const Observations& observations,
                          const std::vector<SamplingKey>& keys);
at::Tensor sample_actions(torch::nn::Module& policy, const Observations& observations,
                          const std::vector<SamplingKey>& keys, const SamplerSettings& sampler);

/// The policy as RecedingHorizon acts with it (models/receding_horizon.h), which it must outlive.
ChunkSource chunk_source(torch::nn::Module& policy);

/// (B, Ta, A): the rows of the chunks that are to be executed.
at::Tensor executed_part(const torch::nn::Module& policy, const at::Tensor& chunks);

}  // namespace cohort::models
