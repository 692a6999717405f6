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

/// As height_field_top.h, which says why.
inline constexpr double kOnTop = 0.02, kLiesOnTop = 0.99985, kOneContact = 0.01, kManyCells = 4, kAsDeep = 1e-5,
                        kUpright = 0.7071068;
/// Most corners of a footprint, before a triangle's sides cut it.
inline constexpr int kMostFootprint = 64;

/// The footprint of a shape, as the cores of height_field_cores.h have it, in the field's frame; up: unit, across the
/// ground. Returns its number of corners.
COHORT_DEVICE inline int footprint(const ConvexShape& s, const Vec& up, Vec* corner) {
  const Features features(s, -up);
  if (s.shape == kCapsule) {
    corner[0] = s.to_shared({0, 0, s.size.y}), corner[1] = s.to_shared({0, 0, -s.size.y});
    return 2;
  }
  if (s.shape == kCylinder) {
    const Vec axis = column(s.rot, 2);
    const double along = dot(axis, up);
    if (magnitude(along) > kUpright) {
      const double low = along > 0 ? -s.size.y : s.size.y;
      for (int k = 0; k < 4; ++k) {
        corner[k] = s.to_shared({cosine(4 * k) * s.size.x, cosine(4 * k + 12) * s.size.x, low});
      }
      return 4;
    }
    const Vec side = up - along * axis, lowest = s.pos - (s.size.x / norm(side)) * side;
    corner[0] = lowest + s.size.y * axis, corner[1] = lowest - s.size.y * axis;
    return 2;
  }
  if (s.shape != kBox && (s.shape != kMesh || !features.known())) return 0;
  int face = 0;
  double least = 1e300;
  for (int f = 0; f < features.face_count(); ++f) {
    const double along = dot(features.normal(f), up);
    if (along < least) least = along, face = f;
  }
  const int all = features.corner_count(face), stride = (all + kMostFootprint - 1) / kMostFootprint;
  const int count = all / stride;
  for (int k = 0; k < count; ++k) corner[k] = features.corner(features.corner_of(face, k * stride));
  return count;
}

/// What of a polygon lies over a prism's triangle (its corners from 3 on; half: as height_field_convex counts them), in
/// place, which has room for three more. Returns the number of corners.
COHORT_DEVICE inline int over_top(const float* prism, int half, Vec* polygon, int count) {
  Vec cut[kMostFootprint + 3];
  for (int k = 0; k < 3; ++k) {
    const Vec from = ConvexShape::prism_corner(prism, 3 + k), to = ConvexShape::prism_corner(prism, 3 + (k + 1) % 3);
    // Counterclockwise where half is 0, seen from above.
    const double turn = half == 0 ? 1 : -1;
    const auto in = [&](const Vec& p) {
      return turn * ((to.x - from.x) * (p.y - from.y) - (to.y - from.y) * (p.x - from.x));
    };
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      const Vec &p = polygon[i], &q = polygon[i + 1 == count ? 0 : i + 1];
      const double a = in(p), b = in(q);
      if (a >= 0) cut[kept++] = p;
      if ((a >= 0) != (b >= 0) && kept < kMostFootprint + 3) cut[kept++] = p + (a / (a - b)) * (q - p);
    }
    count = kept;
    for (int i = 0; i < count; ++i) polygon[i] = cut[i];
  }
  return count;
}

/// One contact for each of the field's prisms that the shape meets or, where it lies on the prism's top, for each corner
/// of what lies there; of more than kMaxPairContacts those that spread.h chooses.
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
  SpreadChoice choice;
  choice.clear();
  const double size = static_cast<double>(shape.geom->radius);
  const bool wide = m.option.deepest_only == 0 && kManyCells * kManyCells * (dx * dx + dy * dy) > size * size;
  Vec where[SpreadChoice::kPlaces], normals[SpreadChoice::kPlaces];  // in the field's frame
  double dists[SpreadChoice::kPlaces] = {};  // nvcc does not see that a place is written before it is read
  const auto seen = [&](double dist, const Vec& p, float& deep, float& x, float& y) {
    deep = static_cast<float>(reach - dist);
    x = static_cast<float>((p.x - s.pos.x) / size), y = static_cast<float>((p.y - s.pos.y) / size);
  };
  // apart: m^2; a contact that is nearer to another one of the same direction is not kept beside it, the deeper one is.
  const auto keep = [&](double dist, const Vec& at, const Vec& normal, double apart) {
    int slot = -1;
    if (apart > 0) {
      int places[kMaxPairContacts];
      const int count = choice.kept(places);
      for (int k = 0; k < count && slot < 0; ++k) {
        const Vec off = where[places[k]] - at;
        if (dot(off, off) < apart && dot(normals[places[k]], normal) >= 0.999) slot = places[k];
      }
      if (slot >= 0 && dist >= dists[slot]) return;
    }
    if (slot < 0) {
      float deep, x, y;
      seen(dist, at, deep, x, y);
      slot = choice.offer(deep, x, y, [&](int k, float& d, float& u, float& v) { seen(dists[k], where[k], d, u, v); });
      if (slot < 0) return;
    }
    dists[slot] = dist, where[slot] = at, normals[slot] = normal;
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
        // What lies on the top needs no other contact where one of its corners there is as deep.
        up = (1 / length) * up;
        const double rounding = kAsDeep * size, top_at = dot(up, corner(0));
        double deepest = 1e300;
        const double shallowest = w.dist - kOnTop * magnitude(w.dist) - rounding;
        const bool lies =
            s.shape == kCapsule || (s.shape == kCylinder && magnitude(dot(column(s.rot, 2), up)) <= kUpright);
        const bool dips = lies && dot(up, s.support(-up)) - s.radius() - top_at < shallowest;
        if (wide && !dips && dot(up, w.normal) >= kLiesOnTop) {
          Vec polygon[kMostFootprint + 3];
          const int count = over_top(points, half, polygon, footprint(s, up, polygon));
          const auto height = [&](const Vec& p) { return dot(up, p) - s.radius() - top_at; };
          for (int k = 0; k < count; ++k) deepest = height(polygon[k]) < deepest ? height(polygon[k]) : deepest;
          if (deepest < shallowest) deepest = 1e300;
          for (int k = 0; k < count && deepest < 1e300; ++k) {
            const double dist = height(polygon[k]);
            if (dist > reach) continue;
            keep(dist, polygon[k] - (s.radius() + 0.5 * dist) * up, up, kOneContact * size * (kOneContact * size));
          }
        }
        if (deepest > w.dist + rounding) keep(w.dist, 0.5 * (w.on1 + w.on2), w.normal, 0);
      }
    }
  }
  int places[kMaxPairContacts];
  const int count = choice.kept(places);
  for (int k = 0; k < count; ++k) {
    const int at = places[k];
    out[k].dist = dists[at];
    put(out[k].pos, turn(field.rot, where[at]) + vec(field.pos));
    put(out[k].normal, turn(field.rot, normals[at]));
  }
  return count;
}

}  // namespace cohort::sim::collide
