#include "tasks/libero/compose/robot.h"

#include <numbers>

#include "core/error.h"
#include "core/format.h"
#include "tasks/libero/compose/mjcf.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

/// A robot, mount or gripper with its prefix, colours, and names for the geoms that have none (MujocoXMLModel).
XmlNode read_part(const fs::path& file, const std::string& prefix, const std::string& rgba) {
  XmlNode model = read_mjcf(file);
  int colliding = 0, visual = 0;
  for_each_node(model, [&](XmlNode& node) {
    if (node.name != "geom" || node.has("name")) return;
    node.set("name", is_colliding_group(node) ? format("g{}_col", colliding++) : format("g{}_vis", visual++));
  });
  add_prefix(model, prefix);
  recolour_colliding(model.section("worldbody"), rgba);
  return model;
}

/// The body directly in the world.
XmlNode& root_body(XmlNode& model, const fs::path& file) {
  for (XmlNode& child : model.section("worldbody").children)
    if (child.name == "body") return child;
  throw Error(format("{}: there is no body in its world", file.string()));
}

std::array<double, 3> position(const XmlNode& body, const fs::path& file) {
  const std::vector<double> pos = numbers_of(body.get("pos", "0 0 0"), file.string());
  COHORT_THROW_UNLESS(pos.size() == 3, "{}: the position of its root body has {} numbers", file.string(), pos.size());
  return {pos[0], pos[1], pos[2]};
}

/// Friction loss, damping and armature that files leave to robosuite.
void set_joints(XmlNode& model, const fs::path& file) {
  constexpr std::array<double, 7> kDamping{0.1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01};
  std::size_t i = 0;
  for_each_node(model.section("worldbody"), [&](XmlNode& node) {
    if (node.name != "joint") return;
    COHORT_THROW_UNLESS(i < kDamping.size(), "{}: the Panda has {} joints, and this file more", file.string(),
                        kDamping.size());
    node.attributes.emplace("frictionloss", "0.1");
    node.attributes.emplace("armature", text_of(5.0 / static_cast<double>(i + 1)));
    node.set("damping", text_of(kDamping[i++]));
  });
  COHORT_THROW_UNLESS(i == kDamping.size(), "{}: the Panda has {} joints, and this file {}", file.string(),
                      kDamping.size(), i);
}

}  // namespace

const std::array<double, 7>& arm_at_reset() {
  static const std::array<double, 7> joints{0, -1.61037389e-01, 0, -2.44459747, 0, 2.22675220, std::numbers::pi / 4};
  return joints;
}

Robot assemble_robot(const fs::path& assets, bool mounted, const std::array<double, 3>& base) {
  const fs::path arm_file = assets / "robots/panda/robot.xml", gripper_file = assets / "grippers/panda_gripper.xml",
                 mount_file = assets / "mounts" / (mounted ? "rethink_mount.xml" : "null_mount.xml");
  Robot robot{.model = read_part(arm_file, "robot0_", "0 0.5 0 1"),
              .model_name = mounted ? "MountedPanda" : "OnTheGroundPanda",
              .mount_name = mounted ? "RethinkMount" : "NullMount",
              .arm_joints = {},
              .arm_actuators = {},
              .finger_joints = {},
              .finger_actuators = {}};
  set_joints(robot.model, arm_file);
  const PartNames arm = part_names(robot.model, "");
  robot.arm_joints = arm.joints;
  robot.arm_actuators = arm.actuators;

  // The mount's top carries the arm's base; the whole stands with the mount's bottom on `base`.
  const std::array<double, 3> top{0, 0, mounted ? -0.01 : 0.0};
  XmlNode mount = read_part(mount_file, "mount0_", "0.5 0.5 0 1");
  XmlNode& mount_root = root_body(mount, mount_file);
  XmlNode& arm_root = root_body(robot.model, arm_file);
  const std::array<double, 3> bottom = position(mount_root, mount_file), offset = position(arm_root, arm_file);
  std::vector<double> mount_at(3), arm_at(3);
  for (std::size_t i = 0; i < 3; ++i) {
    mount_at[i] = offset[i] - top[i];
    arm_at[i] = base[i] - ((bottom[i] - top[i]) + offset[i]);
  }
  mount_root.set("pos", text_of(mount_at));
  arm_root.set("pos", text_of(arm_at));
  merge_model(robot.model, mount, "robot0_base");

  const XmlNode gripper = read_part(gripper_file, "gripper0_", "0 0 0.5 1");
  const PartNames fingers = part_names(gripper, "");
  robot.finger_joints = fingers.joints;
  robot.finger_actuators = fingers.actuators;
  merge_model(robot.model, gripper, "robot0_right_hand");
  return robot;
}

}  // namespace cohort::tasks::libero::compose
