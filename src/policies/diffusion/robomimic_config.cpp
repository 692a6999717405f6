#include "policies/diffusion/robomimic_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json_section.h"

namespace cohort::models {

using config::is_empty;
using config::is_false;
using config::JsonSection;
namespace {

using config::Json;

/// Of a sampler that is not `enabled`, names may be any.
void read_noise(JsonSection& section, bool enabled, NoiseScheduleSettings& schedule, SamplerSettings& sampler) {
  section.take("num_train_timesteps", schedule.num_train_timesteps);
  if (enabled) {
    section.take_choice("beta_schedule", schedule.beta_schedule, {"squaredcos_cap_v2", "linear", "scaled_linear"});
    section.take_choice("prediction_type", schedule.prediction_type, {"epsilon", "sample", "v_prediction"});
  } else {
    section.ignore("beta_schedule");
    section.ignore("prediction_type");
  }
  section.take("num_inference_timesteps", sampler.num_inference_timesteps);
  section.take("clip_sample", sampler.clip_sample);
  section.take("set_alpha_to_one", sampler.set_alpha_to_one);
  section.take("steps_offset", sampler.steps_offset);
}

void read_algo(JsonSection& algo, RobomimicPolicy& policy) {
  DiffusionPolicySettings& s = policy.settings;
  algo.in("optim_params",
          [&](JsonSection& optim) { optim.in("policy", [&](JsonSection& p) { read(p, policy.optimizer); }); });
  algo.in("horizon", [&](JsonSection& h) {
    h.take("observation_horizon", s.horizon.observation_horizon);
    h.take("action_horizon", s.horizon.action_horizon);
    h.take("prediction_horizon", s.horizon.prediction_horizon);
  });
  bool unet = true, transformer = false, ddpm = true, ddim = false;
  algo.in("unet", [&](JsonSection& u) {
    u.take("enabled", unet);
    u.take("diffusion_step_embed_dim", s.unet.diffusion_step_embed_dim);
    u.take("down_dims", s.unet.down_dims);
    u.take("kernel_size", s.unet.kernel_size);
    u.take("n_groups", s.unet.n_groups);
  });
  algo.in("transformer", [&](JsonSection& t) {
    t.take("enabled", transformer);
    t.take("n_layer", s.transformer.n_layer);
    t.take("n_head", s.transformer.n_head);
    t.take("n_emb", s.transformer.n_emb);
    t.take("p_drop_emb", s.transformer.p_drop_emb);
    t.take("p_drop_attn", s.transformer.p_drop_attn);
    t.take("causal_attn", s.transformer.causal_attn);
    t.take("n_cond_layers", s.transformer.n_cond_layers);
  });
  // The U-Net comes first in the reference, too.
  s.network = unet || !transformer ? "unet" : "transformer";
  if (!unet && !transformer)
    algo.refuse(algo.path() + ".unet.enabled", Json(false), "leaves the policy without a network");
  algo.in("ema", [&](JsonSection& e) {
    e.take("enabled", policy.ema_enabled);
    e.take("power", policy.ema_power);
  });
  s.noise_samples = 1;
  algo.take("noise_samples", s.noise_samples);
  NoiseScheduleSettings schedules[2];
  SamplerSettings samplers[2];
  samplers[0].kind = "ddpm";
  samplers[0].num_inference_timesteps = 100;
  schedules[1].num_train_timesteps = 50;
  algo.in("ddpm", [&](JsonSection& d) {
    d.take("enabled", ddpm);
    read_noise(d, ddpm, schedules[0], samplers[0]);
  });
  algo.in("ddim", [&](JsonSection& d) {
    d.take("enabled", ddim);
    read_noise(d, ddim, schedules[1], samplers[1]);
  });
  if (!ddpm && !ddim) algo.refuse(algo.path() + ".ddim.enabled", Json(false), "leaves the policy without a sampler");
  // DDPM comes first in the reference, too.
  s.schedule = schedules[ddpm ? 0 : 1];
  s.sampler = samplers[ddpm ? 0 : 1];
}

void read_randomizer(JsonSection& rgb, const Json& kind, const Json& kwargs, ObservationEncoderSettings& encoder,
                     std::vector<std::string>& refused) {
  if (kind.is_null()) return;
  const std::string path = rgb.path() + ".obs_randomizer_kwargs";
  JsonSection section(kwargs, path, refused);
  if (kind == "CropRandomizer") {
    encoder.crop.enabled = true;
    encoder.crop.crop_height = encoder.crop.crop_width = 76;
    section.take("crop_height", encoder.crop.crop_height);
    section.take("crop_width", encoder.crop.crop_width);
    section.take("num_crops", encoder.crop.num_crops);
    section.off("pos_enc", is_false, "is not supported: crops have no position channels here");
  } else if (kind == "ColorRandomizer") {
    if (encoder.crop.enabled)
      rgb.refuse(rgb.path() + ".obs_randomizer_class", kind, "after CropRandomizer is not supported: put it first");
    encoder.color.enabled = true;
    // Null leaves an operation out: a factor of 1, a hue that stays.
    section.take_or_null("brightness", encoder.color.brightness, 0.0);
    section.take_or_null("contrast", encoder.color.contrast, 0.0);
    section.take_or_null("saturation", encoder.color.saturation, 0.0);
    section.take_or_null("hue", encoder.color.hue, 0.0);
    section.take("num_samples", encoder.color.num_samples);
  } else {
    rgb.refuse(rgb.path() + ".obs_randomizer_class", kind,
               "is not supported; there are ColorRandomizer and CropRandomizer");
  }
}

void read_rgb(JsonSection& rgb, RobomimicPolicy& policy, std::vector<std::string>& refused) {
  ObservationEncoderSettings& encoder = policy.settings.encoder;
  rgb.off(
      "core_class", [](const Json& v) { return v == "VisualCore"; }, "is not supported, only VisualCore is");
  rgb.off("fuser", is_empty, "is not supported");
  rgb.off("input_maps", is_empty, "is not supported");
  // VisualCore's own defaults.
  encoder.core.backbone_class = "ResNet18Conv";
  encoder.core.pool_class = "SpatialSoftmax";
  encoder.core.feature_dimension = 64;
  rgb.in("core_kwargs", [&](JsonSection& core) {
    core.take_choice("backbone_class", encoder.core.backbone_class,
                     {"ShallowConv", "ResNet18Conv", "ResNet34Conv", "ResNet50Conv"});
    if (core.has("pool_class") && core.get("pool_class").is_null())
      encoder.core.pool_class = "none";
    else
      core.take_choice("pool_class", encoder.core.pool_class, {"SpatialSoftmax"});
    core.take_or_null("feature_dimension", encoder.core.feature_dimension, 0);
    const Json& width = core.get("feature_dimension");
    if (!width.is_null() && encoder.core.feature_dimension < 1)
      core.refuse(core.path() + ".feature_dimension", width, "is no width; null leaves the linear layer out");
    bool flatten = true;
    core.take("flatten", flatten);
    if (!flatten)
      core.refuse(core.path() + ".flatten", core.get("flatten"), "is not supported: features are flattened");
    core.in("backbone_kwargs", [&](JsonSection& backbone) {
      backbone.take("pretrained", policy.pretrained_backbone);
      backbone.off("input_coord_conv", is_false, "is not supported");
      backbone.off("use_cam", is_false, "is not supported: the camera's intrinsics are no input");
      backbone.off("downsample", is_false, "is not supported");
    });
    if (encoder.core.pool_class == "none")
      core.ignore("pool_kwargs");
    else
      core.in("pool_kwargs", [&](JsonSection& kwargs) {
        kwargs.take("num_kp", encoder.core.pool.num_kp);
        kwargs.take("temperature", encoder.core.pool.temperature);
        kwargs.take("learnable_temperature", encoder.core.pool.learnable_temperature);
        kwargs.off(
            "noise_std", [](const Json& v) { return v == 0; }, "is not supported");
        kwargs.off("output_variance", is_false, "is not supported");
      });
  });
  const Json kinds = rgb.get("obs_randomizer_class"), kwargs = rgb.get("obs_randomizer_kwargs");
  if (!kinds.is_array() || (kinds.size() == 1 && !kwargs.is_array())) {
    read_randomizer(rgb, kinds.is_array() ? kinds[0] : kinds, kwargs, encoder, refused);
  } else if (!kinds.empty() && (!kwargs.is_array() || kwargs.size() != kinds.size())) {
    rgb.refuse(rgb.path() + ".obs_randomizer_kwargs", kwargs,
               format("is no list of {} objects, one for each of obs_randomizer_class", kinds.size()));
  } else {
    for (std::size_t i = 0; i < kinds.size(); ++i) read_randomizer(rgb, kinds[i], kwargs[i], encoder, refused);
  }
}

void read_observation(JsonSection& observation, RobomimicPolicy& policy, std::vector<std::string>& refused) {
  std::vector<std::string>& cameras = policy.rgb;
  std::vector<std::string>& low_dim = policy.low_dim;
  low_dim = {"robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos", "object"};
  std::vector<int> image_dim;
  observation.take_or_null("image_dim", image_dim, {});
  if (!image_dim.empty() && (image_dim.size() != 2 || image_dim[0] < 1 || image_dim[1] < 1)) {
    observation.refuse(observation.path() + ".image_dim", observation.get("image_dim"),
                       "is no height and width in pixels; [] takes images as they are stored");
    image_dim.clear();
  }
  observation.in("modalities", [&](JsonSection& modalities) {
    modalities.in("obs", [&](JsonSection& obs) {
      obs.take_or_null("low_dim", low_dim, {});
      obs.take_or_null("rgb", cameras, {});
      obs.off("depth", is_empty, "is not supported");
      obs.off("scan", is_empty, "is not supported");
    });
    modalities.in("goal", [&](JsonSection& goal) {
      for (const char* kind : {"low_dim", "rgb", "depth", "scan"})
        goal.off(kind, is_empty, "is not supported: policies have no goal observations");
    });
  });
  observation.in("encoder", [&](JsonSection& encoder) {
    encoder.in("low_dim", [&](JsonSection& plain) {
      plain.off("core_class", is_empty, "is not supported: low-dimensional observations are taken as they are");
      plain.ignore("core_kwargs");
      plain.off("obs_randomizer_class", is_empty, "is not supported for low-dimensional observations");
      plain.ignore("obs_randomizer_kwargs");
    });
    if (cameras.empty())
      encoder.ignore("rgb");
    else
      encoder.in("rgb", [&](JsonSection& rgb) { read_rgb(rgb, policy, refused); });
    encoder.ignore("depth");
    encoder.ignore("scan");
  });
  std::vector<ObservationSettings>& observations = policy.settings.encoder.observations;
  for (const std::string& name : low_dim) observations.push_back({name, {}, ""});
  for (const std::string& name : cameras)
    observations.push_back(
        {name, image_dim.size() == 2 ? std::vector<int>{3, image_dim[0], image_dim[1]} : std::vector<int>{}, ""});
}

}  // namespace

const std::vector<std::string>& droid_observation_order() {
  static const std::vector<std::string> kOrder{
      "robot_state/cartesian_position",          "robot_state/gripper_position",
      "camera/image/hand_camera_left_image",     "camera/image/varied_camera_1_left_image",
      "camera/image/varied_camera_2_left_image", "lang_fixed/language_distilbert"};
  return kOrder;
}

RobomimicPolicy read_robomimic_policy(const Json& algo, const Json& observation, const std::string& source,
                                      ObservationOrder order) {
  RobomimicPolicy policy;
  std::vector<std::string> refused;
  {
    JsonSection section(algo, "algo", refused);
    read_algo(section, policy);
  }
  {
    JsonSection section(observation, "observation", refused);
    read_observation(section, policy, refused);
  }
  std::vector<ObservationSettings>& observations = policy.settings.encoder.observations;
  if (order == ObservationOrder::kByName)
    std::sort(observations.begin(), observations.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (order == ObservationOrder::kDroid) put_first(observations, droid_observation_order());
  share_cameras(observations, "camera/image/varied_camera");
  std::string list;
  for (const std::string& line : refused) list += "\n  " + line;
  COHORT_THROW_UNLESS(refused.empty(), "{}: {} settings cannot be honoured:{}", source, refused.size(), list);
  return policy;
}

}  // namespace cohort::models
