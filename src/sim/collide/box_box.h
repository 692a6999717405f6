/// Two boxes: the axis of least overlap among the faces' normals and the edges' products (Gottschalk 1996), then the
/// contacts that MuJoCo makes of it: a clipped face (Sutherland and Hodgman 1974), or the nearest points of two edges.
#pragma once
#include "sim/collide/queued.h"
#include "sim/collide/vectors.h"

namespace cohort::sim::collide {

namespace two_boxes {

/// Slack of the separation tests relative to the boxes' sizes: overlap below rounding is no separation.
inline constexpr double kSlack = 1e-13;
/// Edges with a smaller squared sine between them have no common normal.
inline constexpr double kParallel = 1e-16;
/// Components of an axis below this do not say which corner supports it.
inline constexpr double kAmbiguous = 1e-9;
/// An edge must beat a face by this share; a face nearly in its direction by the larger one.
inline constexpr double kEdgeBias = 1e-6, kAlignedBias = 0.05, kAligned = 0.99;
/// Clipped corners nearer than this, squared and relative to the face, are one.
inline constexpr double kSamePoint = 1e-14;
inline constexpr int kMostCorners = 12;

struct Boxes {
  Vec size1, size2, centre2;  // of the second box, in the first's frame
  Vec centre1;                // of the first, in the second's
  double rot[9];              // second box's axes in the first's frame
};

struct Polygon {
  Vec corner[kMostCorners];  // in the face: x, y; z: height above the reference face
  int count = 0;
  COHORT_DEVICE void add(Vec v) {
    if (count < kMostCorners) corner[count++] = v;
  }
};

/// Keeps what lies at sign * v[axis] <= limit.
COHORT_DEVICE inline Polygon clip(const Polygon& in, int axis, double sign, double limit) {
  Polygon out;
  for (int k = 0; k < in.count; ++k) {
    const Vec p = in.corner[k], q = in.corner[k + 1 == in.count ? 0 : k + 1];
    const double a = sign * p[axis] - limit, b = sign * q[axis] - limit;
    if (a <= 0) out.add(p);
    if ((a < 0 && b > 0) || (a > 0 && b < 0)) out.add(p + (a / (a - b)) * (q - p));
  }
  return out;
}

/// The direction across edge i of the first box and j of the second, in the first's frame, unnormalized.
COHORT_DEVICE inline Vec edge_axis(const Boxes& b, int i, int j) {
  Vec axis;
  axis[(i + 1) % 3] = -b.rot[3 * ((i + 2) % 3) + j];
  axis[(i + 2) % 3] = b.rot[3 * ((i + 1) % 3) + j];
  return axis;
}

/// Faces 0..2 of the first box, 3..5 of the second, 6 + 3 i + j of two edges; -1: apart.
COHORT_DEVICE inline int best_axis(const Boxes& b, double reach) {
  double most = -1e10;
  int best = -1;
  for (int k = 0; k < 6; ++k) {
    const bool first = k < 3;
    const int i = first ? k : k - 3;
    double other = 0;
    for (int r = 0; r < 3; ++r) {
      other += magnitude(first ? b.rot[3 * i + r] : b.rot[3 * r + i]) * (first ? b.size2[r] : b.size1[r]);
    }
    const double apart = magnitude(first ? b.centre2[i] : b.centre1[i]) - (first ? b.size1[i] : b.size2[i]) - other;
    if (apart > reach) return -1;
    if (apart > most) most = apart, best = k;
  }
  const double face = most;
  const int best_face = best;
  Vec best_edge;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      Vec axis = edge_axis(b, i, j);
      const double squared = dot(axis, axis);
      if (squared < kParallel) continue;
      axis = (1 / root(squared)) * axis;
      const Vec seen = turn_back(b.rot, axis);
      double apart = magnitude(dot(axis, b.centre2));
      for (int r = 0; r < 3; ++r) {
        if (r != i) apart -= b.size1[r] * magnitude(axis[r]);
        if (r != j) apart -= b.size2[r] * magnitude(seen[r]);
      }
      if (apart > reach) return -1;
      if (apart - kEdgeBias * magnitude(apart) > most && apart > face) {
        most = apart, best = 6 + 3 * i + j, best_edge = axis;
      }
    }
  }
  if (best >= 6) {
    const double along = best_face < 3 ? best_edge[best_face] : turn_back(b.rot, best_edge)[best_face - 3];
    if (magnitude(along) > kAligned && most < face + kAlignedBias * magnitude(face) + 1e-15) best = best_face;
  }
  return best;
}

COHORT_DEVICE inline int edge_contact(const Boxes& b, const QueuedShape& s1, int i, int j, double reach,
                                      QueuedContact& out) {
  Vec axis = edge_axis(b, i, j);
  axis = (1 / norm(axis)) * axis;
  if (dot(axis, b.centre2) < 0) axis = -axis;
  const Vec seen = turn_back(b.rot, axis), direction = column(b.rot, j);
  const auto doubtful = [](Vec a, int edge) {
    for (int k = 1; k < 3; ++k) {
      if (magnitude(a[(edge + k) % 3]) < kAmbiguous) return (edge + k) % 3;
    }
    return -1;
  };
  const int doubt1 = doubtful(axis, i), doubt2 = doubtful(seen, j);
  const double along = direction[i], denominator = 1 - along * along;
  Vec near1, near2;
  double nearest = 1e10;
  for (int flip1 = 0; flip1 < (doubt1 >= 0 ? 2 : 1); ++flip1) {
    for (int flip2 = 0; flip2 < (doubt2 >= 0 ? 2 : 1); ++flip2) {
      Vec corner1, corner2;
      for (int r = 0; r < 3; ++r) {
        if (r != i) corner1[r] = axis[r] >= 0 ? b.size1[r] : -b.size1[r];
        if (r != j) corner2[r] = seen[r] >= 0 ? -b.size2[r] : b.size2[r];
      }
      if (flip1) corner1[doubt1] = -corner1[doubt1];
      if (flip2) corner2[doubt2] = -corner2[doubt2];
      corner2 = turn(b.rot, corner2) + b.centre2;
      // Nearest points of corner1 + s e_i and corner2 + t direction, each clamped to its edge.
      const Vec between = corner2 - corner1;
      const double d1 = between[i], d2 = dot(direction, between);
      double s = denominator < 1e-15 ? 0 : (d1 - along * d2) / denominator;
      s = clamp(s, -b.size1[i], b.size1[i]);
      const double t = clamp(along * s - d2, -b.size2[j], b.size2[j]);
      s = clamp(d1 + along * t, -b.size1[i], b.size1[i]);
      Vec p1 = corner1;
      p1[i] += s;
      const Vec p2 = corner2 + t * direction, gap = p2 - p1;
      if (dot(gap, gap) < nearest) nearest = dot(gap, gap), near1 = p1, near2 = p2;
    }
  }
  out.dist = dot(near2 - near1, axis);
  if (out.dist > reach) return 0;
  put(out.pos, turn(s1.rot, 0.5 * (near1 + near2)) + vec(s1.pos));
  put(out.normal, turn(s1.rot, axis));
  return 1;
}

COHORT_DEVICE inline int face_contacts(const Boxes& b, const QueuedShape& s1, const QueuedShape& s2, int code,
                                       double margin, QueuedContact* out) {
  const bool first = code < 3;
  const int a = first ? code : code - 3;
  const Vec size = first ? b.size1 : b.size2, other = first ? b.size2 : b.size1;
  const Vec centre = first ? b.centre2 : b.centre1;
  const QueuedShape& reference = first ? s1 : s2;
  // Column k: axis k of the other box in the reference box's frame.
  double rot[9];
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) rot[3 * r + c] = first ? b.rot[3 * r + c] : b.rot[3 * c + r];
  }
  const double side = centre[a] >= 0 ? 1 : -1;
  int face = 0;
  for (int k = 1; k < 3; ++k) {
    if (magnitude(rot[3 * a + k]) > magnitude(rot[3 * a + face])) face = k;
  }
  const double facing = side * rot[3 * a + face] > 0 ? -1 : 1;
  const int ax = (a + 1) % 3, ay = (a + 2) % 3, u = (face + 1) % 3, v = (face + 2) % 3;
  const auto project = [&](Vec p) { return Vec{p[ax], p[ay], side * p[a]}; };
  Vec middle = project(centre + (facing * other[face]) * column(rot, face));
  middle.z -= size[a];
  const Vec du = project(other[u] * column(rot, u)), dv = project(other[v] * column(rot, v));
  Polygon polygon;
  polygon.add(middle + du + dv);
  polygon.add(middle - du + dv);
  polygon.add(middle - du - dv);
  polygon.add(middle + du - dv);
  polygon = clip(polygon, 0, 1, size[ax]);
  polygon = clip(polygon, 0, -1, size[ax]);
  polygon = clip(polygon, 1, 1, size[ay]);
  polygon = clip(polygon, 1, -1, size[ay]);
  const double same = kSamePoint * (size[ax] * size[ax] + size[ay] * size[ay]);
  const Vec normal = ((first ? side : -side)) * column(reference.rot, a);
  Vec kept[kMaxPairContacts];
  int count = 0;
  for (int k = 0; k < polygon.count && count < kMaxPairContacts; ++k) {
    const Vec p = polygon.corner[k];
    if (p.z > margin) continue;
    bool known = false;
    for (int q = 0; q < count; ++q) {
      const double dx = kept[q].x - p.x, dy = kept[q].y - p.y;
      known = known || dx * dx + dy * dy < same;
    }
    if (known) continue;
    Vec at;
    at[ax] = p.x, at[ay] = p.y, at[a] = side * (size[a] + 0.5 * p.z);
    out[count].dist = p.z;
    put(out[count].pos, turn(reference.rot, at) + vec(reference.pos));
    put(out[count].normal, normal);
    kept[count++] = p;
  }
  return count;
}

}  // namespace two_boxes

COHORT_DEVICE inline int box_box(const QueuedShape& s1, const QueuedShape& s2, double reach, QueuedContact* out) {
  using namespace two_boxes;
  Boxes b;
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    b.size1[i] = static_cast<double>(s1.geom->size[i]);
    b.size2[i] = static_cast<double>(s2.geom->size[i]);
    sum += b.size1[i] + b.size2[i];
  }
  const Vec d = vec(s2.pos) - vec(s1.pos);
  b.centre2 = turn_back(s1.rot, d);
  b.centre1 = turn_back(s2.rot, -d);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) b.rot[3 * i + j] = dot(column(s1.rot, i), column(s2.rot, j));
  }
  const double slack = reach + kSlack * sum;
  const int code = best_axis(b, slack);
  if (code < 0) return 0;
  if (code >= 6) return edge_contact(b, s1, (code - 6) / 3, (code - 6) % 3, slack, out[0]);
  return face_contacts(b, s1, s2, code, reach, out);
}

}  // namespace cohort::sim::collide
