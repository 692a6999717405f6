/// A sphere and a prism of a height field, without a search.
#pragma once
#include "sim/kernels/collide/convex/epa.h"

namespace cohort::sim::collide {

/// The corners of a height field's prism: three at the bottom, three above them.
struct Prism {
  Vec corner[6];
  COHORT_DEVICE explicit Prism(const float* points) {
    for (int k = 0; k < 6; ++k) {
      corner[k] = ConvexShape::prism_corner(points, k);
    }
  }
};

/// A prism and a sphere, without a search; false when they are apart by more than `reach`.
COHORT_SEARCH inline bool sphere_prism(const float* points, Vec centre, double radius, double reach, Witness& w) {
  const int top[3] = {3, 4, 5};
  const Prism prism(points);
  const auto touch = [&](Vec on, Vec away, double apart) {
    if (apart > radius + reach) return false;
    w.dist = apart - radius;
    w.normal = away;
    w.on1 = on;
    w.on2 = centre - radius * away;
    return true;
  };
  const auto nearest_on = [&](const int* f) {
    double weight[3];
    const Vec a = prism.corner[f[0]], b = prism.corner[f[1]], c = prism.corner[f[2]];
    nearest_on_triangle(a - centre, b - centre, c - centre, weight);
    return weight[0] * a + weight[1] * b + weight[2] * c;
  };
  // Mostly the nearest point is the top's: when no corner of the bottom lies farther towards the centre.
  {
    const Vec on = nearest_on(top), d = centre - on;
    const double squared = dot(d, d);
    bool nearest = d.z > 0;
    for (int k = 0; k < 3; ++k) nearest = nearest && dot(d, prism.corner[k] - on) <= 0;
    if (nearest) {
      const double apart = root(squared);
      return touch(on, (1 / apart) * d, apart);
    }
  }
  const Vec middle = (1.0 / 6) * (prism.corner[0] + prism.corner[1] + prism.corner[2] + prism.corner[3] +
                                  prism.corner[4] + prism.corner[5]);
  // Two triangles for each of the three sides, then top and bottom.
  const int face[8][3] = {{0, 1, 4}, {0, 4, 3}, {1, 2, 5}, {1, 5, 4}, {2, 0, 3}, {2, 3, 5}, {3, 4, 5}, {0, 1, 2}};
  double farthest = -1e300;
  Vec out;
  for (int k = 0; k < 8; k += k < 6 ? 2 : 1) {  // one triangle of each side
    const Vec at = prism.corner[face[k][0]];
    Vec n = cross(prism.corner[face[k][1]] - at, prism.corner[face[k][2]] - at);
    const double length = norm(n);
    if (length < 1e-18) continue;  // a side without height
    n = (dot(n, at - middle) < 0 ? -1 / length : 1 / length) * n;
    const double beyond = dot(n, centre - at);
    if (beyond > radius + reach) return false;
    if (beyond > farthest) farthest = beyond, out = n;
  }
  // The centre is inside: out through the nearest face.
  if (farthest <= 0) return touch(centre - farthest * out, out, farthest);
  double nearest = 1e300;
  Vec on;
  for (int k = 0; k < 8; ++k) {
    const Vec at = nearest_on(face[k]), d = centre - at;
    if (dot(d, d) < nearest) nearest = dot(d, d), on = at;
  }
  const double apart = root(nearest);
  return touch(on, apart > 1e-12 ? (1 / apart) * (centre - on) : out, apart);
}

/// As cohort::sim::sphere_and_prism.
COHORT_DEVICE inline bool near_prism(const float* prism, const float* centre, float radius, float reach, float* out) {
  Witness w;
  const Vec at{static_cast<double>(centre[0]), static_cast<double>(centre[1]), static_cast<double>(centre[2])};
  if (!sphere_prism(prism, at, static_cast<double>(radius), static_cast<double>(reach), w)) return false;
  out[0] = static_cast<float>(w.dist);
  for (int i = 0; i < 3; ++i) {
    out[1 + i] = static_cast<float>(0.5 * (w.on1[i] + w.on2[i]));
    out[4 + i] = static_cast<float>(w.normal[i]);
  }
  return true;
}

}  // namespace cohort::sim::collide
