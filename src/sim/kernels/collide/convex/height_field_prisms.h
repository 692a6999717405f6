/// A height field and a convex shape: the prisms under the field's triangles, one by one.
#pragma once
#include "sim/kernels/collide/convex/convex.h"
#include "sim/kernels/collide/convex/spread.h"

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

/// What overlaps a prism's top by no more than this share beyond the least overlap lies on it, but for rounding, in
/// terms of the bounding sphere's radius.
inline constexpr double kOnTop = 0.02, kCornerRounding = 1e-6;

/// f(corner that the shape may stand on), without the radius around it: as the cores of height_field_cores.h have them.
template <class F>
COHORT_DEVICE inline void each_corner(const ConvexShape& s, const Vec& up, F f) {
  if (s.shape == kBox || s.shape == kMesh) {
    for (int i = 0; i < s.corners(); ++i) f(s.to_shared(s.vertex(i)));
  } else if (s.shape == kCapsule) {
    f(s.to_shared({0, 0, s.size.y}));
    f(s.to_shared({0, 0, -s.size.y}));
  } else if (s.shape == kCylinder) {
    const Vec axis = column(s.rot, 2);
    const double along = dot(axis, up), cap = along > 0 ? -s.size.y : s.size.y;
    Vec side = up - along * axis;
    const double length = norm(side);
    side = length > 1e-6 ? (-s.size.x / length) * side : s.size.x * column(s.rot, 0);
    const Vec beside = 0.8660254037844386 * cross(axis, side);
    f(s.pos + cap * axis + side);
    f(s.pos - cap * axis + side);
    f(s.pos + cap * axis - 0.5 * side + beside);
    f(s.pos + cap * axis - 0.5 * side - beside);
  }
}

/// Whether a point is over a prism's triangle (its corners from 3 on; half: as height_field_convex counts them). A point
/// on a side that two prisms share is over one of them.
COHORT_DEVICE inline bool over_top(const float* corners, int half, const Vec& p) {
  bool over = true;
  const Vec a = ConvexShape::prism_corner(corners, 3), b = ConvexShape::prism_corner(corners, 4),
            c = ConvexShape::prism_corner(corners, 5);
  const Vec* const at[3] = {&a, &b, &c};
  for (int k = 0; k < 3; ++k) {
    const Vec &from = *at[k], &to = *at[(k + 1) % 3];
    // Counterclockwise where half is 0, seen from above.
    const double left = (to.x - from.x) * (p.y - from.y) - (to.y - from.y) * (p.x - from.x);
    const double in = half == 0 ? left : -left;
    over = over && ((half == 0) == (k < 2) ? in >= 0 : in > 0);
  }
  return over;
}

/// One contact for each of the field's prisms that the shape meets, and one for each corner of a shape that lies on a
/// prism's top; of more than kMaxPairContacts those that spread.h chooses.
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
  SpreadChoice<kMaxPairContacts> choice;
  choice.clear();
  const double size = static_cast<double>(shape.geom->radius);
  // In the field's frame: where it lies, for the choice.
  Vec where[kMaxPairContacts];
  const auto seen = [&](double dist, const Vec& p, float& deep, float& x, float& y) {
    deep = static_cast<float>(reach - dist);
    x = static_cast<float>((p.x - s.pos.x) / size), y = static_cast<float>((p.y - s.pos.y) / size);
  };
  const auto keep = [&](double dist, const Vec& at, const Vec& normal) {
    float deep, x, y;
    seen(dist, at, deep, x, y);
    const int slot =
        choice.offer(deep, x, y, [&](int k, float& d, float& u, float& v) { seen(out[k].dist, where[k], d, u, v); });
    if (slot < 0) return;
    where[slot] = at;
    out[slot].dist = dist;
    put(out[slot].pos, turn(field.rot, at) + vec(field.pos));
    put(out[slot].normal, turn(field.rot, normal));
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
        if (!convex_distance(prism_of(points), s, reach, w, space)) continue;
        // What lies on the top rests on all its corners there, and needs no other contact where they are as deep.
        up = (1 / length) * up;
        const double rounding = kCornerRounding * size, top_at = dot(up, corner(0));
        const double lowest = dot(up, s.support(-up)) - s.radius() - top_at;
        double deepest = 1e300;
        if (m.option.deepest_only == 0 && lowest >= w.dist - kOnTop * magnitude(w.dist) - rounding) {
          each_corner(s, up, [&](const Vec& p) {
            const double height = dot(up, p) - s.radius() - top_at;
            if (height > reach || !over_top(points, half, p)) return;
            deepest = height < deepest ? height : deepest;
            keep(height, p - (s.radius() + 0.5 * height) * up, up);
          });
        }
        if (deepest > w.dist + rounding) keep(w.dist, 0.5 * (w.on1 + w.on2), w.normal);
      }
    }
  }
  int places[kMaxPairContacts];
  const int count = choice.kept(places);
  if (!choice.choosing()) return count;
  QueuedContact kept[kSpreadKept];
  for (int k = 0; k < count; ++k) kept[k] = out[places[k]];
  for (int k = 0; k < count; ++k) out[k] = kept[k];
  return count;
}

}  // namespace cohort::sim::collide
