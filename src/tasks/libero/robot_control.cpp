#include "tasks/libero/robot_control.h"

#include "core/error.h"
#include "tasks/controllers/joint_control.h"

namespace cohort::tasks::libero {

RobotControl::RobotControl(const SceneFolder& folder, const sim::Scene& scene)
    : kinematics_(scene.kinematics()),
      arm_(find_arm(kinematics_, scene.info(), folder.grip_site, folder.arm_joints)),
      control_(folder.controller),
      finger_speed_(folder.finger_speed) {
  const sim::ModelInfo& model = scene.info();
  const auto joint = [&](const std::string& name) -> const sim::JointInfo& {
    return model.joints[static_cast<std::size_t>(model.joint(name))];
  };
  const auto actuator = [&](const std::string& name) -> const sim::ActuatorInfo& {
    return model.actuators[static_cast<std::size_t>(model.actuator(name))];
  };
  for (std::size_t i = 0; i < kArmJoints; ++i) {
    arm_ctrl_[i] = static_cast<std::size_t>(actuator(folder.arm_actuators[i]).ctrl);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    finger_qpos_[i] = static_cast<std::size_t>(joint(folder.finger_joints[i]).qpos);
    finger_qvel_[i] = static_cast<std::size_t>(joint(folder.finger_joints[i]).dof);
    const sim::ActuatorInfo& finger = actuator(folder.finger_actuators[i]);
    finger_ctrl_[i] = static_cast<std::size_t>(finger.ctrl);
    finger_low_[i] = finger.range[0], finger_high_[i] = finger.range[1];
    finger_sign_[i] = folder.finger_sign[i];
  }
  // The environment's reset: the arm as the robot's model has it, fingers at 0, at rest.
  std::vector<double> qpos(model.qpos0), still(static_cast<std::size_t>(model.nv), 0.0);
  for (std::size_t i = 0; i < kArmJoints; ++i) qpos[arm_.qpos[i]] = folder.reset_joints[i];
  for (const std::size_t i : finger_qpos_) qpos[i] = 0;
  read_arm(kinematics_, arm_, qpos, still, reset_.reading, {});
  control_.begin(reset_.arm, reset_.reading);
}

void RobotControl::substep(int k, std::span<const double> qpos, std::span<const double> qvel,
                           std::span<const double> action, Memory& memory, std::span<double> ctrl) const {
  std::array<double, kArmJoints> bias{}, torques{};
  ArmReading now;
  read_arm(kinematics_, arm_, qpos, qvel, now, bias);
  if (memory.reads) memory.reading = now;
  memory.reads = true;
  if (k == 0) control_.set_goal(memory.arm, memory.reading, action.first(6));
  control_.torques(memory.arm, memory.reading, bias, torques);
  move_gripper(action[6], finger_speed_, finger_sign_, memory.grip);
  for (std::size_t i = 0; i < kArmJoints; ++i) ctrl[arm_ctrl_[i]] = torques[i];
  for (std::size_t i = 0; i < 2; ++i)
    ctrl[finger_ctrl_[i]] = gripper_target(memory.grip[i], finger_low_[i], finger_high_[i]);
}

sim::Kinematics::Pose RobotControl::grip(std::span<const double> qpos) const {
  return kinematics_.at(qpos).site_pose(arm_.site);
}

}  // namespace cohort::tasks::libero
