// Reading the policy's part of robomimic's JSON configurations.
#include "models/diffusion_policy/robomimic_config.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "models/diffusion_policy/formula.h"

namespace cohort::models {
namespace {

/// As the DROID package's generator writes it.
config::Json droid_algo() {
  return config::Json::parse(R"({
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
  return config::Json::parse(R"({
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
  EXPECT_EQ(policy.learning_rate, 1e-4);
  const RobomimicPolicy sorted =
      read_robomimic_policy(droid_algo(), droid_observation(), "c.json", ObservationOrder::kByName);
  EXPECT_EQ(sorted.settings.encoder.observations[0].name, "camera/image/varied_camera_1_left_image");
}

TEST(RobomimicConfig, NamesEveryKeyThatItCannotHonour) {
  config::Json algo = droid_algo(), observation = droid_observation();
  algo["unet"]["depth"] = 3;
  algo["horizon"]["action_horizon"] = "eight";
  algo["optim_params"]["policy"]["optimizer_type"] = "sgd";
  observation["encoder"]["rgb"]["fuser"] = "perceiver";
  observation["encoder"]["rgb"]["obs_randomizer_kwargs"][1]["pos_enc"] = true;
  observation["modalities"]["goal"]["rgb"] = {"camera"};
  observation["extra"] = 1;
  const std::string message =
      message_of([&] { read_robomimic_policy(algo, observation, "c.json", ObservationOrder::kAsListed); });
  EXPECT_NE(message.find("c.json: 7 settings cannot be honoured:"), std::string::npos) << message;
  for (const char* line :
       {"algo.unet.depth = 3 is unknown here", "algo.horizon.action_horizon = \"eight\" has the wrong type",
        "algo.optim_params.policy.optimizer_type = \"sgd\" is not supported",
        "observation.encoder.rgb.fuser = \"perceiver\" is not supported",
        "observation.encoder.rgb.obs_randomizer_kwargs.pos_enc = true is not supported",
        "observation.modalities.goal.rgb = [\"camera\"] is not supported", "observation.extra = 1 is unknown here"})
    EXPECT_NE(message.find(line), std::string::npos) << line << "\n" << message;
}

}  // namespace
}  // namespace cohort::models
