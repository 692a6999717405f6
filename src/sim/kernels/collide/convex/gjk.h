/// Distance of convex shapes: Gilbert, Johnson and Keerthi 1988.
#pragma once
#include "sim/kernels/collide/convex/convex_shape.h"
#include "sim/kernels/collide/convex/search_space.h"

namespace cohort::sim::collide {

/// Distances below this count as touching, m.
inline constexpr double kTouching = 1e-9;
inline constexpr int kGjkSteps = 100;
/// The search ends when the squared distance is known to this share, and looks out for rounding from kGjkClose on.
inline constexpr double kGjkTolerance = 1e-11, kGjkClose = 1e-4;

/// Barycentric weights of the point of a triangle nearest to the origin (Ericson 2005, section 5.1.5).
COHORT_SEARCH inline void nearest_on_triangle(Vec a, Vec b, Vec c, double* w) {
  const Vec ab = b - a, ac = c - a;
  const double d1 = -dot(ab, a), d2 = -dot(ac, a), d3 = -dot(ab, b), d4 = -dot(ac, b), d5 = -dot(ab, c),
               d6 = -dot(ac, c);
  w[0] = w[1] = w[2] = 0;
  if (d1 <= 0 && d2 <= 0) {
    w[0] = 1;
    return;
  }
  if (d3 >= 0 && d4 <= d3) {
    w[1] = 1;
    return;
  }
  const double vc = d1 * d4 - d3 * d2;
  if (vc <= 0 && d1 >= 0 && d3 <= 0) {
    w[1] = d1 / (d1 - d3), w[0] = 1 - w[1];
    return;
  }
  if (d6 >= 0 && d5 <= d6) {
    w[2] = 1;
    return;
  }
  const double vb = d5 * d2 - d1 * d6;
  if (vb <= 0 && d2 >= 0 && d6 <= 0) {
    w[2] = d2 / (d2 - d6), w[0] = 1 - w[2];
    return;
  }
  const double va = d3 * d6 - d5 * d4;
  if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
    w[2] = (d4 - d3) / ((d4 - d3) + (d5 - d6)), w[1] = 1 - w[2];
    return;
  }
  const double inverse = 1 / (va + vb + vc);
  w[1] = vb * inverse, w[2] = vc * inverse, w[0] = 1 - w[1] - w[2];
}

/// Of the Minkowski difference; with_radius: of the whole shapes, not of their cores.
COHORT_SEARCH inline Support support(const ConvexShape& a, const ConvexShape& b, Vec d, bool with_radius) {
  Support s;
  s.a = a.support(d, s.vertex1);
  s.b = b.support(-d, s.vertex2);
  if (with_radius) {
    const double length = norm(d);
    if (length > 0) s.a = s.a + (a.radius() / length) * d, s.b = s.b - (b.radius() / length) * d;
  }
  s.w = s.a - s.b;
  return s;
}

struct Simplex {
  Support p[4];
  double weight[4];
  int count = 0;
};

/// Reduces the simplex to the face nearest to the origin and returns that point; true when the origin is inside.
COHORT_SEARCH inline bool reduce(Simplex& s, Vec& nearest) {
  double w[4] = {0, 0, 0, 0};
  const auto point = [&] {
    Vec v;
    for (int i = 0; i < s.count; ++i) v = v + w[i] * s.p[i].w;
    return v;
  };
  if (s.count == 1) {
    w[0] = 1;
  } else if (s.count == 2) {
    const Vec d = s.p[1].w - s.p[0].w;
    const double squared = dot(d, d);
    w[1] = squared > 0 ? clamp(-dot(s.p[0].w, d) / squared, 0, 1) : 0;
    w[0] = 1 - w[1];
  } else if (s.count == 3) {
    nearest_on_triangle(s.p[0].w, s.p[1].w, s.p[2].w, w);
  } else {
    const int faces[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    double best = 1e300;
    bool outside = false;
    double chosen[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; ++k) {
      const int* f = faces[k];
      const Vec a = s.p[f[0]].w, n = cross(s.p[f[1]].w - a, s.p[f[2]].w - a);
      const double origin = -dot(n, a), other = dot(n, s.p[f[3]].w - a);
      // A flat tetrahedron has no inside.
      if (origin * other > 0 && magnitude(other) > 1e-14 * (1 + norm(n))) continue;
      outside = true;
      double t[3];
      nearest_on_triangle(a, s.p[f[1]].w, s.p[f[2]].w, t);
      const Vec v = t[0] * a + t[1] * s.p[f[1]].w + t[2] * s.p[f[2]].w;
      if (dot(v, v) < best) {
        best = dot(v, v);
        chosen[f[0]] = t[0], chosen[f[1]] = t[1], chosen[f[2]] = t[2], chosen[f[3]] = 0;
      }
    }
    if (!outside) return true;
    for (int i = 0; i < 4; ++i) w[i] = chosen[i];
  }
  nearest = point();
  int kept = 0;
  for (int i = 0; i < s.count; ++i) {
    if (w[i] <= 0) continue;
    s.p[kept] = s.p[i];
    s.weight[kept++] = w[i];
  }
  s.count = kept;
  return false;
}

enum class Cores { kApart, kTouch, kFar };

/// Nearest points of the cores; whether they are apart by more than kTouching. Ends early, with kFar, when a support
/// plane shows that they are apart by more than `bound`.
COHORT_SEARCH inline Cores gjk(const ConvexShape& a, const ConvexShape& b, bool with_radius, double bound, Simplex& s,
                               Vec& nearest) {
  const auto apart = [](bool yes) { return yes ? Cores::kApart : Cores::kTouch; };
  Vec v = a.centre() - b.centre();
  if (dot(v, v) < 1e-20) v = {1, 0, 0};
  s.count = 0;
  nearest = v;
  Simplex last;
  for (int step = 0; step < kGjkSteps; ++step) {
    const Support p = support(a, b, -nearest, with_radius);
    const double squared = dot(nearest, nearest), along = dot(nearest, p.w);
    if (along > 0 && along * along > bound * bound * squared) return Cores::kFar;
    // The support plane is no nearer than the point found, to rounding.
    if (s.count > 0 && squared - along <= kGjkTolerance * squared) return Cores::kApart;
    const bool close = s.count > 0 && squared - along <= kGjkClose * squared;
    const Vec before = nearest;
    if (close) last = s;
    for (int i = 0; i < s.count; ++i) {
      const Vec d = s.p[i].w - p.w;
      if (dot(d, d) < 1e-26) return apart(squared > kTouching * kTouching);
    }
    s.p[s.count++] = p;
    if (reduce(s, nearest)) return Cores::kTouch;
    if (close && dot(nearest, nearest) >= squared) {
      // Rounding leads away from here: of a slim triangle it moves the nearest point.
      s = last, nearest = before;
      return Cores::kApart;
    }
    if (dot(nearest, nearest) <= kTouching * kTouching) return Cores::kTouch;
  }
  return apart(dot(nearest, nearest) > kTouching * kTouching);
}

}  // namespace cohort::sim::collide
