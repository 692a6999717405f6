/// Diffusion policies in LeRobot's folders (policies/lerobot_folder.h): lerobot/policies/diffusion. Their U-Net is the one
/// here, and their picture encoder (ResNet, spatial softmax, a square linear layer, ReLU) a VisualCore of these settings:
///
///   model.images.core.backbone_class=ResNet18Conv model.images.core.pool_class=SpatialSoftmax
///   model.images.core.pool_kwargs.num_kp=32 model.images.core.feature_dimension=64
///
/// LeRobot joins the robot's state, the pictures in the order of their cameras, and the environment's state.
#pragma once
#include <string>

#include "policies/lerobot_folder.h"
#include "policies/policy_settings.h"
#include "weights/named_tensors.h"

namespace cohort::policies {

/// Throw Error naming the field or setting that cannot be honoured.
void read_lerobot_diffusion(const LeRobotPolicy& policy, PolicySettings& settings);
void write_lerobot_diffusion(const PolicySettings& settings, LeRobotPolicy& policy);

/// The weights under LeRobot's names, and back: diffusion.unet.mid_modules.0.conv1.block.0.weight is
/// policy.noise_pred_net.mid_modules.0.blocks.0.block.0.weight here, diffusion.rgb_encoder.0.backbone.0.weight the first
/// camera's policy.obs_encoder.nets.obs.obs_nets.NAME.backbone.nets.0.weight. Throws Error naming what has no counterpart.
weights::NamedTensors lerobot_diffusion_weights(const PolicySettings& settings, weights::NamedTensors own);
weights::NamedTensors own_diffusion_weights(const PolicySettings& settings, weights::NamedTensors theirs);

}  // namespace cohort::policies
