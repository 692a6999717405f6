#include "policies/diffusion/lerobot.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <torch/types.h>

#include "core/error.h"
#include "core/json_text.h"
#include "models/vision/camera_name.h"
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

const std::string kOwnNetwork = "policy.noise_pred_net.", kTheirNetwork = "diffusion.unet.";

/// Up- and downsampling are the third part of a level, and their weights one level of names deeper here.
bool is_resampling(const std::string& inside) {
  const auto dots = std::count(inside.begin(), inside.end(), '.');
  return (inside.starts_with("down_modules.") || inside.starts_with("up_modules.")) && dots <= 4 &&
         inside.find(".2.", inside.find('.') + 1) != std::string::npos && inside.find("block") == std::string::npos &&
         inside.find("cond_encoder") == std::string::npos && inside.find("residual_conv") == std::string::npos;
}

std::string lerobot_unet_weight(const std::string& ours) {
  std::string inside = ours.substr(kOwnNetwork.size());
  replace(inside, ".blocks.0.block.", ".conv1.block.");
  replace(inside, ".blocks.1.block.", ".conv2.block.");
  if (is_resampling(inside)) replace(inside, ".2.conv.", ".2.");
  return kTheirNetwork + inside;
}

std::string own_unet_weight(const std::string& theirs) {
  std::string inside = theirs.substr(kTheirNetwork.size());
  replace(inside, ".conv1.block.", ".blocks.0.block.");
  replace(inside, ".conv2.block.", ".blocks.1.block.");
  if (is_resampling(inside)) {
    const std::size_t last = inside.rfind('.');
    inside.insert(last, ".conv");
  }
  return kOwnNetwork + inside;
}

constexpr const char *kOwnEncoders = "policy.obs_encoder.nets.obs.obs_nets.",
                     *kTheirEncoders = "diffusion.rgb_encoder.";

/// A picture encoder of the network: the start of its weights' names here and there.
struct EncoderNames {
  std::string ours, theirs;
};

/// Encoders in the order of the cameras that have one of their own. LeRobot numbers them unless all cameras share one.
std::vector<EncoderNames> encoders_of(const PolicySettings& settings) {
  std::vector<EncoderNames> encoders;
  bool shared = false;
  for (const models::ObservationSettings& o : observations_of(settings)) {
    if (!o.is_camera()) continue;
    shared = shared || !o.shares.empty();
    if (!o.shares.empty()) continue;
    encoders.push_back({.ours = kOwnEncoders + models::camera_module_name(o.name) + ".",
                        .theirs = format("{}{}.", kTheirEncoders, encoders.size())});
  }
  if (shared || (encoders.size() == 1 && !settings.shared_cameras.empty())) encoders[0].theirs = kTheirEncoders;
  return encoders;
}

/// The parts of an encoder whose names differ: ours, theirs.
constexpr std::pair<const char*, const char*> kEncoderParts[] = {
    {"backbone.nets.", "backbone."}, {"pool.nets.", "pool.nets."}, {"nets.3.", "out."}};
constexpr const char* kResNet = "resnet";

/// Whether all cameras share one encoder; throws Error where only some do.
bool all_share(const PolicySettings& settings) {
  std::size_t cameras = 0, sharing = 0;
  for (const models::ObservationSettings& o : observations_of(settings)) {
    cameras += o.is_camera();
    sharing += !o.shares.empty();
  }
  COHORT_THROW_UNLESS(sharing == 0 || sharing + 1 == cameras,
                      "model.shared_cameras = \"{}\": {} of {} cameras share an encoder, but in LeRobot's diffusion "
                      "policies all do or none",
                      settings.shared_cameras, sharing + 1, cameras);
  return sharing > 0 || (cameras == 1 && !settings.shared_cameras.empty());
}

/// Names of the observations in LeRobot's order: the robot's state, pictures, the environment's state.
std::vector<std::string> lerobot_order(const PolicySettings& settings, const std::vector<std::string>& environment) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const models::ObservationSettings& o : observations_of(settings)) {
    const bool of_environment = std::find(environment.begin(), environment.end(), o.name) != environment.end();
    ranked.emplace_back(of_environment ? 2 : o.is_camera() ? 1 : 0, o.name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [rank, name] : ranked) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> own_order(const PolicySettings& settings) {
  std::vector<std::string> names;
  for (const models::ObservationSettings& o : observations_of(settings)) names.push_back(o.name);
  return names;
}

/// config.json's fields of the picture encoder as settings of it.
void read_encoder(const LeRobotPolicy& policy, PolicySettings& settings) {
  const Json& config = policy.config;
  const auto value_of = [&](const char* name, auto otherwise) {
    try {
      return config.contains(name) ? config.at(name).get<decltype(otherwise)>() : otherwise;
    } catch (const nlohmann::json::exception&) {
      throw Error(format("{} = {} has another type than a diffusion policy's", name, json_text(config.at(name))));
    }
  };
  models::ObservationEncoderSettings& images = settings.images;
  const std::string backbone = value_of("vision_backbone", std::string("resnet18"));
  COHORT_THROW_UNLESS(backbone == "resnet18" || backbone == "resnet34" || backbone == "resnet50",
                      "vision_backbone = \"{}\"; known are resnet18, resnet34 and resnet50", backbone);
  images.core = {.backbone_class = format("ResNet{}Conv", backbone.substr(std::string(kResNet).size())),
                 .pool_class = "SpatialSoftmax",
                 .pool = {.num_kp = value_of("spatial_softmax_num_keypoints", 32)},
                 .norm = value_of("use_group_norm", false) ? "group" : "batch"};
  images.core.feature_dimension = 2 * images.core.pool.num_kp;
  images.combine = false;
  COHORT_THROW_UNLESS(!config.contains("resize_shape") || config.at("resize_shape").is_null(),
                      "resize_shape = {} is not done here: give it pictures of that size, and set crop_shape",
                      json_text(config.at("resize_shape")));
  images.crop.enabled = config.contains("crop_shape") && !config.at("crop_shape").is_null();
  if (images.crop.enabled) {
    const auto shape = value_of("crop_shape", std::vector<int>());
    COHORT_THROW_UNLESS(shape.size() == 2, "crop_shape = {}, but must be a height and a width",
                        json_text(config.at("crop_shape")));
    images.crop = {.enabled = shape != settings.image_size,  // a crop of the whole picture is none
                   .crop_height = shape[0],
                   .crop_width = shape[1],
                   .random = value_of("crop_is_random", true),
                   .half_to_even = true};
  }
  images.image_mean = policy.image_mean;
  images.image_std = policy.image_std;
  if (value_of("use_separate_rgb_encoder_per_camera", true)) {
    settings.shared_cameras.clear();
  } else if (settings.shared_cameras.empty()) {
    std::string common = settings.rgb.front();
    for (const std::string& camera : settings.rgb) {
      const auto end = std::mismatch(common.begin(), common.end(), camera.begin(), camera.end()).first;
      common.erase(end, common.end());
    }
    COHORT_THROW_UNLESS(!common.empty(),
                        "use_separate_rgb_encoder_per_camera = false, but the cameras {} begin with "
                        "no common letters",
                        join(settings.rgb, ", "));
    settings.shared_cameras = common;
  }
  if (own_order(settings) != lerobot_order(settings, policy.environment_state))
    settings.first_observations = lerobot_order(settings, policy.environment_state);
}

void write_encoder(const PolicySettings& settings, LeRobotPolicy& policy) {
  const models::ObservationEncoderSettings& images = settings.images;
  const models::VisualCoreSettings& core = images.core;
  const int keypoints = core.pool.num_kp;
  COHORT_THROW_UNLESS(
      core.backbone_class.starts_with("ResNet") && core.pool_class == "SpatialSoftmax" && core.pool.temperature == 1 &&
          !core.pool.learnable_temperature && core.feature_dimension == 2 * keypoints,
      "LeRobot's diffusion policies see pictures by a ResNet, a spatial softmax of temperature 1 and a "
      "linear layer of two numbers a key point: train with model.images.core.backbone_class="
      "ResNet18Conv model.images.core.pool_class=SpatialSoftmax model.images.core.pool_kwargs.num_kp={} "
      "model.images.core.feature_dimension={}",
      keypoints, 2 * keypoints);
  const auto rounded_otherwise = [](int spare) { return spare % 4 == 3; };
  COHORT_THROW_UNLESS(!images.crop.enabled || images.crop.half_to_even ||
                          (!rounded_otherwise(settings.image_size[0] - images.crop.crop_height) &&
                           !rounded_otherwise(settings.image_size[1] - images.crop.crop_width)),
                      "model.images.crop.half_to_even=false: LeRobot's centre of {} x {} px lies one pixel beside this "
                      "one in pictures of {} x {} px; train with model.images.crop.half_to_even=true",
                      images.crop.crop_height, images.crop.crop_width, settings.image_size[0], settings.image_size[1]);
  std::string backbone = core.backbone_class.substr(0, core.backbone_class.find("Conv"));
  for (char& letter : backbone) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  policy.config["vision_backbone"] = backbone;
  policy.config["crop_shape"] = images.crop.enabled ? Json{images.crop.crop_height, images.crop.crop_width} : Json();
  policy.config["crop_is_random"] = images.crop.random;
  policy.config["use_group_norm"] = core.norm == "group";
  policy.config["spatial_softmax_num_keypoints"] = keypoints;
  policy.config["use_separate_rgb_encoder_per_camera"] = !all_share(settings);
  const bool normalised = !images.image_mean.empty();
  policy.image_mean = normalised ? images.image_mean : std::vector<double>(3, 0);
  policy.image_std = normalised ? images.image_std : std::vector<double>(3, 1);
}

}  // namespace

weights::NamedTensors lerobot_diffusion_weights(const PolicySettings& settings, weights::NamedTensors ours) {
  const std::vector<EncoderNames> encoders = encoders_of(settings);
  weights::NamedTensors theirs;
  std::map<std::string, at::Tensor> columns;  // x of key points, until its y comes
  for (auto& [name, tensor] : ours) {
    if (name.starts_with(kOwnNetwork)) {
      theirs.emplace_back(lerobot_unet_weight(name), std::move(tensor));
      continue;
    }
    const auto encoder = std::find_if(encoders.begin(), encoders.end(),
                                      [&](const EncoderNames& one) { return name.starts_with(one.ours); });
    COHORT_THROW_UNLESS(encoder != encoders.end(), "LeRobot's diffusion policies have no {}", name);
    const std::string inside = name.substr(encoder->ours.size());
    if (inside == "pool.temperature") continue;  // 1, which theirs divide by without saying it
    if (inside == "pool.pos_x" || inside == "pool.pos_y") {
      at::Tensor& first = columns[encoder->theirs];
      if (!first.defined()) {
        first = tensor;
        continue;
      }
      const bool x_first = inside == "pool.pos_y";
      theirs.emplace_back(encoder->theirs + "pool.pos_grid",
                          at::stack({(x_first ? first : tensor).flatten(), (x_first ? tensor : first).flatten()}, 1));
      continue;
    }
    const auto part = std::find_if(std::begin(kEncoderParts), std::end(kEncoderParts),
                                   [&](const auto& one) { return inside.starts_with(one.first); });
    COHORT_THROW_UNLESS(part != std::end(kEncoderParts), "LeRobot's diffusion policies have no {}", name);
    theirs.emplace_back(encoder->theirs + part->second + inside.substr(std::string(part->first).size()),
                        std::move(tensor));
  }
  return theirs;
}

weights::NamedTensors own_diffusion_weights(const PolicySettings& settings, weights::NamedTensors theirs) {
  const std::vector<EncoderNames> encoders = encoders_of(settings);
  weights::NamedTensors ours;
  for (auto& [name, tensor] : theirs) {
    if (name.starts_with(kTheirNetwork)) {
      ours.emplace_back(own_unet_weight(name), std::move(tensor));
      continue;
    }
    const auto encoder = std::find_if(encoders.begin(), encoders.end(),
                                      [&](const EncoderNames& one) { return name.starts_with(one.theirs); });
    const std::string inside = encoder == encoders.end() ? "" : name.substr(encoder->theirs.size());
    if (inside == "pool.pos_grid") {
      const at::Tensor grid = tensor.to(at::kFloat);
      COHORT_THROW_UNLESS(grid.dim() == 2 && grid.size(1) == 2, "{} has shape {}, but must be (pixels, 2)", name,
                          c10::str(grid.sizes()));
      ours.emplace_back(encoder->ours + "pool.pos_x", grid.select(1, 0).unsqueeze(0).contiguous());
      ours.emplace_back(encoder->ours + "pool.pos_y", grid.select(1, 1).unsqueeze(0).contiguous());
      ours.emplace_back(encoder->ours + "pool.temperature", at::ones({1}, at::kFloat));
      continue;
    }
    const auto part = std::find_if(std::begin(kEncoderParts), std::end(kEncoderParts),
                                   [&](const auto& one) { return inside.starts_with(one.second); });
    COHORT_THROW_UNLESS(part != std::end(kEncoderParts),
                        "holds {}, which no diffusion policy of {} cameras has, whose encoders are {}", name,
                        settings.rgb.size(), all_share(settings) ? "one" : "apart");
    ours.emplace_back(encoder->ours + part->first + inside.substr(std::string(part->second).size()), std::move(tensor));
  }
  return ours;
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
      throw Error(format("{} = {} has another type than a diffusion policy's", name, json_text(config.at(name))));
    }
  });
  const std::string kind = json_text(wanted("noise_scheduler_type"));
  COHORT_THROW_UNLESS(kind == "\"DDPM\"" || kind == "\"DDIM\"", "noise_scheduler_type = {}; known are DDPM and DDIM",
                      kind);
  s.sampler.kind = kind == "\"DDPM\"" ? "ddpm" : "ddim";
  const Json& steps = wanted("num_inference_steps");
  s.sampler.num_inference_timesteps = steps.is_number_integer() ? steps.get<int>() : s.schedule.num_train_timesteps;
  s.horizon.first_action = -1;
  s.network = "unet";
  if (!settings.rgb.empty()) read_encoder(policy, settings);
}

void write_lerobot_diffusion(const PolicySettings& settings, LeRobotPolicy& policy) {
  const auto& s = settings.of<models::DiffusionPolicySettings>();
  COHORT_THROW_UNLESS(!settings.language.enabled(),
                      "LeRobot's diffusion policies are told nothing, and this one is (model.language)");
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
  const std::vector<std::string> wanted = lerobot_order(settings, policy.environment_state);
  COHORT_THROW_UNLESS(own_order(settings) == wanted,
                      "LeRobot joins the robot's state, pictures and the environment's state ({}), but the network has "
                      "{}: train with model.first_observations=[{}]",
                      join(wanted, ", "), join(own_order(settings), ", "), join(wanted, ","));
  const auto of_robot = [&](const std::string& name) {
    return std::find(policy.environment_state.begin(), policy.environment_state.end(), name) ==
           policy.environment_state.end();
  };
  COHORT_THROW_UNLESS(std::any_of(settings.low_dim.begin(), settings.low_dim.end(), of_robot),
                      "LeRobot's diffusion policies must see the robot's state, and this one sees {}: train with it "
                      "among data.proprio",
                      join(wanted, ", "));
  if (!settings.rgb.empty()) write_encoder(settings, policy);
}

}  // namespace cohort::policies
