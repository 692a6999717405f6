/// Operational-space control of an arm's end effector (Khatib, "A unified approach for motion and force control of
/// robot manipulators: the operational space formulation", 1987): joint torques that pull a site towards a pose like a
/// spring and damper with unit mass. Maths, constants and order of computation are those of robosuite 1.4's OSC_POSE
/// (robosuite/controllers/osc.py, utils/control_utils.py), fixed impedance, position and orientation uncoupled.
///
///   OperationalSpaceControl::Memory memory;               // of one environment
///   control.begin(memory, reading_at_reset);
///   control.set_goal(memory, reading, action);            // once per control step: (dx, dy, dz, rx, ry, rz), -1 to 1
///   control.torques(memory, reading, bias, torques);      // once per timestep
///
/// Nothing allocates. Torques are N m for joints in the reading's order.
#pragma once
#include <array>
#include <span>
#include <string>

#include "core/vec3.h"
#include "sim/host/kinematics.h"
#include "sim/host/model_info.h"

namespace cohort::tasks {

inline constexpr int kArmJoints = 7;

/// What a controller reads of an arm.
struct ArmReading {
  Vec3 pos{};                                          ///< m, of the site, in the world
  Mat3 rot{};                                          ///< of the site
  std::array<double, 6 * kArmJoints> jacobian{};       ///< (6, 7) linear, angular
  std::array<double, kArmJoints * kArmJoints> mass{};  ///< (7, 7) kg m², the arm's block of the mass matrix
  std::array<double, kArmJoints> position{}, velocity{};
};
/// Where an arm is in a model.
struct ArmIndices {
  int site = 0;                                ///< of sim::Kinematics
  std::array<std::size_t, kArmJoints> qpos{};  ///< of its joints, hinges or slides
  std::array<int, kArmJoints> dofs{};          ///< likewise
};
/// Throws Error with the nearest name for a site or joint that the model lacks, and for a ball or free joint.
ArmIndices find_arm(const sim::Kinematics& kinematics, const sim::ModelInfo& model, const std::string& site,
                    std::span<const std::string> joints);
/// bias: (7), may be empty. The site's velocity is the arm's alone: nothing else bears it.
void read_arm(const sim::Kinematics& kinematics, const ArmIndices& arm, std::span<const double> qpos,
              std::span<const double> qvel, ArmReading& reading, std::span<double> bias);

struct OperationalSpaceSettings {
  double stiffness = 150;          ///< 1/s², of position and orientation
  double damping_ratio = 1;        ///< of the critical
  double position_scale = 0.05;    ///< m for an action of 1
  double orientation_scale = 0.5;  ///< rad for an action of 1
  double posture_stiffness = 10;   ///< 1/s², in the null space, towards the joints at the reset
  std::array<double, kArmJoints> torque_limit{80, 80, 80, 80, 80, 12, 12};  ///< N m
};

class OperationalSpaceControl {
 public:
  struct Memory {
    Vec3 goal_pos{};
    Mat3 goal_rot{};
    std::array<double, kArmJoints> posture{};
  };

  explicit OperationalSpaceControl(const OperationalSpaceSettings& settings = {}) : settings_(settings) {}

  /// The goal becomes the present pose; the posture the present one.
  void begin(Memory& memory, const ArmReading& now) const;
  /// Relative to the present position; the orientation's goal stays where the action's last three are all zero.
  void set_goal(Memory& memory, const ArmReading& now, std::span<const double> action) const;
  /// bias: forces of gravity, centrifugal and Coriolis forces that are compensated, (7). Within the limits.
  void torques(const Memory& memory, const ArmReading& now, std::span<const double> bias, std::span<double> out) const;
  /// Before the limits.
  void unlimited_torques(const Memory& memory, const ArmReading& now, std::span<const double> bias,
                         std::span<double> out) const;

 private:
  OperationalSpaceSettings settings_;
};

/// Rotation by a vector (axis times angle) as robosuite makes it: through a quaternion in single precision.
Mat3 robosuite_rotation(const Vec3& turn);

/// Replaces a (n, n) by its inverse; n at most 8. Returns false, and leaves a undefined, where it has none.
bool invert(std::span<double> a, int n);

}  // namespace cohort::tasks
