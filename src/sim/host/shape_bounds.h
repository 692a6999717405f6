/// Balls and boxes around primitive shapes.
#pragma once
#include <algorithm>
#include <cmath>

#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

struct GeomBounds {
  double radius = 0;           ///< m, of the ball around the shape's origin: MuJoCo's geom_rbound
  double half[3] = {0, 0, 0};  ///< m, half sizes of the box around it in its frame: of MuJoCo's geom_aabb
};
/// size: MuJoCo's geom_size. Of shapes without a size of their own nothing.
inline GeomBounds bounds_of_shape(int shape, const double* size) {
  const auto box = [](double x, double y, double z, double radius) { return GeomBounds{radius, {x, y, z}}; };
  switch (shape) {
    case kSphere:
      return box(size[0], size[0], size[0], size[0]);
    case kCapsule:
      return box(size[0], size[0], size[0] + size[1], size[0] + size[1]);
    case kCylinder:
      return box(size[0], size[0], size[1], std::sqrt(size[0] * size[0] + size[1] * size[1]));
    case kEllipsoid:
      return box(size[0], size[1], size[2], std::max({size[0], size[1], size[2]}));
    case kBox:
      return box(size[0], size[1], size[2], std::sqrt(size[0] * size[0] + size[1] * size[1] + size[2] * size[2]));
    default:
      return {};
  }
}

}  // namespace cohort::sim
