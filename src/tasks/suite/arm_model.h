/// The robot of the suite, library/arm.xml: an arm of seven joints on a table, with a parallel gripper, as MJCF. Spheres,
/// capsules and boxes only; of the arm only hand and fingers touch anything.
///
/// The table's top is the plane z = 0, the arm stands at the origin and works around (0.5, 0, 0). Joints j1 ... j7 turn
/// about z, y, z, y, z, y, z of an arm that is stretched upward; the hand closes along its y axis, and points along its
/// z axis. Cameras: front (looks at the table from the far side), side, wrist (on the hand).
#pragma once
#include <array>
#include <string>

#include "core/vec3.h"

namespace cohort::tasks {

inline constexpr double kControlPeriod = 0.05;   ///< s
inline constexpr double kLargestOpening = 0.08;  ///< m between the fingers
inline constexpr double kArmDown = 3.14159265358979323846;

/// What a task adds to the robot and its table.
struct ArmScene {
  std::string name;      ///< of the model
  std::string bodies;    ///< of <worldbody>
  std::string assets{};  ///< of <asset>
  std::string rest{};    ///< further sections of the file
};
/// MJCF's text. Materials for bodies: red, green, blue, wood, steel, dark, goal.
std::string arm_mjcf(const ArmScene& scene);

/// A cube that moves freely: its body and joint are called `name`.
std::string cube_mjcf(const std::string& name, const std::string& material, double half_size);
/// A flat disc that marks a place and touches nothing; its pose is set by the environment (a mocap body).
std::string marker_mjcf(const std::string& name, double radius);

/// Joints of a hand that points down, above (x, 0, z) and turned by no yaw.
std::array<double, 7> arm_posture(double x, double z);

}  // namespace cohort::tasks
