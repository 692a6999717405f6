#include "policies/act/lerobot.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::policies {
namespace {

using config::Json;

/// Calls `field` with each of ACTConfig's fields that is a setting here under its own name.
template <class Settings, class Field>
void each_field(Settings& s, const Field& field) {
  field("chunk_size", s.chunk_size);
  field("n_action_steps", s.n_action_steps);
  field("vision_backbone", s.vision_backbone);
  field("pre_norm", s.pre_norm);
  field("dim_model", s.dim_model);
  field("n_heads", s.n_heads);
  field("dim_feedforward", s.dim_feedforward);
  field("feedforward_activation", s.feedforward_activation);
  field("n_encoder_layers", s.n_encoder_layers);
  field("n_decoder_layers", s.n_decoder_layers);
  field("use_vae", s.use_vae);
  field("latent_dim", s.latent_dim);
  field("n_vae_encoder_layers", s.n_vae_encoder_layers);
  field("dropout", s.dropout);
  field("kl_weight", s.kl_weight);
}

}  // namespace

void read_lerobot_act(const LeRobotPolicy& policy, models::ActSettings& s) {
  const auto value_of = [&](const char* name, auto& setting) {
    if (!policy.config.contains(name)) return;  // LeRobot's default is this setting's
    try {
      setting = policy.config.at(name).get<std::decay_t<decltype(setting)>>();
    } catch (const nlohmann::json::exception&) {
      throw Error(format("{} = {} has another type than ACT's settings", name, json_text(policy.config.at(name))));
    }
  };
  each_field(s, value_of);
  s.temporal_ensemble_coeff.reset();
  if (policy.config.contains("temporal_ensemble_coeff") && !policy.config.at("temporal_ensemble_coeff").is_null()) {
    double coefficient = 0;
    value_of("temporal_ensemble_coeff", coefficient);
    s.temporal_ensemble_coeff = coefficient;
  }
  const auto is = [&](const char* name, const Json& wanted) {
    return !policy.config.contains(name) || policy.config.at(name) == wanted;
  };
  COHORT_THROW_UNLESS(is("n_obs_steps", 1), "n_obs_steps = {}, but ACT sees one moment",
                      json_text(policy.config.at("n_obs_steps")));
  COHORT_THROW_UNLESS(is("replace_final_stride_with_dilation", false) || is("replace_final_stride_with_dilation", 0),
                      "replace_final_stride_with_dilation = {} is not done here",
                      json_text(policy.config.at("replace_final_stride_with_dilation")));
  COHORT_THROW_UNLESS(is("use_peft", false),
                      "use_peft = {}: the weights are adapters to others; merge them first (merge_and_unload())",
                      json_text(policy.config.at("use_peft")));
  COHORT_THROW_UNLESS(
      s.vision_backbone == "resnet18" || s.vision_backbone == "resnet34" || s.vision_backbone == "resnet50",
      "vision_backbone = \"{}\"; known are resnet18, resnet34 and resnet50", s.vision_backbone);
  COHORT_THROW_UNLESS(s.feedforward_activation == "relu" || s.feedforward_activation == "gelu",
                      "feedforward_activation = \"{}\"; known are relu and gelu", s.feedforward_activation);
  s.environment_state = policy.environment_state;
  if (policy.image_mean.empty()) return;
  s.image_mean = policy.image_mean;
  s.image_std = policy.image_std;
}

void write_lerobot_act(const models::ActSettings& s, LeRobotPolicy& policy) {
  each_field(s, [&](const char* name, const auto& setting) { policy.config[name] = setting; });
  policy.config["temporal_ensemble_coeff"] = s.temporal_ensemble_coeff ? Json(*s.temporal_ensemble_coeff) : Json();
  // The weights are in the folder.
  policy.config["pretrained_backbone_weights"] = nullptr;
  policy.config["replace_final_stride_with_dilation"] = false;
  policy.config["optimizer_lr"] = 1e-5;
  policy.config["optimizer_weight_decay"] = 1e-4;
  policy.config["optimizer_lr_backbone"] = 1e-5;
  COHORT_THROW_UNLESS(
      policy.environment_state.empty() || policy.environment_state == s.environment_state,
      "the environment's state is what model.act.environment_state says ({}), which ACT was trained with; "
      "leave out {}",
      join(s.environment_state, ", "), join(policy.environment_state, ", "));
  policy.environment_state = s.environment_state;
  policy.image_mean = s.image_mean;
  policy.image_std = s.image_std;
}

}  // namespace cohort::policies
