#include "train/jobs/robomimic_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cohort::train {
namespace {

using config::Json;

/// On RLDS data the instruction's embedding is no field: it is made from the text.
void take_language(policies::PolicySettings& model, std::vector<std::string>& refused) {
  const auto found = std::find(model.low_dim.begin(), model.low_dim.end(), model.language.name);
  if (found == model.low_dim.end()) return;
  if (found + 1 != model.low_dim.end())
    refused.push_back(format("observation.modalities.obs.low_dim: {} before others is not supported: put it last",
                             model.language.name));
  model.language.required = true;
  model.low_dim.erase(found);
}

}  // namespace

policies::RobomimicPolicy read_policy(const std::string& algorithm, const Json& algo, const Json& observation,
                                      const std::string& source, policies::ObservationOrder order,
                                      policies::PolicySettings& model) {
  // Refusals of both sections come together.
  std::vector<std::string> refused;
  policies::RobomimicPolicy policy;
  try {
    policy = policies::read_robomimic_policy(algorithm, algo, observation, source, order, model);
  } catch (const Error& e) {
    refused.push_back(e.what());
  }
  if (policies::is_robomimics(algorithm)) model.algorithm = algorithm;
  model.sort_observations = order == policies::ObservationOrder::kByName;
  if (order == policies::ObservationOrder::kDroid) model.first_observations = policies::droid_observation_order();
  model.images = policy.encoder;
  model.images.observations.clear();
  model.shared_cameras = "camera/image/varied_camera";
  for (const models::ObservationSettings& o : policy.encoder.observations) {
    if (o.is_camera()) model.image_size = {o.shape[1], o.shape[2]};
  }
  model.low_dim = policy.low_dim;
  model.rgb = policy.rgb;
  if (order == policies::ObservationOrder::kAsListed) take_language(model, refused);
  policy.pretrained_backbone = policy.pretrained_backbone && !model.rgb.empty();
  std::string list;
  for (const std::string& line : refused) list += (list.empty() ? "" : "\n  ") + line;
  COHORT_THROW_UNLESS(refused.empty(), "{}", list);
  return policy;
}

}  // namespace cohort::train
