/// A policy's folder as LeRobot (0.6.1) writes and reads it: what runs there acts here, and the other way round.
///
///   config.json                       type, features (names, kinds, shapes), settings of the network
///   model.safetensors                 its weights
///   policy_preprocessor.json, policy_postprocessor.json      steps around the network, and the files of their state
///   policy_preprocessor_step_3_normalizer_processor.safetensors, policy_postprocessor_step_0_unnormalizer_processor...
///                                     mean and standard deviation (or bounds, quantiles) of each feature
///   cohort.json                       only in folders written here: which fields of the data each feature was made of
///
/// LeRobot knows one vector observation.state and one observation.environment_state, and cameras observation.images.NAME;
/// what a policy has learnt from several fields stands there side by side, in their order.
/// Sources: lerobot/configs/policies.py, lerobot/processor/pipeline.py, normalize_processor.py.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/config.h"
#include "weights/checkpoint.h"

namespace cohort::policies {

/// A policy as such a folder describes it, for Algorithm::read_lerobot() and write_lerobot().
struct LeRobotPolicy {
  config::Json config;                         ///< config.json
  std::vector<std::string> environment_state;  ///< the low-dimensional observations that are of the kind ENV
  std::vector<double> image_mean, image_std;   ///< of colours in [0, 1]: three for each camera, in their order
};

/// Whether it has a config.json that says type and input_features.
bool is_lerobot_folder(const std::filesystem::path& path);

/// The folder as a checkpoint would hold it: configuration, statistics, weights (mapped, not copied). Throws Error naming
/// the file and what is wrong: a policy or a step of the processors that is not known here, statistics that are missing
/// or not those of the features, settings that cannot be honoured.
weights::CheckpointContent read_lerobot_folder(const std::filesystem::path& path);

struct LeRobotWriting {
  std::string data_set;  ///< of data.paths: whose statistics it takes, where each set has its own
  /// The low-dimensional observations that are the environment's state, of policies whose settings do not say it.
  std::vector<std::string> environment_state;
};

/// Writes the policy of a checkpoint (its moving average, where it has one) as such a folder, which must be empty or not
/// be there. Gives lines that say what each feature is made of. Throws Error where LeRobot has no such policy.
std::vector<std::string> write_lerobot_folder(const weights::CheckpointContent& checkpoint, const std::string& source,
                                              const std::filesystem::path& folder, const LeRobotWriting& wanted = {});

}  // namespace cohort::policies
