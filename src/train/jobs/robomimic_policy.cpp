#include "train/jobs/robomimic_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_section.h"
#include "policies/diffusion/robomimic_config.h"

namespace cohort::train {
namespace {

using config::Json;
using config::JsonSection;

/// robomimic's BC: exps/templates/bc.json.
void read_bc(const Json& algo, models::BcSettings& bc, TrainingRules& rules, std::vector<std::string>& refused) {
  JsonSection root(algo, "algo", refused);
  root.in("optim_params",
          [&](JsonSection& optim) { optim.in("policy", [&](JsonSection& p) { read(p, rules.optimizer); }); });
  root.in("loss", [&](JsonSection& loss) {
    loss.take("l2_weight", bc.loss.l2_weight);
    loss.take("l1_weight", bc.loss.l1_weight);
    loss.take("cos_weight", bc.loss.cos_weight);
  });
  root.take_or_null("actor_layer_dims", bc.actor_layer_dims, {});
  // Variants that are not here: whatever else their sections say is without meaning while they are off.
  for (const char* variant : {"gaussian", "vae", "transformer"}) {
    const Json& section = root.get(variant);
    if (section.is_object() && section.contains("enabled") && !config::is_empty(section.at("enabled")))
      root.refuse(format("algo.{}.enabled", variant), section.at("enabled"), "is not supported");
  }
  root.in("gmm", [&](JsonSection& gmm) {
    gmm.take("enabled", bc.gmm.enabled);
    gmm.take("num_modes", bc.gmm.num_modes);
    gmm.take("min_std", bc.gmm.min_std);
    if (bc.gmm.enabled)
      gmm.take_choice("std_activation", bc.gmm.std_activation, {"softplus", "exp"});
    else
      gmm.ignore("std_activation");
    gmm.take("low_noise_eval", bc.gmm.low_noise_eval);
  });
  root.in("rnn", [&](JsonSection& rnn) {
    rnn.take("enabled", bc.rnn.enabled);
    rnn.take("horizon", bc.rnn.horizon);
    rnn.take("hidden_dim", bc.rnn.hidden_dim);
    if (bc.rnn.enabled)
      rnn.take_choice("rnn_type", bc.rnn.rnn_type, {"LSTM", "GRU"});
    else
      rnn.ignore("rnn_type");
    rnn.take("num_layers", bc.rnn.num_layers);
    rnn.off("open_loop", config::is_false, "is not supported");
    rnn.in("kwargs", [&](JsonSection& kwargs) { kwargs.off("bidirectional", config::is_false, "is not supported"); });
  });
}

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

void read_policy(const std::string& algorithm, const Json& algo, const Json& observation, const std::string& source,
                 models::ObservationOrder order, policies::PolicySettings& model, TrainingRules& rules) {
  COHORT_THROW_UNLESS(algorithm == "diffusion_policy" || algorithm == "bc",
                      "algo_name = \"{}\" is not supported; there are diffusion_policy and bc", algorithm);
  const bool has_diffusion_section = algorithm == "diffusion_policy";
  // Refusals of both sections come together.
  std::vector<std::string> refused;
  models::RobomimicPolicy policy;
  try {
    policy = models::read_robomimic_policy(has_diffusion_section ? algo : Json::object(), observation, source, order);
  } catch (const Error& e) {
    refused.push_back(e.what());
  }
  model.algorithm = algorithm;
  model.sort_observations = order == models::ObservationOrder::kByName;
  if (order == models::ObservationOrder::kDroid) model.first_observations = models::droid_observation_order();
  model.diffusion = policy.settings;
  model.images = policy.settings.encoder;
  model.images.observations.clear();
  model.shared_cameras = "camera/image/varied_camera";
  for (const models::ObservationSettings& o : policy.settings.encoder.observations) {
    if (o.is_camera()) model.image_size = {o.shape[1], o.shape[2]};
  }
  model.low_dim = policy.low_dim;
  model.rgb = policy.rgb;
  if (order == models::ObservationOrder::kAsListed) take_language(model, refused);
  rules.pretrained_backbone = policy.pretrained_backbone && !model.rgb.empty();
  if (has_diffusion_section) {
    rules.optimizer = policy.optimizer;
    rules.ema_enabled = policy.ema_enabled;
    rules.ema_power = policy.ema_power;
  } else {
    model.images.core.norm = "batch";  // robomimic's; group norm is the diffusion policies'
    read_bc(algo, model.bc, rules, refused);
  }
  std::string list;
  for (const std::string& line : refused) list += (list.empty() ? "" : "\n  ") + line;
  COHORT_THROW_UNLESS(refused.empty(), "{}", list);
}

}  // namespace cohort::train
