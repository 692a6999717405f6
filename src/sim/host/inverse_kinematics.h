/// Joint positions that bring links to wanted poses: damped least squares with steps of bounded length (Wampler 1986,
/// "Manipulator inverse kinematic solutions based on vector formulations and damped least-squares methods", eq. 13), begun
/// anew from a random posture between the joints' limits where a start leads nowhere.
///
///   const sim::IkTarget hand{.link = 8, .pos = {{0.4, 0, 0.3}}, .quat = {{0, 1, 0, 0}}};
///   const sim::IkResult found = sim::inverse_kinematics(scene.kinematics(), scene.info(), qpos, dofs, {&hand, 1}, {});
///   if (found.reached) use(found.qpos);
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cohort::sim {

class Kinematics;
struct ModelInfo;

struct IkTarget {
  int link = 0;
  std::array<double, 3> point{0, 0, 0};            ///< what `pos` is about, m, in the link's frame
  std::optional<std::array<double, 3>> pos{};      ///< m, in the world
  std::optional<std::array<double, 4>> quat{};     ///< w x y z, unit, of the link in the world
  std::array<bool, 3> pos_mask{true, true, true};  ///< which of the world's axes `pos` is about
  /// All three: the whole orientation. One: this axis of the link points as the same axis of `quat` does, and the link may
  /// turn about it. None: as without `quat`. Two say as much as three do.
  std::array<bool, 3> rot_mask{true, true, true};
};

struct IkSettings {
  int max_samples = 50;         ///< starts: the given posture, then random ones
  int max_iterations = 20;      ///< of each start
  double damping = 0.01;        ///< larger is slower and keeps calm near singular postures
  double pos_tolerance = 5e-4;  ///< m, of each target
  double rot_tolerance = 5e-3;  ///< rad, likewise
  double max_step = 0.5;        ///< rad, m: of each dof in an iteration
  bool respect_limits = true;   ///< positions stay between the joints' limits
  std::uint64_t seed = 0;       ///< of the random starts
  std::uint64_t id = 0;         ///< likewise, e.g. the environment
};

struct IkResult {
  std::vector<double> qpos;   ///< (nq) the best that was found; what no dof moves is as it was given
  std::vector<double> error;  ///< (targets, 6) what is left: m along the world's axes, then the rotation vector (rad)
  bool reached = false;       ///< every target within its tolerances
};

/// dofs: those that may move, hinges and slides; the others stay. The result is a function of the arguments alone.
/// Throws Error for a dof of a free or ball joint, a link or dof that there is not, and for no dof or no target.
IkResult inverse_kinematics(const Kinematics& kinematics, const ModelInfo& info, std::span<const double> qpos,
                            std::span<const int> dofs, std::span<const IkTarget> targets, const IkSettings& settings);

}  // namespace cohort::sim
