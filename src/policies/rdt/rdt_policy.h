/// RDT as a policy: observations and actions of one robot in the 128 slots, images through SigLIP, the instruction as
/// tokens, and what training leaves out at random.
///
///   RdtSettings settings{...};
///   std::shared_ptr<PolicyNetwork> policy = make_rdt_policy(settings, /*seed=*/1);
///   const RandomContextGuard guard({.seed = 1, .step = step, .sample_ids = ids});
///   policy->loss(observations, actions).backward();
///
/// Weights: those of Rdt (rdt.h) at the top level; vision_encoder.vision_model.*; lang_token where no embedded
/// instruction was given, else the buffers empty_lang_embed and lang_embed; where there are several, lang_embeds (N, L,
/// width) and lang_mask (N, L), and the observation kInstructionObservation says which of them each sample is told.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "models/policy_network.h"
#include "models/vision/siglip.h"
#include "policies/rdt/rdt.h"

namespace cohort::models {

/// The observation (1) that is the row of an instruction in RdtSettings::instructions.
inline constexpr const char* kInstructionObservation = "instruction";
/// (B, frames) 1 where a frame is of the episode, 0 where it stands for one before the episode's first step; without it
/// all are of the episode. See RdtSettings::before_episode.
inline constexpr const char* kInEpisodeObservation = "in_episode";
/// Hz of each sample (B); without it RdtSettings::ctrl_freq, or what set_rdt_frequency() has said, holds for all.
inline constexpr const char* kFrequencyObservation = "ctrl_freq";

struct RdtSettings {
  RdtNetworkSettings network;
  int exec_horizon = 16;    ///< actions of a chunk that are executed before the next one is drawn
  double ctrl_freq = 25.0;  ///< Hz at which the data's actions follow one another, and of acting without ctrl_freqs
  std::vector<double> ctrl_freqs;  ///< of each data set, where they differ in training; empty: ctrl_freq of all

  double cond_mask_prob = 0.1;    ///< how often training hides each condition: frequency, state, mask, image, text
  double cam_ext_mask_prob = -1;  ///< how often it hides the first camera; below 0: cond_mask_prob
  /// What img_history_size frames show of the time before an episode's first step: background, the grey that the
  /// reference puts where there is no image (data/hdf5_vla_dataset.py's masks through train/dataset.py; None in
  /// scripts/agilex_model.py), or first_frame once more. The default is that of checkpoints that do not say it, which
  /// were trained so; new trainings take background.
  std::string before_episode = "first_frame";
  int noise_samples = 1;  ///< noisy chunks that training draws of each sample; its images are encoded once
  std::optional<double> state_noise_snr;  ///< dB between the states and the noise that training adds; empty: none
  bool image_aug = false;                 ///< training images go through rdt_augment (data/images/rdt_augment.h)

  SiglipVisionSettings vision;
  bool train_vision = false;   ///< the vision encoder learns along; false: it is frozen
  std::string vision_weights;  ///< file or folder of a SigLIP; empty: drawn from the seed

  /// File of the embedded instruction, (tokens, lang_token_dim), or of several with their texts
  /// (policies/instruction_embeddings.h); empty: a learned token.
  std::string lang_embed;
  std::string instruction;       ///< of all episodes, where the data do not say it and lang_embed holds several
  std::string empty_lang_embed;  ///< likewise of the empty instruction, for cond_mask_prob; empty: zeros
  int lang_tokens = 0;           ///< tokens of these files; they follow from them and are kept with the run
  int empty_lang_tokens = 0;
  /// The texts whose embeddings the policy carries, where lang_embed has texts: those of the data.
  std::vector<std::string> instructions;

  std::vector<std::string> data_sets;  ///< names of data.paths in the reference's files (dataset_stat.json)
  std::string dataset_stat;            ///< the reference's dataset_stat.json: the state's mean is taken from it

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
/// For acting: Hz of samples that do not say it.
void set_rdt_frequency(torch::nn::Module& policy, double hz);
/// For acting: one more embedding (tokens, width) beside those that the policy carries. It is no part of its weights.
/// Gives its number for kInstructionObservation. Throws Error for a wrong shape.
std::int64_t add_rdt_instruction(torch::nn::Module& policy, const at::Tensor& embedding);

}  // namespace cohort::models
