/// Differential inverse kinematics as an action: joints' targets that bring a frame towards a commanded pose, by damped
/// least squares (Nakamura and Hanafusa 1986), dq = J^T (J J^T + damping^2 1)^-1 e, as Isaac Lab's and mjlab's
/// DifferentialIKAction with weights of 1. The Jacobian is that of the state at the beginning of the control step; it is
/// made of links' poses in the task's own program, so that lanes compute it for many environments at once.
#pragma once
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/host/model_info.h"
#include "tasks/file/quantities.h"

namespace cohort::tasks {

struct IkSettings {
  bool pose = true;         ///< also the frame's orientation; else its position only
  bool relative = true;     ///< the command is a change of where the frame is now
  double damping = 0.05;    ///< m, rad
  double max_change = 0.5;  ///< rad, m, of a joint in a control step
  /// Of a position, relative: the orientation (w x y z) that the frame comes back to; else it may turn.
  std::optional<std::array<double, 4>> orientation{};
  /// Of what is relative: m, the box that the frame stays in, by axis; one that is outside comes back by at most `step`.
  std::array<double, 3> low{-INFINITY, -INFINITY, -INFINITY}, high{INFINITY, INFINITY, INFINITY};
  double step = INFINITY;  ///< m, of a control step, along an axis
  /// Share of the way to `rest` (of each joint) that joints go in a control step where the frame's motion leaves it open
  /// (Liegeois 1977); 0: none.
  double posture = 0;
  std::vector<double> rest{};  ///< rad, m
  /// Numbers of a command: x y z (m); then, relative, a rotation about x y z (rad), or else a quaternion w x y z.
  int width() const { return !pose ? 3 : relative ? 6 : 7; }
};

/// Throws Error where not exactly one site, or link, matches.
sim::SiteInfo ik_frame(const sim::ModelInfo& info, const std::string& pattern, bool is_site);

/// Targets of the joints, (1, joints), within their limits. command: (1, settings.width()), in the world. Throws Error
/// for a joint that does not move the frame.
terms::Expr ik_targets(Quantities& names, const sim::SiteInfo& frame, std::span<const int> joints,
                       const IkSettings& settings, const terms::Expr& command);

}  // namespace cohort::tasks
