/// Diffusion policies in LeRobot's folders (policies/lerobot_folder.h): lerobot/policies/diffusion. Those that see vectors
/// alone: their U-Net is the one here, weight for weight. LeRobot encodes pictures otherwise.
#pragma once
#include <string>

#include "policies/lerobot_folder.h"
#include "policies/policy_settings.h"

namespace cohort::policies {

/// Throw Error naming the field or setting that cannot be honoured.
void read_lerobot_diffusion(const LeRobotPolicy& policy, PolicySettings& settings);
void write_lerobot_diffusion(const PolicySettings& settings, LeRobotPolicy& policy);

/// "diffusion.unet.mid_modules.0.conv1.block.0.weight" of "policy.noise_pred_net.mid_modules.0.blocks.0.block.0.weight",
/// and back.
std::string lerobot_unet_weight(std::string own);
std::string own_unet_weight(std::string theirs);

}  // namespace cohort::policies
