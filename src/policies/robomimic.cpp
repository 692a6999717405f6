#include "policies/robomimic.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "policies/algorithm.h"

namespace cohort::policies {
namespace {

using config::is_empty;
using config::is_false;
using config::Json;
using config::JsonSection;

void read(JsonSection& policy, RobomimicOptimizer& o) {
  policy.take_choice("optimizer_type", o.kind, {"adam", "adamw"});
  policy.in("learning_rate", [&](JsonSection& rate) {
    rate.take("initial", o.learning_rate);
    rate.take("decay_factor", o.decay);
    rate.take_or_null("epoch_schedule", o.epochs, {});
    rate.take_choice("scheduler_type", o.schedule, {"multistep", "cosine"});
    if (o.schedule == "cosine") {
      o.epochs.clear();  // the reference does not look at them then
      rate.take_or_null("warmup_steps", o.warmup_steps, 0);
      rate.off(
          "num_cycles", [](const config::Json& v) { return v == 0.5; }, "is not supported: half a wave (0.5) is");
      rate.off(
          "step_every_batch", [](const config::Json& v) { return v == true; },
          "is not supported: a cosine steps with every batch (true)");
    } else {
      rate.ignore("warmup_steps");
      rate.ignore("num_cycles");
      rate.off(
          "step_every_batch", [&](const config::Json& v) { return is_empty(v) || o.epochs.empty(); },
          "is not supported with an epoch_schedule, whose numbers are of epochs");
    }
  });
  policy.in("regularization", [&](JsonSection& r) { r.take("L2", o.weight_decay); });
}

void read_randomizer(JsonSection& rgb, const Json& kind, const Json& kwargs,
                     models::ObservationEncoderSettings& encoder, std::vector<std::string>& refused) {
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
  models::ObservationEncoderSettings& encoder = policy.encoder;
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
  std::vector<models::ObservationSettings>& observations = policy.encoder.observations;
  for (const std::string& name : low_dim) observations.push_back({name, {}, ""});
  for (const std::string& name : cameras)
    observations.push_back(
        {name, image_dim.size() == 2 ? std::vector<int>{3, image_dim[0], image_dim[1]} : std::vector<int>{}, ""});
}

}  // namespace

void read_optimizer(JsonSection& algo, RobomimicOptimizer& optimizer) {
  algo.in("optim_params", [&](JsonSection& optim) { optim.in("policy", [&](JsonSection& p) { read(p, optimizer); }); });
}

const std::vector<std::string>& droid_observation_order() {
  static const std::vector<std::string> kOrder{
      "robot_state/cartesian_position",          "robot_state/gripper_position",
      "camera/image/hand_camera_left_image",     "camera/image/varied_camera_1_left_image",
      "camera/image/varied_camera_2_left_image", "lang_fixed/language_distilbert"};
  return kOrder;
}

bool is_robomimics(const std::string& algorithm) {
  return std::any_of(algorithms().begin(), algorithms().end(),
                     [&](const Algorithm* one) { return one->is_robomimics() && one->name() == algorithm; });
}

RobomimicPolicy read_robomimic_policy(const std::string& algorithm, const Json& algo, const Json& observation,
                                      const std::string& source, ObservationOrder order, PolicySettings& model) {
  std::string names;
  for (const Algorithm* one : algorithms())
    if (one->is_robomimics()) names += (names.empty() ? "" : " and ") + one->name();
  COHORT_THROW_UNLESS(is_robomimics(algorithm), "algo_name = \"{}\" is not supported; there are {}", algorithm, names);
  RobomimicPolicy policy;
  std::vector<std::string> refused, of_observation;
  {
    JsonSection section(observation, "observation", of_observation);
    read_observation(section, policy, of_observation);
  }
  for (const Algorithm* one : algorithms()) {
    if (!one->is_robomimics()) continue;
    // Those that do not learn have the fork's defaults.
    const bool learns = one->name() == algorithm;
    RobomimicPolicy unused;
    JsonSection section(learns ? algo : Json::object(), "algo", refused);
    one->read_robomimic(section, model, learns ? policy : unused);
  }
  refused.insert(refused.end(), of_observation.begin(), of_observation.end());
  std::vector<models::ObservationSettings>& observations = policy.encoder.observations;
  if (order == ObservationOrder::kByName)
    std::sort(observations.begin(), observations.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (order == ObservationOrder::kDroid) models::put_first(observations, droid_observation_order());
  models::share_cameras(observations, "camera/image/varied_camera");
  std::string list;
  for (const std::string& line : refused) list += "\n  " + line;
  COHORT_THROW_UNLESS(refused.empty(), "{}: {} settings cannot be honoured:{}", source, refused.size(), list);
  return policy;
}

}  // namespace cohort::policies
