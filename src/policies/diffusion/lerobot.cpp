#include "policies/diffusion/lerobot.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "policies/diffusion/diffusion_policy.h"

namespace cohort::policies {
namespace {

using config::Json;

/// Calls `field` with each of DiffusionConfig's fields that is a setting here as it stands.
template <class Settings, class Field>
void each_field(Settings& s, const Field& field) {
  field("n_obs_steps", s.horizon.observation_horizon);
  field("horizon", s.horizon.prediction_horizon);
  field("n_action_steps", s.horizon.action_horizon);
  field("down_dims", s.unet.down_dims);
  field("kernel_size", s.unet.kernel_size);
  field("n_groups", s.unet.n_groups);
  field("diffusion_step_embed_dim", s.unet.diffusion_step_embed_dim);
  field("use_film_scale_modulation", s.unet.cond_predict_scale);
  field("num_train_timesteps", s.schedule.num_train_timesteps);
  field("beta_schedule", s.schedule.beta_schedule);
  field("beta_start", s.schedule.beta_start);
  field("beta_end", s.schedule.beta_end);
  field("prediction_type", s.schedule.prediction_type);
  field("clip_sample", s.sampler.clip_sample);
  field("clip_sample_range", s.sampler.clip_sample_range);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

const std::string kOwn = "policy.noise_pred_net.", kTheirs = "diffusion.unet.";

/// Up- and downsampling are the third part of a level, and their weights one level of names deeper here.
bool is_resampling(const std::string& inside) {
  const auto dots = std::count(inside.begin(), inside.end(), '.');
  return (inside.starts_with("down_modules.") || inside.starts_with("up_modules.")) && dots <= 4 &&
         inside.find(".2.", inside.find('.') + 1) != std::string::npos && inside.find("block") == std::string::npos &&
         inside.find("cond_encoder") == std::string::npos && inside.find("residual_conv") == std::string::npos;
}

}  // namespace

std::string lerobot_unet_weight(std::string own) {
  if (!own.starts_with(kOwn)) return own;
  std::string inside = own.substr(kOwn.size());
  replace(inside, ".blocks.0.block.", ".conv1.block.");
  replace(inside, ".blocks.1.block.", ".conv2.block.");
  if (is_resampling(inside)) replace(inside, ".2.conv.", ".2.");
  return kTheirs + inside;
}

std::string own_unet_weight(std::string theirs) {
  if (!theirs.starts_with(kTheirs)) return theirs;
  std::string inside = theirs.substr(kTheirs.size());
  replace(inside, ".conv1.block.", ".blocks.0.block.");
  replace(inside, ".conv2.block.", ".blocks.1.block.");
  if (is_resampling(inside)) {
    const std::size_t last = inside.rfind('.');
    inside.insert(last, ".conv");
  }
  return kOwn + inside;
}

void read_lerobot_diffusion(const LeRobotPolicy& policy, PolicySettings& settings) {
  auto& s = settings.of<models::DiffusionPolicySettings>();
  const Json& config = policy.config;
  const auto wanted = [&](const char* name) -> const Json& {
    COHORT_THROW_UNLESS(config.contains(name), "has no {}, which a diffusion policy needs", name);
    return config.at(name);
  };
  each_field(s, [&](const char* name, auto& setting) {
    try {
      setting = wanted(name).template get<std::decay_t<decltype(setting)>>();
    } catch (const nlohmann::json::exception&) {
      throw Error(format("{} = {} has another type than a diffusion policy's", name, config.at(name).dump()));
    }
  });
  const std::string kind = wanted("noise_scheduler_type").dump();
  COHORT_THROW_UNLESS(kind == "\"DDPM\"" || kind == "\"DDIM\"", "noise_scheduler_type = {}; known are DDPM and DDIM",
                      kind);
  s.sampler.kind = kind == "\"DDPM\"" ? "ddpm" : "ddim";
  const Json& steps = wanted("num_inference_steps");
  s.sampler.num_inference_timesteps = steps.is_number_integer() ? steps.get<int>() : s.schedule.num_train_timesteps;
  s.horizon.first_action = -1;
  s.network = "unet";
  COHORT_THROW_UNLESS(
      settings.rgb.empty(),
      "sees the pictures {}, which LeRobot's diffusion policies encode otherwise than those here; those "
      "that see vectors alone are read",
      join(settings.rgb, ", "));
}

void write_lerobot_diffusion(const PolicySettings& settings, LeRobotPolicy& policy) {
  const auto& s = settings.of<models::DiffusionPolicySettings>();
  COHORT_THROW_UNLESS(
      settings.rgb.empty(),
      "LeRobot's diffusion policies encode pictures otherwise: those that see vectors alone are written");
  COHORT_THROW_UNLESS(s.network == "unet" && !settings.images.combine,
                      "LeRobot's diffusion policies have a U-Net over the observations as they are: model.diffusion."
                      "network=unet, model.images.combine=false");
  COHORT_THROW_UNLESS(s.horizon.first_action == -1 || s.horizon.first_action == s.horizon.observation_horizon - 1,
                      "model.diffusion.horizon.first_action = {}: LeRobot's chunks begin with the oldest frame",
                      s.horizon.first_action);
  const int whole = 1 << s.unet.down_dims.size();
  COHORT_THROW_UNLESS(
      s.horizon.prediction_horizon % whole == 0,
      "model.diffusion.horizon.prediction_horizon = {}: LeRobot wants a multiple of {}, two to the number "
      "of down_dims",
      s.horizon.prediction_horizon, whole);
  const models::SamplerSettings& sampler = s.sampler;
  const models::SamplerSettings plain;
  COHORT_THROW_UNLESS((sampler.kind == "ddpm" || sampler.kind == "ddim") &&
                          (sampler.timestep_spacing == "default" || sampler.timestep_spacing == "leading") &&
                          sampler.steps_offset == plain.steps_offset && sampler.eta == plain.eta &&
                          sampler.variance_type == plain.variance_type &&
                          sampler.set_alpha_to_one == plain.set_alpha_to_one && !sampler.use_clipped_model_output,
                      "LeRobot samples by DDPM or DDIM as diffusers has them by default: set "
                      "model.diffusion.sampler.kind=ddim and leave "
                      "out its other settings");
  each_field(s, [&](const char* name, const auto& setting) { policy.config[name] = setting; });
  policy.config["noise_scheduler_type"] = sampler.kind == "ddpm" ? "DDPM" : "DDIM";
  policy.config["num_inference_steps"] = sampler.num_inference_timesteps;
  policy.config["drop_n_last_frames"] =
      std::max(0, s.horizon.prediction_horizon - s.horizon.action_horizon - s.horizon.observation_horizon + 1);
  policy.config["pretrained_backbone_weights"] = nullptr;
  // LeRobot joins the robot's state and then the environment's.
  bool environment = false;
  for (const models::ObservationSettings& o : observations_of(settings)) {
    const bool is_environment = std::find(policy.environment_state.begin(), policy.environment_state.end(), o.name) !=
                                policy.environment_state.end();
    COHORT_THROW_UNLESS(is_environment || !environment,
                        "the environment's state must stand behind the robot's, but {} stands behind {}", o.name,
                        join(policy.environment_state, ", "));
    environment = is_environment;
  }
}

}  // namespace cohort::policies
