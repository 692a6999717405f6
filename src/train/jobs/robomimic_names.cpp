#include "train/jobs/robomimic_names.h"

#include <map>

namespace cohort::train {

std::string observation_field(const std::string& name, const std::string& format) {
  if (format == "robomimic") return name.starts_with("obs/") ? name : "obs/" + name;
  if (format == "droid") return name.starts_with("observation/") ? name : "observation/" + name;
  static const std::map<std::string, std::string> kFields{
      {"camera/image/hand_camera_left_image", "observation/wrist_image_left"},
      {"camera/image/wrist_image_left", "observation/wrist_image_left"},
      {"camera/image/varied_camera_1_left_image", "observation/exterior_image_1_left"},
      {"camera/image/varied_camera_2_left_image", "observation/exterior_image_2_left"},
      {"robot_state/cartesian_position", "observation/cartesian_position"},
      {"robot_state/gripper_position", "observation/gripper_position"},
      {"robot_state/joint_positions", "observation/joint_position"}};
  const auto found = kFields.find(name);
  return found == kFields.end() ? name : found->second;
}

std::string action_field(const std::string& key, const std::string& format) {
  if (format == "robomimic" || !key.starts_with("action/")) return key;
  const std::string folder = format == "droid_rlds" ? "action_dict/" : "action/", name = key.substr(7);
  // The DROID scripts derive these from the pose and its velocity: position, and fixed Euler angles in x, y, z.
  if (name == "abs_pos") return folder + "cartesian_position[0:3]";
  if (name == "abs_rot_6d") return folder + "cartesian_position[3:6] | euler_xyz->rotation_6d";
  if (name == "abs_rot_euler") return folder + "cartesian_position[3:6]";
  if (name == "rel_pos") return folder + "cartesian_velocity[0:3]";
  if (name == "rel_rot_6d") return folder + "cartesian_velocity[3:6] | euler_xyz->rotation_6d";
  if (name == "rel_rot_euler") return folder + "cartesian_velocity[3:6]";
  return folder + name;
}

}  // namespace cohort::train
