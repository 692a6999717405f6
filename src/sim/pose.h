/// Where something is.
#pragma once
#include <array>

namespace cohort::sim {

struct Pose {
  std::array<double, 3> pos{0, 0, 0};      ///< m
  std::array<double, 4> quat{1, 0, 0, 0};  ///< w, x, y, z
};

}  // namespace cohort::sim
