/// The model of a policy job: which observations it sees, which algorithm learns from them, and the module itself.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "policies/bc/behaviour_cloning.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/language.h"
#include "policies/rdt/rdt_policy.h"
#include "policies/recorded_fields.h"
#include "policies/recorded_pictures.h"

namespace cohort::policies {

struct PolicySettings {
  std::string algorithm = "diffusion_policy";  ///< one of algorithms() (algorithm.h)
  /// What the network calls its observations, one per component of data.proprio and per field of data.images; weights
  /// of cameras bear these names. Empty: the components and fields themselves.
  std::vector<std::string> low_dim, rgb;
  LanguageSettings language;       ///< the instruction, one more observation behind low_dim
  bool sort_observations = false;  ///< joined vector by name (robomimic on HDF5) instead of low_dim, then rgb
  /// These begin the joined vector, in this order (the DROID fork's on its HDF5 data); the others follow.
  std::vector<std::string> first_observations;
  std::string shared_cameras;  ///< cameras whose name holds this text share one image encoder; empty: none
  models::ObservationEncoderSettings images;  ///< all but the observations themselves
  models::DiffusionPolicySettings diffusion;
  models::BcSettings bc;
  models::RdtSettings rdt;
  std::string initial_weights;   ///< safetensors file with our names or the reference's; empty: drawn from the seed
  std::string backbone_weights;  ///< safetensors file of a torchvision ResNet, for every image trunk; empty: drawn
  /// The image trunks are meant to begin with weights that were trained before: refused without a file that holds them.
  bool pretrained_backbone = false;

  /// Shapes that follow from the data; kept in the configuration so that a model can be built without them.
  int action_width = 0;
  std::vector<int> action_widths;  ///< of the components of data.actions
  std::vector<int> low_dim_widths;
  std::vector<int> image_size;     ///< height, width
  RecordedPictures recorded;       ///< as they were drawn, before data.image_transforms
  RecordedFields recorded_fields;  ///< of data.proprio and data.actions, before their transforms
};

void describe(config::Fields& fields, PolicySettings& settings);

/// The observations in the network's order. Throws Error where names and shapes do not fit each other.
std::vector<models::ObservationSettings> observations_of(const PolicySettings& settings);

/// Throws Error where pretrained_backbone or language.required is set and no file is named.
void check_weights(const PolicySettings& settings);

/// What make_policy() would refuse, and files that are not there, without making anything. What follows from the data
/// (widths, sizes of images) is left out as long as it is not set. Throws Error naming the section of the settings, and
/// that of a robomimic configuration from which it may have come.
void check(const PolicySettings& settings);

/// The same policy without files to begin with: for weights that come from a checkpoint.
PolicySettings without_files(PolicySettings settings);

/// The policy in training mode on the CPU: weights from `seed`, then from backbone_weights and initial_weights where
/// they are given. Throws Error where pretrained_backbone has no file, for settings out of range, or for a file that
/// does not fit.
std::shared_ptr<models::PolicyNetwork> make_policy(const PolicySettings& settings, std::uint64_t seed);

}  // namespace cohort::policies
