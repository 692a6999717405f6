/// The sections "algo" and "observation" of a robomimic configuration (diffusion_policy, as the DROID fork has it) as
/// settings of a policy.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/diffusion/robomimic_optimizer.h"

namespace cohort::models {

struct RobomimicPolicy {
  /// encoder.observations holds the names in the configuration's order, low-dimensional ones first. Cameras have the
  /// shape (3, observation.image_dim) where that is given; all other shapes are empty and follow from the data.
  DiffusionPolicySettings settings;
  std::vector<std::string> low_dim, rgb;  ///< names of the observations by kind, as the configuration lists them
  bool pretrained_backbone = false;       ///< the trunk should begin with ImageNet weights: load them from a file
  bool ema_enabled = true;                ///< algo.ema, for train::EmaSettings
  double ema_power = 0.75;
  RobomimicOptimizer optimizer;  ///< algo.optim_params.policy
};

enum class ObservationOrder {
  kAsListed,  ///< the low-dimensional ones, then the cameras: the DROID fork on RLDS data
  kByName,    ///< sorted: robomimic on HDF5 data
  kDroid,     ///< droid_observation_order(), then others as listed: the DROID fork on its own HDF5 data
};

/// How the DROID fork joins the observations of its HDF5 data, however they are listed (utils/file_utils.py,
/// get_shape_metadata_from_dataset).
const std::vector<std::string>& droid_observation_order();

/// A missing key has the fork's default (its config/*.py, and the constructors of its VisualCore and randomizers); null
/// means what it means there, and is refused where the fork would fail.
///
/// Every key is honoured, or refused by name: throws Error listing all keys that are unknown or ask for what is not
/// there, each with its path and value. `source` names the file in messages. Keys that only concern what is switched
/// off (depth and scan encoders without such observations, ddpm while ddim is enabled) are read and have no effect.
RobomimicPolicy read_robomimic_policy(const config::Json& algo, const config::Json& observation,
                                      const std::string& source, ObservationOrder order);

}  // namespace cohort::models
