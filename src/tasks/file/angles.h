/// Angles of task files are radians; degrees are told by their size.
#pragma once
#include <cmath>
#include <numbers>
#include <string>

#include "core/error.h"
#include "tasks/file/file_plan.h"

namespace cohort::tasks {

/// Throws Error for an angle (rad) of more than a whole turn. what: "yaw".
inline void check_angle(double angle, const std::string& what) {
  constexpr double kTurn = 2 * std::numbers::pi * 1.001;  // 6.2832 is one
  COHORT_THROW_UNLESS(std::abs(angle) <= kTurn,
                      "{} is {:g} rad, more than a whole turn: angles are radians; {:g} degrees would be {:.4g}", what,
                      angle, angle, angle * std::numbers::pi / 180);
}

inline void check_angles(const Range& range, const std::string& what) {
  check_angle(range.low, what), check_angle(range.high, what);
}

}  // namespace cohort::tasks
