/// A height field and a convex shape: the prisms under the field's triangles, one by one.
#pragma once
#include "sim/kernels/collide/convex/convex.h"

namespace cohort::sim::collide {

/// The prism that stands on the lower three of its corners, in the frame that the search is made in.
COHORT_DEVICE inline ConvexShape prism_of(const float* corners) {
  ConvexShape prism;
  prism.shape = kPrism;
  for (int i = 0; i < 9; ++i) prism.rot[i] = i % 4 == 0 ? 1 : 0;
  prism.vertices = corners;
  // The search begins between the middles: a prism's frame is the field's.
  const auto top = [&](int k) { return ConvexShape::prism_corner(corners, 3 + k); };
  prism.middle = (1.0 / 3) * (top(0) + top(1) + top(2));
  return prism;
}

/// As cohort::sim::prism_and_shape.
COHORT_DEVICE inline bool prism_and_shape(const ModelView& m, const float* corners, const QueuedShape& shape,
                                          float reach, FarthestVertex farthest, float* out, SearchSpace& space) {
  Witness w;
  if (!convex_distance(prism_of(corners), convex_shape(m, shape, farthest), static_cast<double>(reach), w, space)) {
    return false;
  }
  out[0] = static_cast<float>(w.dist);
  for (int i = 0; i < 3; ++i) {
    out[1 + i] = static_cast<float>(0.5 * (w.on1[i] + w.on2[i]));
    out[4 + i] = static_cast<float>(w.normal[i]);
  }
  return true;
}

/// One contact for each of the field's prisms that the shape meets; the deepest kMaxPairContacts of them.
COHORT_SEARCH inline int height_field_convex(const ModelView& m, const QueuedShape& field, const QueuedShape& shape,
                                             double reach, FarthestVertex farthest, QueuedContact* out,
                                             SearchSpace& space) {
  const HeightFieldRecord& h = m.height_field[field.geom->data];
  const double width = static_cast<double>(h.size[0]), depth = static_cast<double>(h.size[1]),
               top = static_cast<double>(h.size[2]), bottom = static_cast<double>(h.size[3]);
  // The shape in the field's frame, and its box there.
  ConvexShape s = convex_shape(m, shape, farthest);
  s.pos = turn_back(field.rot, vec(shape.pos) - vec(field.pos));
  for (int i = 0; i < 3; ++i) {
    const Vec c = turn_back(field.rot, column(s.rot, i));
    for (int r = 0; r < 3; ++r) s.rot[3 * r + i] = c[r];
  }
  const double around = static_cast<double>(shape.geom->radius) + reach;
  if (magnitude(s.pos.x) > width + around || magnitude(s.pos.y) > depth + around || s.pos.z > top + around ||
      s.pos.z < -bottom - around) {
    return 0;
  }
  Vec lower, upper;
  for (int i = 0; i < 3; ++i) {
    Vec d;
    d[i] = 1;
    upper[i] = s.support(d)[i] + s.radius();
    lower[i] = s.support(-d)[i] - s.radius();
  }
  if (lower.x - reach > width || upper.x + reach < -width || lower.y - reach > depth || upper.y + reach < -depth ||
      lower.z - reach > top || upper.z + reach < -bottom) {
    return 0;
  }
  const auto cell = [](double x, double half, int n, bool up) {
    const double at = (x + half) / (2 * half) * (n - 1);
    const int i = static_cast<int>(clamp(up ? ::ceil(at) : ::floor(at), -1, n));
    return i < 0 ? 0 : i < n ? i : n - 1;
  };
  const int c0 = cell(lower.x - reach, width, h.cols, false), c1 = cell(upper.x + reach, width, h.cols, true);
  const int r0 = cell(lower.y - reach, depth, h.rows, false), r1 = cell(upper.y + reach, depth, h.rows, true);
  const double dx = 2 * width / (h.cols - 1), dy = 2 * depth / (h.rows - 1);
  // Across the cells' diagonals, which are parallel: from where to where the shape lies, with room for rounding of the
  // corners.
  const Vec across{-dy, dx, 0};
  const double room = norm(across) * (s.radius() + reach + 1e-6 * (width + depth));
  const double least = dot(across, s.support(-across)) - room, most = dot(across, s.support(across)) + room;
  int count = 0;
  const auto keep = [&](const Witness& w) {
    int slot = count;
    if (count == kMaxPairContacts) {
      // The shallowest makes room for a deeper one.
      slot = 0;
      for (int k = 1; k < count; ++k) {
        if (out[k].dist > out[slot].dist) slot = k;
      }
      if (out[slot].dist <= w.dist) return;
    } else {
      ++count;
    }
    out[slot].dist = w.dist;
    put(out[slot].pos, turn(field.rot, 0.5 * (w.on1 + w.on2)) + vec(field.pos));
    put(out[slot].normal, turn(field.rot, w.normal));
  };
  for (int r = r0; r < r1; ++r) {
    for (int c = c0; c < c1; ++c) {
      // Two triangles of a cell, each over three of its corners.
      const int corners[2][3][2] = {{{r + 1, c}, {r, c}, {r + 1, c + 1}}, {{r, c}, {r + 1, c + 1}, {r, c + 1}}};
      const double diagonal = across.x * (dx * c - width) + across.y * (dy * r - depth);
      for (int half = 0; half < 2; ++half) {
        const auto& triangle = corners[half];
        // The first triangle lies on the diagonal's far side, the second on its near side.
        if (half == 0 ? most < diagonal : least > diagonal) continue;
        float points[18];
        double highest = -1e300;
        for (int k = 0; k < 3; ++k) {
          const double z = static_cast<double>(m.height[h.first + triangle[k][0] * h.cols + triangle[k][1]]) * top;
          highest = greater(highest, z);
          const float x = static_cast<float>(dx * triangle[k][1] - width);
          const float y = static_cast<float>(dy * triangle[k][0] - depth);
          points[3 * k] = points[9 + 3 * k] = x;
          points[3 * k + 1] = points[9 + 3 * k + 1] = y;
          points[3 * k + 2] = static_cast<float>(-bottom);
          points[9 + 3 * k + 2] = static_cast<float>(z);
        }
        if (highest + reach < lower.z) continue;
        // The prism lies below the plane of its triangle.
        const auto corner = [&](int k) { return ConvexShape::prism_corner(points, 3 + k); };
        Vec up = cross(corner(1) - corner(0), corner(2) - corner(0));
        if (up.z < 0) up = -up;
        const double length = norm(up);
        if (dot(up, s.support(-up) - corner(0)) > (s.radius() + reach) * length * (1 + 1e-9)) continue;
        Witness w;
        if (convex_distance(prism_of(points), s, reach, w, space)) keep(w);
      }
    }
  }
  return count;
}

}  // namespace cohort::sim::collide
