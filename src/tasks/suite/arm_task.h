/// What the suite's tasks with the arm have in common: a hand that points down and is told how to move, by differential
/// inverse kinematics and the joints' position servos.
///
/// An action is some of: dx, dy, dz (1 is kHandStep metres from where the hand is now), dyaw (1 is kYawStep radians),
/// grip (1 closes, -1 opens). The hand stays in a box above the table.
#pragma once
#include <array>
#include <vector>

#include "sim/host/kinematics.h"
#include "tasks/controllers/differential_ik.h"
#include "tasks/controllers/operational_space.h"
#include "tasks/scene_task.h"
#include "tasks/suite/arm_model.h"

namespace cohort::tasks {

inline constexpr double kHandStep = 0.03;  ///< m in a control period
inline constexpr double kYawStep = 0.25;   ///< rad

/// What of the hand an action moves.
struct HandActions {
  bool yaw = true;
  bool grip = true;
  double opening = 0;  ///< m between the fingers that are wanted, where no action moves them
};
ActionSpec hand_actions(const HandActions& actions);
inline constexpr double kQuarterTurn = 1.57079632679489661923;  ///< rad: a cube looks the same after it

/// A cube in the state.
struct CubeState {
  Vec3 pos{};
  double yaw = 0;
  Vec3 velocity{};
};
CubeState cube_state(const EnvState& now, std::size_t qpos, std::size_t qvel);

class ArmTask : public SceneTask {
 protected:
  struct Hand {
    Vec3 pos{};          ///< m, of the site grip, between the fingertips
    double yaw = 0;      ///< rad, of the hand's x axis; the fingers close along its y axis
    double opening = 0;  ///< m between the fingers
  };

  ArmTask(const TaskSettings& settings, SceneTaskSetup setup, const HandActions& actions);

  const Hand& hand(int env) const { return hands_[static_cast<std::size_t>(env)]; }
  /// Puts the arm where the hand is so, at rest, and lets the servos hold it.
  void place_hand(int env, const Vec3& pos, double yaw, double opening, Start& start);
  /// Index of a joint's first number in qpos, or qvel.
  std::size_t qpos_of(const std::string& joint) const;
  std::size_t qvel_of(const std::string& joint) const;

  void refresh(int env, const EnvState& now) override;
  void control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) override;

  /// What an expert does.
  struct Intent {
    Vec3 target{};         ///< m, of the hand
    double turn = 0;       ///< rad, still to turn
    double grip = -1;      ///< 1 closes, -1 opens
    double most_step = 1;  ///< of an action's components
  };
  /// The action towards it.
  void act(const Hand& hand, const Intent& intent, std::span<float> action) const;

  /// The fingers are around the cube and touch it.
  static bool holds(const Hand& hand, const CubeState& cube, double half_size);
  /// Takes a cube from wherever it is, carries it over `goal` (of its middle) and sets it down there, within `near` (m,
  /// across); then opens and goes up.
  static Intent pick_and_put(const Hand& hand, const CubeState& cube, const Vec3& goal, double half_size, double near);

 private:
  HandActions actions_;
  const sim::Kinematics& kinematics_;
  ArmIndices arm_;
  std::array<double, kArmJoints> arm_low_{}, arm_high_{};  ///< rad, the joints' limits
  std::array<std::size_t, kArmJoints> arm_ctrl_{};
  std::array<std::size_t, 2> finger_qpos_{}, finger_ctrl_{};
  std::array<double, 7> rest_{};
  std::vector<std::array<double, 6 * kArmJoints>> jacobians_;  ///< of the site grip
  std::vector<Mat3> rotations_;
  std::vector<Hand> hands_;
};

/// Writes a body's free joint.
void place_body(std::span<double> qpos, std::size_t address, const Vec3& pos, double yaw);

/// 0 below `from`, 1 above `to`, straight between.
double ramp(double value, double from, double to);

/// Uniform in [low, high): number i of the stream.
double between(const RandomStream& random, std::uint64_t i, double low, double high);

}  // namespace cohort::tasks
