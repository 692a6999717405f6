/// Differential inverse kinematics by damped least squares: the joints' change that moves a site by a given twist.
/// Nakamura and Hanafusa, "Inverse kinematic solutions with singularity robustness for robot manipulator control",
/// J. Dyn. Sys. Meas. Control 108 (1986); the redundant joints go to a rest posture in the Jacobian's null space
/// (Liegeois 1977).
#pragma once
#include <span>

namespace cohort::tasks {

struct DifferentialIkSettings {
  double damping = 0.02;   ///< m or rad; larger: slower near singular postures, less motion of the joints
  double posture = 0.1;    ///< share of the way to the rest posture in a call
  double most_turn = 0.5;  ///< rad, of a joint in a call; all are shortened together
};

inline constexpr int kMostArmDofs = 8;

/// jacobian: (6, stride) row-major, of which the first `joints` columns are used; error: linear then angular, in the
/// world; change and posture_error (rest posture less present joints): (joints). joints: at most kMostArmDofs.
void differential_ik(const DifferentialIkSettings& settings, std::span<const double> jacobian, int stride, int joints,
                     std::span<const double, 6> error, std::span<const double> posture_error, std::span<double> change);

/// Solves a x = b in place of b by Cholesky's factors; a: (n, n) symmetric positive definite, destroyed; b: (n, m)
/// row-major. Returns false, and leaves b, where a is not.
bool solve_positive(std::span<double> a, int n, std::span<double> b, int m);

}  // namespace cohort::tasks
