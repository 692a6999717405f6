/// A capsule and a box: one contact where the capsule's segment is nearest to the box, and a second one, chosen as
/// MuJoCo chooses it, where the segment runs along the feature that it is nearest to.
#pragma once
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/collide/convex/vectors.h"

namespace cohort::sim::collide {

namespace segment_box {

struct Segment {
  Vec centre, half;  // in the box's frame; ends at centre -+ half
  COHORT_DEVICE Vec at(double t) const { return centre + t * half; }
};

/// The feature of the box that the segment is nearest to.
struct Nearest {
  enum Kind { kNone, kFace, kEdge, kCorner } kind = kNone;
  double squared = 1e300;
  double t = 0;        // on the segment, -1 to 1
  int face = -1;       // kFace: axis beyond which the end lies; -1: inside
  int edge = -1;       // kEdge: axis of the edge
  int corner = 0;      // bits: the positive side of an axis
  double on_edge = 0;  // kEdge: -1 to 1
};

/// Sphere of radius r at c against a box, both in the box's frame; the normal points from the sphere to the box.
COHORT_DEVICE inline bool sphere_box(Vec c, double r, Vec size, double reach, Vec& pos, Vec& normal, double& dist) {
  Vec inside;
  for (int i = 0; i < 3; ++i) inside[i] = clamp(c[i], -size[i], size[i]);
  Vec d = inside - c;
  const double far = norm(d);
  if (far - r > reach) return false;
  if (far > 1e-15) {
    normal = (1 / far) * d;
    pos = 0.5 * (inside + c + r * normal);
    dist = far - r;
    return true;
  }
  // The centre is inside: out through the nearest face.
  double closest = 2 * (size.x + size.y + size.z);
  int axis = 0;
  double side = 1;
  for (int k = 0; k < 6; ++k) {
    const double way = magnitude((k % 2 ? 1 : -1) * size[k / 2] - c[k / 2]);
    if (way < closest) closest = way, axis = k / 2, side = k % 2 ? -1 : 1;
  }
  normal = {};
  normal[axis] = side;
  pos = c + (0.5 * (r - closest)) * normal;
  dist = -closest - r;
  return true;
}

COHORT_DEVICE inline Nearest nearest_feature(const Segment& s, Vec size) {
  Nearest best;
  for (int end = -1; end <= 1; end += 2) {
    const Vec p = s.at(end);
    int beyond = 0, axis = -1;
    double squared = 0;
    for (int i = 0; i < 3; ++i) {
      const double out = p[i] - clamp(p[i], -size[i], size[i]);
      if (out != 0) ++beyond, axis = i;
      squared += out * out;
    }
    if (beyond <= 1 && squared < best.squared) {
      best.kind = Nearest::kFace;
      best.squared = squared;
      best.t = end;
      best.face = axis;
    }
  }
  const double length2 = dot(s.half, s.half);
  for (int j = 0; j < 3; ++j) {
    for (int corner = 0; corner < 8; ++corner) {
      if (corner >> j & 1) continue;
      // The edge is middle + x e_j size_j, -1 <= x <= 1.
      Vec middle;
      for (int i = 0; i < 3; ++i) middle[i] = i == j ? 0 : corner >> i & 1 ? size[i] : -size[i];
      const Vec d = middle - s.centre;
      const double edge2 = size[j] * size[j], mixed = -size[j] * s.half[j];
      const double u = -size[j] * d[j], v = dot(s.half, d);
      const double det = edge2 * length2 - mixed * mixed;
      if (magnitude(det) < 1e-15) continue;
      double x = (length2 * u - mixed * v) / det, t = (edge2 * v - mixed * u) / det;
      int side = 0;  // the end of the edge at which it was last held, also when it has left it again, as in MuJoCo
      if (x > 1) {
        x = 1, side = 1, t = (v - mixed) / length2;
      } else if (x < -1) {
        x = -1, side = -1, t = (v + mixed) / length2;
      }
      if (t > 1) {
        t = 1, x = (u - mixed) / edge2;
      } else if (t < -1) {
        t = -1, x = (u + mixed) / edge2;
      }
      if (x > 1) x = 1, side = 1;
      if (x < -1) x = -1, side = -1;
      Vec gap = d - t * s.half;
      gap[j] += size[j] * x;
      if (dot(gap, gap) < best.squared - 1e-15) {
        best.kind = side == 0 ? Nearest::kEdge : Nearest::kCorner;
        best.squared = dot(gap, gap);
        best.t = t;
        best.edge = j;
        best.on_edge = x;
        best.corner = corner + (side > 0 ? 1 << j : 0);
      }
    }
  }
  return best;
}

inline constexpr double kNoSecond = -4;

/// Where the second contact is, from the first on, in units of the half segment, or kNoSecond.
/// It may be where the first is: MuJoCo counts it all the same.
COHORT_DEVICE inline double second_contact(const Segment& s, Vec size, Vec axis, const Nearest& near) {
  int rising = 0;
  for (int i = 0; i < 3; ++i) rising |= s.half[i] > 0 ? 1 << i : 0;
  const auto single = [](int bits) { return bits == 1 || bits == 2 || bits == 4; };
  const auto index = [](int bit) { return bit == 1 ? 0 : bit == 2 ? 1 : 2; };
  const auto shorten = [](double& way, double limit) {
    if (limit < way) way = limit;
  };
  const auto across = [&](int i) { return 2 * size[i] / magnitude(s.half[i]); };
  if (near.kind == Nearest::kCorner) {
    int differ = rising ^ near.corner;
    if (differ == 0 || differ == 7) return kNoSecond;  // it points towards the corner or away from it
    const double sign = single(differ) ? 1 : -1;
    if (!single(differ)) differ = 7 - differ;
    const int i = index(differ);
    if (axis[i] * axis[i] > 0.5) {
      double way = 1 - sign * near.t;
      shorten(way, across(i));
      return sign * way;
    }
    double way = 1 + sign * near.t;
    shorten(way, across((i + 1) % 3));
    shorten(way, across((i + 2) % 3));
    return -sign * way;
  }
  if (near.kind == Nearest::kEdge) {
    const int differ = (rising ^ near.corner) & ~(1 << near.edge) & 7;
    if (!single(differ)) return kNoSecond;
    const int a = (near.edge + 1) % 3, b = (near.edge + 2) % 3;
    const int steep = magnitude(axis[a]) > magnitude(axis[b]) ? a : b;  // the segment runs more along this one
    const bool up = differ >> steep & 1;
    double way = up ? 1 - near.t : 1 + near.t;
    shorten(way, across(steep));
    const bool same = ((rising >> near.edge & 1) != 0) == up;
    shorten(way, size[near.edge] * (same ? 1 - near.on_edge : 1 + near.on_edge) / magnitude(s.half[near.edge]));
    return up ? way : -way;
  }
  if (near.face < 0) return kNoSecond;
  const double inwards = near.t < 0 ? 1 : -1;
  const Vec end = s.at(near.t);
  double way = 2;
  for (int i = 0; i < 3; ++i) {
    if (i == near.face) continue;
    for (int side = 1; side >= -1; side -= 2) {
      const double limit = (side * size[i] - end[i]) / s.half[i] * inwards;
      if (limit > 0) shorten(way, limit);
    }
  }
  return inwards * way;
}

}  // namespace segment_box

COHORT_DEVICE inline int capsule_box(const QueuedShape& s1, const QueuedShape& s2, double reach, QueuedContact* out) {
  using namespace segment_box;
  const double radius = static_cast<double>(s1.geom->size[0]), length = static_cast<double>(s1.geom->size[1]);
  const Vec size{static_cast<double>(s2.geom->size[0]), static_cast<double>(s2.geom->size[1]),
                 static_cast<double>(s2.geom->size[2])};
  const Vec axis = turn_back(s2.rot, column(s1.rot, 2));
  const Segment s{turn_back(s2.rot, vec(s1.pos) - vec(s2.pos)), length * axis};
  for (int i = 0; i < 3; ++i) {
    if (magnitude(s.centre[i]) - magnitude(s.half[i]) > (size[i] + radius + reach) * (1 + 1e-9)) return 0;
  }
  const Nearest near = nearest_feature(s, size);
  if (near.kind == Nearest::kNone) return 0;
  int count = 0;
  const auto touch = [&](double t) {
    Vec pos, normal;
    QueuedContact& c = out[count];
    if (!sphere_box(s.at(t), radius, size, reach, pos, normal, c.dist)) return;
    put(c.pos, turn(s2.rot, pos) + vec(s2.pos));
    put(c.normal, turn(s2.rot, normal));
    ++count;
  };
  touch(near.t);
  const double second = second_contact(s, size, axis, near);
  if (second != kNoSecond) touch(near.t + second);
  return count;
}

}  // namespace cohort::sim::collide
