/// RDT as a policy: observations and actions of one robot in the 128 slots, images through SigLIP, the instruction as
/// tokens, and what training leaves out at random.
///
///   RdtSettings settings{...};
///   std::shared_ptr<PolicyNetwork> policy = make_rdt_policy(settings, /*seed=*/1);
///   const RandomContextGuard guard({.seed = 1, .step = step, .sample_ids = ids});
///   policy->loss(observations, actions).backward();
///
/// Weights: those of Rdt (rdt.h) at the top level; vision_encoder.vision_model.*; lang_token where no embedded
/// instruction was given, else the buffers lang_embed and empty_lang_embed.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "models/policy_network.h"
#include "models/rdt/rdt.h"
#include "models/vision/siglip.h"

namespace cohort::models {

struct RdtSettings {
  RdtNetworkSettings network;
  int exec_horizon = 16;    ///< actions of a chunk that are executed before the next one is drawn
  double ctrl_freq = 25.0;  ///< Hz at which the data's actions follow one another

  double cond_mask_prob = 0.1;    ///< how often training hides each condition: frequency, state, mask, image, text
  double cam_ext_mask_prob = -1;  ///< how often it hides the first camera; below 0: cond_mask_prob
  std::optional<double> state_noise_snr;  ///< dB between the states and the noise that training adds; empty: none
  bool image_aug = false;                 ///< colours of every other training image are jittered

  SiglipVisionSettings vision;
  bool train_vision = false;   ///< the vision encoder learns along; false: it is frozen
  std::string vision_weights;  ///< file or folder of a SigLIP; empty: drawn from the seed

  std::string lang_embed;        ///< file of the embedded instruction, (tokens, lang_token_dim); empty: a learned token
  std::string empty_lang_embed;  ///< likewise of the empty instruction, for cond_mask_prob; empty: zeros
  int lang_tokens = 0;           ///< tokens of these files; they follow from them and are kept with the run
  int empty_lang_tokens = 0;

  std::vector<std::string> slots;  ///< "COMPONENT: SLOT, ..." for fields that are not known by name (state_vector.h)
  /// These follow from the data: the slot of every number of the state and of the action, the mean and deviation of the
  /// state as the network sees it.
  std::vector<int> state_slots, action_slots;
  std::vector<double> state_mean, state_std;

  // Not bound: what make() knows.
  std::vector<ObservationSettings> observations;
  std::string language_observation;  ///< the observation that holds the instruction, one token; empty: none
};

/// Binds it all but the observations; the network's settings stand beside the others.
void describe(config::Fields& fields, RdtSettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const RdtSettings& settings);

/// A policy in training mode on the CPU, its weights drawn from `seed`.
std::shared_ptr<PolicyNetwork> make_rdt_policy(const RdtSettings& settings, std::uint64_t seed);
/// The settings of a policy of make_rdt_policy(); null for another module.
const RdtSettings* rdt_settings(const torch::nn::Module& policy);

}  // namespace cohort::models
