// Reading the policy's part of robomimic's JSON configurations.
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "models/formula.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/robomimic.h"

namespace cohort::models {
namespace {

using policies::droid_observation_order;
using policies::ObservationOrder;

struct RobomimicPolicy : policies::RobomimicPolicy {
  DiffusionPolicySettings settings;
};

RobomimicPolicy read_robomimic_policy(const config::Json& algo, const config::Json& observation,
                                      const std::string& source, ObservationOrder order) {
  policies::PolicySettings model;
  RobomimicPolicy policy{policies::read_robomimic_policy("diffusion_policy", algo, observation, source, order, model),
                         {}};
  policy.settings = model.of<DiffusionPolicySettings>();
  policy.settings.encoder = policy.encoder;
  return policy;
}

/// As the DROID package's generator writes it.
config::Json droid_algo() {
  return parse_json<config::Json>(R"({
    "optim_params": {"policy": {"learning_rate": {"initial": 0.0001, "decay_factor": 0.1, "epoch_schedule": []},
                                "regularization": {"L2": 0.0}}},
    "horizon": {"observation_horizon": 2, "action_horizon": 8, "prediction_horizon": 16},
    "unet": {"enabled": true, "diffusion_step_embed_dim": 256, "down_dims": [256, 512, 1024], "kernel_size": 5,
             "n_groups": 8},
    "ema": {"enabled": true, "power": 0.75},
    "ddpm": {"enabled": false, "num_train_timesteps": 100, "num_inference_timesteps": 100,
             "beta_schedule": "squaredcos_cap_v2", "clip_sample": true, "prediction_type": "epsilon"},
    "ddim": {"enabled": true, "num_train_timesteps": 50, "num_inference_timesteps": 10,
             "beta_schedule": "squaredcos_cap_v2", "clip_sample": true, "set_alpha_to_one": true, "steps_offset": 0,
             "prediction_type": "epsilon"},
    "noise_samples": 8})");
}

config::Json droid_observation() {
  return parse_json<config::Json>(R"({
    "image_dim": [128, 128],
    "modalities": {
      "obs": {"low_dim": ["robot_state/cartesian_position", "robot_state/gripper_position"],
              "rgb": ["camera/image/varied_camera_1_left_image", "camera/image/varied_camera_2_left_image"],
              "depth": [], "scan": []},
      "goal": {"low_dim": [], "rgb": [], "depth": [], "scan": []}},
    "encoder": {
      "low_dim": {"core_class": null, "core_kwargs": {}, "obs_randomizer_class": null, "obs_randomizer_kwargs": {}},
      "rgb": {"core_class": "VisualCore", "fuser": null,
              "core_kwargs": {"feature_dimension": 512, "flatten": true, "backbone_class": "ResNet50Conv",
                              "backbone_kwargs": {"pretrained": true, "input_coord_conv": false, "use_cam": false,
                                                  "downsample": false},
                              "pool_class": null,
                              "pool_kwargs": {"num_kp": 32, "learnable_temperature": false, "temperature": 1.0,
                                              "noise_std": 0.0}},
              "obs_randomizer_class": ["ColorRandomizer", "CropRandomizer"],
              "obs_randomizer_kwargs": [{}, {"crop_height": 116, "crop_width": 116, "num_crops": 1, "pos_enc": false}]},
      "depth": {"core_class": "VisualCore", "core_kwargs": {}, "obs_randomizer_class": null},
      "scan": {"core_class": "ScanCore", "core_kwargs": {}, "obs_randomizer_class": null}}})");
}

TEST(RobomimicConfig, GivesTheDroidPolicy) {
  const RobomimicPolicy policy =
      read_robomimic_policy(droid_algo(), droid_observation(), "c.json", ObservationOrder::kAsListed);
  const DiffusionPolicySettings& s = policy.settings;
  ASSERT_EQ(s.encoder.observations.size(), 4u);
  EXPECT_EQ(s.encoder.observations[1].name, "robot_state/gripper_position");
  EXPECT_TRUE(s.encoder.observations[1].shape.empty());
  EXPECT_EQ(s.encoder.observations[3].shape, (std::vector<int>{3, 128, 128}));
  EXPECT_EQ(s.encoder.observations[2].shares, "");
  EXPECT_EQ(s.encoder.observations[3].shares, "camera/image/varied_camera_1_left_image");
  EXPECT_EQ(s.encoder.core.backbone_class, "ResNet50Conv");
  EXPECT_EQ(s.encoder.core.pool_class, "none");
  EXPECT_EQ(s.encoder.core.feature_dimension, 512);
  EXPECT_TRUE(s.encoder.color.enabled && s.encoder.crop.enabled);
  EXPECT_EQ(s.encoder.crop.crop_height, 116);
  EXPECT_EQ(s.network, "unet");
  EXPECT_EQ(s.noise_samples, 8);
  EXPECT_EQ(s.sampler.kind, "ddim");
  EXPECT_EQ(s.sampler.num_inference_timesteps, 10);
  EXPECT_EQ(s.schedule.num_train_timesteps, 50) << "of the sampler that is enabled";
  EXPECT_TRUE(policy.pretrained_backbone && policy.ema_enabled);
  EXPECT_EQ(policy.ema_power, 0.75);
  EXPECT_EQ(policy.optimizer.learning_rate, 1e-4);
  const RobomimicPolicy sorted =
      read_robomimic_policy(droid_algo(), droid_observation(), "c.json", ObservationOrder::kByName);
  EXPECT_EQ(sorted.settings.encoder.observations[0].name, "camera/image/varied_camera_1_left_image");
}

TEST(RobomimicConfig, NamesEveryKeyThatItCannotHonour) {
  config::Json algo = droid_algo(), observation = droid_observation();
  algo["unet"]["depth"] = 3;
  algo["unet"]["kernel_sise"] = 3;
  algo["horizon"]["action_horizon"] = "eight";
  algo["optim_params"]["policy"]["optimizer_type"] = "sgd";
  observation["encoder"]["rgb"]["fuser"] = "perceiver";
  observation["encoder"]["rgb"]["obs_randomizer_kwargs"][1]["pos_enc"] = true;
  observation["modalities"]["goal"]["rgb"] = {"camera"};
  observation["extra"] = 1;
  const std::string message =
      message_of([&] { read_robomimic_policy(algo, observation, "c.json", ObservationOrder::kAsListed); });
  EXPECT_NE(message.find("c.json: 8 settings cannot be honoured:"), std::string::npos) << message;
  for (const char* line :
       {"algo.unet.depth = 3 is unknown here", "algo.unet.kernel_sise = 3 is unknown here (is kernel_size meant?)",
        "algo.horizon.action_horizon = \"eight\" has the wrong type",
        "algo.optim_params.policy.optimizer_type = \"sgd\" is not supported",
        "observation.encoder.rgb.fuser = \"perceiver\" is not supported",
        "observation.encoder.rgb.obs_randomizer_kwargs.pos_enc = true is not supported",
        "observation.modalities.goal.rgb = [\"camera\"] is not supported", "observation.extra = 1 is unknown here"})
    EXPECT_NE(message.find(line), std::string::npos) << line << "\n" << message;
}

// The defaults of the fork's config/*.py, VisualCore, CropRandomizer: what a template leaves out is not ours to choose.
TEST(RobomimicConfig, MissingKeysHaveTheForksDefaults) {
  config::Json observation = droid_observation();
  observation["encoder"]["rgb"] =
      parse_json<config::Json>(R"({"core_kwargs": {}, "obs_randomizer_class": "CropRandomizer"})");
  observation["modalities"]["obs"].erase("low_dim");
  config::Json algo = parse_json<config::Json>(R"({"ddpm": {"enabled": false}, "ddim": {"enabled": true}})");
  const RobomimicPolicy policy = read_robomimic_policy(algo, observation, "c.json", ObservationOrder::kAsListed);
  const DiffusionPolicySettings& s = policy.settings;
  EXPECT_EQ(s.encoder.core.backbone_class, "ResNet18Conv");
  EXPECT_EQ(s.encoder.core.pool_class, "SpatialSoftmax");
  EXPECT_EQ(s.encoder.core.pool.num_kp, 32);
  EXPECT_EQ(s.encoder.core.feature_dimension, 64);
  EXPECT_EQ(s.encoder.crop.crop_height, 76);
  EXPECT_EQ(s.encoder.crop.crop_width, 76);
  EXPECT_EQ(s.schedule.num_train_timesteps, 50);
  EXPECT_EQ(s.sampler.num_inference_timesteps, 10);
  EXPECT_EQ(s.noise_samples, 1);
  EXPECT_EQ(policy.low_dim,
            (std::vector<std::string>{"robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos", "object"}));
  EXPECT_EQ(policy.rgb.size(), 2u);
}

TEST(RobomimicConfig, NullMeansWhatItMeansThereOrIsRefused) {
  config::Json observation = droid_observation();
  config::Json& rgb = observation["encoder"]["rgb"];
  rgb["core_kwargs"]["feature_dimension"] = nullptr;
  rgb["obs_randomizer_kwargs"][0]["brightness"] = nullptr;
  rgb["obs_randomizer_kwargs"][0]["hue"] = nullptr;
  const auto read = [&] {
    return read_robomimic_policy(droid_algo(), observation, "c.json", ObservationOrder::kAsListed);
  };
  const ObservationEncoderSettings encoder = read().settings.encoder;
  EXPECT_EQ(encoder.core.feature_dimension, 0) << "no linear layer";
  EXPECT_EQ(encoder.color.brightness, 0.0) << "the operation is left out";
  EXPECT_EQ(encoder.color.hue, 0.0);
  EXPECT_EQ(encoder.color.contrast, 0.3);
  rgb["core_kwargs"]["pool_class"] = "SpatialSoftmax";
  rgb["core_kwargs"]["pool_kwargs"]["num_kp"] = nullptr;
  rgb["core_kwargs"]["flatten"] = nullptr;
  rgb["obs_randomizer_kwargs"][1]["crop_width"] = nullptr;
  const std::string message = message_of(read);
  for (const char* line : {"pool_kwargs.num_kp = null is no value here", "core_kwargs.flatten = null is not supported",
                           "obs_randomizer_kwargs.crop_width = null is no value here"})
    EXPECT_NE(message.find(line), std::string::npos) << line << "\n" << message;
}

TEST(RobomimicConfig, RefusesOtherTypesAndNamesBesideEverythingElse) {
  config::Json algo = droid_algo(), observation = droid_observation();
  algo["horizon"]["prediction_horizon"] = 16.5;
  algo["horizon"]["action_horizon"] = true;
  algo["noise_samples"] = 1e20;
  algo["ddim"]["beta_schedule"] = "cosine";
  algo["ddpm"]["beta_schedule"] = "of what is switched off";
  observation["image_dim"] = {128};
  config::Json& rgb = observation["encoder"]["rgb"];
  rgb["core_kwargs"]["feature_dimension"] = "512";
  rgb["core_kwargs"]["pool_class"] = "SpatialMeanPool";
  rgb["core_kwargs"]["backbone_class"] = "R3MConv";
  rgb["obs_randomizer_kwargs"].erase(1);
  const auto read = [&] { return read_robomimic_policy(algo, observation, "c.json", ObservationOrder::kAsListed); };
  const std::string message = message_of(read);
  for (const char* line :
       {"c.json: 9 settings", "prediction_horizon = 16.5 has the wrong type",
        "action_horizon = true has the wrong type", "algo.noise_samples = 1e+20 has the wrong type",
        "algo.ddim.beta_schedule = \"cosine\" is not supported; there are squaredcos_cap_v2, linear, scaled_linear",
        "observation.image_dim = [128] is no height and width", "feature_dimension = \"512\" has the wrong type",
        "observation.encoder.rgb.core_kwargs.pool_class = \"SpatialMeanPool\" is not supported",
        "backbone_class = \"R3MConv\" is not supported", "obs_randomizer_kwargs = [{}] is no list of 2 objects"})
    EXPECT_NE(message.find(line), std::string::npos) << line << "\n" << message;
  // A whole number is one however it is written.
  algo = droid_algo();
  observation = droid_observation();
  observation["encoder"]["rgb"]["core_kwargs"]["feature_dimension"] = 256.0;
  EXPECT_EQ(read().settings.encoder.core.feature_dimension, 256);
}

TEST(RobomimicConfig, DroidHdf5HasAnOrderOfItsOwn) {
  config::Json observation = droid_observation();
  observation["modalities"]["obs"]["low_dim"] = {"lang_fixed/language_distilbert", "robot_state/gripper_position",
                                                 "robot_state/cartesian_position"};
  observation["modalities"]["obs"]["rgb"] = {"camera/image/varied_camera_2_left_image",
                                             "camera/image/hand_camera_left_image",
                                             "camera/image/varied_camera_1_left_image"};
  const RobomimicPolicy policy = read_robomimic_policy(droid_algo(), observation, "c.json", ObservationOrder::kDroid);
  const auto& observations = policy.settings.encoder.observations;
  ASSERT_EQ(observations.size(), droid_observation_order().size());
  for (std::size_t i = 0; i < observations.size(); ++i) EXPECT_EQ(observations[i].name, droid_observation_order()[i]);
  EXPECT_EQ(observations[4].shares, "camera/image/varied_camera_1_left_image");
}

}  // namespace
}  // namespace cohort::models
