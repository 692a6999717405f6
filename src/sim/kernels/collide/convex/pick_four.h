/// Four of a convex polygon's corners.
#pragma once
#include "sim/kernels/lane/device.h"

namespace cohort::sim {

/// Areas that differ by less than this share are alike.
inline constexpr float kAlikeAreas = 1e-3f;

/// The corners of a large quadrilateral of a convex polygon of more than four: from every first corner the others move
/// on while the area grows, as MuJoCo picks them. area(a, b, c, d): any measure that grows with it. Of areas that are
/// alike the first stays: of a regular polygon's corners rounding would pick others in every step, and what lies on them
/// would not come to rest.
template <class Area>
COHORT_DEVICE inline void pick_four(int count, int* picked, Area area) {
  int a = 0, b = 1, c = 2, d = 3;
  const auto next = [&](int i) { return i + 1 == count ? 0 : i + 1; };
  auto most = area(a, b, c, d);
  const auto keep = [&] { picked[0] = a, picked[1] = b, picked[2] = c, picked[3] = d; };
  keep();
  const auto grows = [&](int p, int q, int r, int s) {
    const auto larger = area(p, q, r, s);
    if (larger <= most + kAlikeAreas * most) return false;
    most = larger;
    return true;
  };
  for (; a < count; ++a) {
    while (grows(a, b, c, next(d))) {
      d = next(d), keep();
      while (grows(a, b, next(c), d)) c = next(c), keep();
      while (grows(a, next(b), c, d)) b = next(b), keep();
    }
    if (b != a) continue;
    b = next(b);
    if (c != b) continue;
    c = next(c);
    if (d == c) d = next(d);
  }
}

}  // namespace cohort::sim
