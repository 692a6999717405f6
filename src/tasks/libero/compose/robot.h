/// Franka's Panda with its gripper, on a pedestal or on the ground, as robosuite 1.4.0 and LIBERO assemble it.
///
/// Sources: robosuite/models/robots, models/mounts, models/grippers; libero/libero/envs/robots.
#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/xml_tree.h"

namespace cohort::tasks::libero::compose {

struct Robot {
  XmlNode model;
  std::string model_name, mount_name;  ///< classes of LIBERO and robosuite: "MountedPanda", "RethinkMount"
  std::vector<std::string> arm_joints, arm_actuators, finger_joints, finger_actuators;
};

/// The arm's joints at the environment's reset, rad.
const std::array<double, 7>& arm_at_reset();

/// assets: robosuite's folder models/assets. base: where the mount stands, m; the arm's base lies above it. Throws
/// Error naming a file that is missing or is not that of robosuite 1.4.0.
Robot assemble_robot(const std::filesystem::path& assets, bool mounted, const std::array<double, 3>& base);

}  // namespace cohort::tasks::libero::compose
