/// The sections "algo" and "observation" of a robomimic configuration (also as the DROID fork has them) as settings of a
/// policy. What is in algo, the algorithm of that name reads (Algorithm::read_robomimic).
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "core/json_section.h"
#include "policies/policy_settings.h"

namespace cohort::policies {

/// How the policy's weights are updated: the section algo.optim_params.policy, as robomimic/utils/torch_utils.py reads it
/// (optimizer_from_optim_params, lr_scheduler_from_optim_params).
struct RobomimicOptimizer {
  std::string kind = "adam";  ///< or adamw
  double learning_rate = 1e-4;
  double weight_decay = 0.0;  ///< regularization.L2
  /// multistep: at each of `epochs` the rate is multiplied by `decay`. cosine: half a wave down to 0 at the last step,
  /// after `warmup_steps` over which the rate rises from 0.
  std::string schedule = "multistep";
  double decay = 0.1;
  std::vector<int> epochs;
  int warmup_steps = 0;
};

/// Reads algo.optim_params.
void read_optimizer(config::JsonSection& algo, RobomimicOptimizer& optimizer);

struct RobomimicPolicy {
  /// encoder.observations holds the names in the network's order. Cameras have the shape (3, observation.image_dim) where
  /// that is given; all other shapes are empty and follow from the data.
  models::ObservationEncoderSettings encoder;
  std::vector<std::string> low_dim, rgb;  ///< names of the observations by kind, as the configuration lists them
  bool pretrained_backbone = false;       ///< the trunk should begin with ImageNet weights: load them from a file
  bool ema_enabled = false;               ///< algo.ema, for train::EmaSettings
  double ema_power = 0.75;
  RobomimicOptimizer optimizer;
};

enum class ObservationOrder {
  kAsListed,  ///< the low-dimensional ones, then the cameras: the DROID fork on RLDS data
  kByName,    ///< sorted: robomimic on HDF5 data
  kDroid,     ///< droid_observation_order(), then others as listed: the DROID fork on its own HDF5 data
};

/// How the DROID fork joins the observations of its HDF5 data, however they are listed (utils/file_utils.py,
/// get_shape_metadata_from_dataset).
const std::vector<std::string>& droid_observation_order();

/// Reads the section algo into the algorithm's settings in `model`, and both into what is returned. `algorithm`:
/// algo_name. A missing key has the fork's default (its config/*.py, and the constructors of its VisualCore and
/// randomizers); null means what it means there, and is refused where the fork would fail.
///
/// Every key is honoured, or refused by name: throws Error listing all keys that are unknown or ask for what is not
/// there, each with its path and value. `source` names the file in messages. Keys that only concern what is switched
/// off (depth and scan encoders without such observations, ddpm while ddim is enabled) are read and have no effect.
RobomimicPolicy read_robomimic_policy(const std::string& algorithm, const config::Json& algo,
                                      const config::Json& observation, const std::string& source,
                                      ObservationOrder order, PolicySettings& model);

/// Whether robomimic has an algorithm of this name that is here, too.
bool is_robomimics(const std::string& algorithm);

}  // namespace cohort::policies
