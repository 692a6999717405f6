/// LIBERO's Panda in each timestep: operational-space torques and the gripper's targets, with the peculiarities of
/// robosuite 1.4 (controllers/osc.py, robots/single_arm.py, models/grippers/panda_gripper.py): goals relative to the
/// measured pose, and a controller that read the robot at the environment's reset and reads it again only after its
/// first torques are out, whatever initial state was set in between.
///
///   const RobotControl robot(folder, scene);
///   RobotControl::Memory memory = robot.at_reset();
///   for (int k = 0; k < folder.substeps; ++k) robot.substep(k, qpos, qvel, action, memory, ctrl);
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/host/scene.h"
#include "tasks/controllers/operational_space.h"
#include "tasks/libero/scene_folder.h"

namespace cohort::tasks::libero {

inline constexpr int kActions = 7;

class RobotControl {
 public:
  /// What an environment remembers.
  struct Memory {
    OperationalSpaceControl::Memory arm;
    ArmReading reading;
    std::array<double, 2> grip{};  ///< command of each finger, in [-1, 1]
    bool reads = false;            ///< false: the reading is still that of the reset
  };

  /// The scene must outlive this. Throws Error for a joint, site or actuator that the model lacks.
  RobotControl(const SceneFolder& folder, const sim::Scene& scene);

  const Memory& at_reset() const { return reset_; }
  /// Timestep k of a control step. action: (7), clipped to [-1, 1] here; ctrl: of the model.
  void substep(int k, std::span<const double> qpos, std::span<const double> qvel, std::span<const double> action,
               Memory& memory, std::span<double> ctrl) const;
  /// Of the grip site, in the world.
  sim::Kinematics::Pose grip(std::span<const double> qpos) const;

  const ArmIndices& arm() const { return arm_; }
  const std::array<std::size_t, 2>& finger_qpos() const { return finger_qpos_; }
  const std::array<std::size_t, 2>& finger_qvel() const { return finger_qvel_; }

 private:
  const sim::Kinematics& kinematics_;
  ArmIndices arm_;
  OperationalSpaceControl control_;
  double finger_speed_ = 0;
  std::array<double, 2> finger_sign_{}, finger_low_{}, finger_high_{};
  std::array<std::size_t, kArmJoints> arm_ctrl_{};
  std::array<std::size_t, 2> finger_qpos_{}, finger_qvel_{}, finger_ctrl_{};
  Memory reset_;
};

}  // namespace cohort::tasks::libero
