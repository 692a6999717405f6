#include "train/jobs/robomimic_names.h"

#include <algorithm>
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

std::string action_field(const std::string& key, const std::string& format, const std::vector<std::string>& stored) {
  if (format == "robomimic" || !key.starts_with("action/")) return key;
  const bool rlds = format == "droid_rlds";
  if (!rlds && std::find(stored.begin(), stored.end(), key) != stored.end()) return key;
  const std::string folder = rlds ? "action_dict/" : "action/", name = key.substr(7);
  // Position and Euler angles of pose and velocity. The RLDS pipeline turns the angles about fixed axes x, y, z; the
  // script that adds these fields to HDF5 files (convert_droid.py, convention "XYZ") about axes that move along.
  const std::string to_6d = rlds ? " | euler_xyz->rotation_6d" : " | euler_XYZ->rotation_6d";
  if (name == "abs_pos") return folder + "cartesian_position[0:3]";
  if (name == "abs_rot_6d") return folder + "cartesian_position[3:6]" + to_6d;
  if (name == "abs_rot_euler") return folder + "cartesian_position[3:6]";
  if (name == "rel_pos") return folder + "cartesian_velocity[0:3]";
  if (name == "rel_rot_6d") return folder + "cartesian_velocity[3:6]" + to_6d;
  if (name == "rel_rot_euler") return folder + "cartesian_velocity[3:6]";
  return folder + name;
}

}  // namespace cohort::train
