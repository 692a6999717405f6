/// ACT, the action chunking transformer (Zhao et al. 2023, arXiv:2304.13705): a conditional variational autoencoder whose
/// decoder is a transformer that reads pictures and state and answers with a chunk of actions. LeRobot's (0.6.1,
/// lerobot/policies/act), weight for weight: names, shapes, initial distributions and losses are its own.
///
///   std::shared_ptr<PolicyNetwork> policy = make_act_policy(settings, /*seed=*/1);
///   policy->loss(observations, actions).backward();
///   policy->eval();
///   at::Tensor chunk = act_chunk(*policy, observations);      // (B, chunk_size, A), normalised
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "models/policy_network.h"
#include "models/vision/observation_encoder.h"

namespace cohort::models {

/// An observation of training samples, (B, chunk_size) bool: false where a row of the actions only repeats the episode's
/// last one, which then counts neither in the encoder nor in the loss.
inline constexpr const char* kActionMaskObservation = "action_mask";

struct ActSettings {
  std::vector<ObservationSettings> observations;  ///< vectors and cameras
  int action_width = 14;
  int chunk_size = 100;      ///< rows of a chunk
  int n_action_steps = 100;  ///< of which are executed before the next chunk is drawn
  /// m of the weights exp(-m i) with which the chunks of former steps count for an action, the oldest first (0.01 in the
  /// paper): a chunk is drawn at every step then, and n_action_steps is 1. Nothing: chunks are executed one after another.
  std::optional<double> temporal_ensemble_coeff;
  /// Vectors that are the environment's state, a token of their own; all others are joined to the robot's state.
  std::vector<std::string> environment_state;
  std::string vision_backbone = "resnet18";  ///< resnet18, resnet34, resnet50
  /// Of the pictures' colours in [0, 1], by which they are normalised: three numbers, or three for each camera. These are
  /// ImageNet's, which LeRobot takes for every data set unless told otherwise (dataset.use_imagenet_stats).
  std::vector<double> image_mean{0.485, 0.456, 0.406}, image_std{0.229, 0.224, 0.225};
  bool pre_norm = false;
  int dim_model = 512;
  int n_heads = 8;
  int dim_feedforward = 3200;
  std::string feedforward_activation = "relu";  ///< or gelu
  int n_encoder_layers = 4;
  int n_decoder_layers = 1;  ///< the paper says 7, of which its program used the first one (tonyzhaozh/act#25)
  bool use_vae = true;
  int latent_dim = 32;
  int n_vae_encoder_layers = 4;
  double dropout = 0.1;
  double kl_weight = 10.0;
};

/// Binds all but the observations and action_width.
void describe(config::Fields& fields, ActSettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const ActSettings& settings);

/// In training mode on the CPU, its weights drawn from `seed`; the picture encoder's normalisation does nothing until
/// weights of a file are copied into it.
std::shared_ptr<PolicyNetwork> make_act_policy(const ActSettings& settings, std::uint64_t seed);

/// What a training step's loss is made of: scalars with a graph. kl is undefined without the autoencoder, and in
/// evaluation mode.
struct ActLosses {
  at::Tensor l1;  ///< mean absolute error over the rows that are not padded
  at::Tensor kl;  ///< of the latent's distribution from N(0, 1), summed over its numbers, mean over the samples
  at::Tensor total;
};
/// actions (B, chunk_size, A); noise (B, latent_dim), standard normal: what the latent is drawn with.
ActLosses act_losses(const torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions,
                     const at::Tensor& noise);

/// (B, chunk_size, A) with the latent at zero, without a graph.
at::Tensor act_chunk(torch::nn::Module& policy, const Observations& observations);

}  // namespace cohort::models
