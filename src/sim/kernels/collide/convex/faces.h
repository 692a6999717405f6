/// Shapes that lie on each other: the contacts of two faces, or of an edge and a face, that face each other to within
/// five degrees (Sutherland and Hodgman 1974 for the clipping), as MuJoCo makes them of a deepest point. Of several
/// pairs of faces there, those of rounded meshes, the pair that faces each other most counts, as in MuJoCo 4.0.1.
#pragma once
#include "sim/kernels/collide/convex/convex_shape.h"
#include "sim/kernels/collide/convex/pick_four.h"
#include "sim/kernels/collide/convex/search_space.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim::collide {

inline constexpr int kMostContacts = 8;
/// Directions that a shape's motion in single precision does not tell apart, rad.
inline constexpr double kSameNormal = 1e-5;
/// A point this much outside an edge of the clipping face, times its length, counts as inside, m^2.
inline constexpr double kInside = 1e-16;

/// Corners nearer to each other than this are one, m.
inline constexpr double kOneCorner = 1e-6;

/// A cylinder's cap counts as a polygon of so many corners.
inline constexpr int kRim = 16;

/// Cosine of k sixteenths of a turn.
COHORT_DEVICE inline double cosine(int k) {
  const double cosines[kRim / 4 + 1] = {1, 0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0};
  k &= kRim - 1;
  if (k > kRim / 2) k = kRim - k;
  return k <= kRim / 4 ? cosines[k] : -cosines[kRim / 2 - k];
}

/// The edges and faces of a box or mesh, of a cylinder (caps, and the line along its side that looks where the contact
/// is) or of a capsule (such a line).
class Features {
 public:
  /// outward: unit, from this shape to the other.
  COHORT_DEVICE Features(const ConvexShape& s, Vec outward) : s_(s) {
    if (!round()) return;
    // Of a capsule only the axis is known.
    const Vec axis = column(s.rot, 2);
    const double along = dot(axis, outward);
    upper_ = along > 0;
    steep_ = magnitude(along);
    side_ = outward - along * axis;
    side_ = (s.size.x / greater(norm(side_), 1e-12)) * side_;
  }

  COHORT_DEVICE bool round() const { return s_.shape == kCylinder || s_.shape == kCapsule; }
  COHORT_DEVICE bool known() const { return s_.shape != kMesh || s_.faces != nullptr; }
  /// How many corners the part that touches has, at most three. v: vertices of a box or mesh; the different ones come
  /// to the front.
  COHORT_DEVICE int dimension(int* v) const {
    if (round()) {
      v[0] = kSideBelow, v[1] = kSideAbove;
      return s_.shape == kCapsule || steep_ < kAlong ? 2 : 3;
    }
    if (v[0] == v[1]) {
      if (v[0] == v[2]) return 1;
      v[1] = v[2];
      return 2;
    }
    return v[2] == v[0] || v[2] == v[1] ? 2 : 3;
  }
  COHORT_DEVICE Vec corner(int v) const {
    if (!round()) return s_.to_shared(s_.vertex(v));
    if (v >= kSideBelow) return s_.pos + side_ + (v == kSideBelow ? -s_.size.y : s_.size.y) * column(s_.rot, 2);
    const Vec local{cosine(v) * s_.size.x, cosine(v - kRim / 4) * s_.size.x, v < kRim ? s_.size.y : -s_.size.y};
    return s_.to_shared(local);
  }
  COHORT_DEVICE Vec normal(int f) const {
    if (s_.shape == kCylinder) return f == 0 ? column(s_.rot, 2) : -column(s_.rot, 2);
    if (s_.shape == kBox) {
      const Vec n = column(s_.rot, f / 2);
      return f % 2 == 0 ? n : -n;
    }
    const float* n = s_.faces[f].normal;
    return s_.along_shared({static_cast<double>(n[0]), static_cast<double>(n[1]), static_cast<double>(n[2])});
  }
  COHORT_DEVICE int face_count() const { return s_.shape == kCylinder ? 2 : s_.shape == kBox ? 6 : s_.face_count; }
  COHORT_DEVICE int corner_count(int f) const {
    return s_.shape == kCylinder ? kRim : s_.shape == kBox ? 4 : s_.faces[f].corner_count;
  }
  COHORT_DEVICE int corner_of(int f, int k) const {
    if (s_.shape == kCylinder) return f == 0 ? (k + 1) % kRim : 2 * kRim - 1 - k;
    return s_.shape == kBox ? box_corner(f, k) : s_.indices[s_.faces[f].first_corner + k];
  }
  /// The faces that have all of the vertices; at most two for an edge. A box tells by the direction when the vertices
  /// are not one edge or face; a cylinder always.
  COHORT_DEVICE int faces(const int* v, int dim, Vec outward, int* list, int* other) const {
    if (s_.shape == kCapsule) return 0;
    if (s_.shape == kCylinder) {
      list[0] = upper_ ? 0 : 1;
      return 1;
    }
    int count = faces_at(v[0], list);
    for (int k = 1; k < dim; ++k) {
      int kept = 0;
      const int others = faces_at(v[k], other);
      for (int i = 0; i < count && kept < 2; ++i) {
        int j = 0;
        while (j < others && other[j] != list[i]) ++j;
        if (j < others) list[kept++] = list[i];
      }
      count = kept;
    }
    if (dim == 3 && count > 1) count = 1;
    if (s_.shape == kBox && dim > 1 && count != (dim == 2 ? 2 : 1)) {
      count = 0;
      for (int f = 0; f < 6 && count == 0; ++f) {
        if (dot(normal(f), outward) > kFacing) list[count++] = f;
      }
    }
    return count;
  }
  /// The face that has three vertices of a box or mesh, or -1.
  COHORT_SEARCH int face_with(const int* v) const {
    return first_face(v[0], [&](int f) { return has(f, v[1]) && has(f, v[2]); });
  }
  /// A face at an edge of a box or mesh whose normal is a direction but for what single precision leaves of parallel
  /// ones, or -1.
  COHORT_SEARCH int face_along(const int* v, Vec direction) const {
    // The length of a mesh's normal is 1 to single precision only, so that a cosine does not tell.
    const auto same = [&](Vec n) {
      const Vec off = cross(n, direction);
      return dot(off, off) < kSameNormal * kSameNormal && dot(n, direction) > 0;
    };
    return first_face(v[0], [&](int f) { return has(f, v[1]) && same(normal(f)); });
  }
  /// Whether a vertex of a box or mesh, or the two of an edge, lie farther in a direction than all around them by more
  /// than `slack`: then they alone are what touches there.
  COHORT_SEARCH bool alone(const int* v, int count, Vec direction, double slack) const {
    const Vec d = s_.along_own(direction);
    for (int k = 0; k < count; ++k) {
      const double height = dot(d, s_.vertex(v[k])) - slack;
      const auto below = [&](int end) { return (count == 2 && end == v[1 - k]) || dot(d, s_.vertex(end)) < height; };
      if (!all_neighbours(v[k], below)) return false;
    }
    return true;
  }
  /// The other ends of the edges at a vertex.
  COHORT_DEVICE int neighbours(int v, int* list, int* around) const {
    if (s_.shape == kBox) {
      for (int i = 0; i < 3; ++i) list[i] = v ^ (1 << i);
      return 3;
    }
    const int count = faces_at(v, around);
    for (int i = 0; i < count; ++i) {
      const int n = corner_count(around[i]);
      int k = 0;
      while (k + 1 < n && corner_of(around[i], k) != v) ++k;
      list[i] = corner_of(around[i], k == 0 ? n - 1 : k - 1);
    }
    return count;
  }
  /// Whether ok(the other end of an edge) for all edges at a vertex of a box or mesh.
  template <class Ok>
  COHORT_DEVICE bool all_neighbours(int v, Ok ok) const {
    if (s_.shape == kBox) return ok(v ^ 1) && ok(v ^ 2) && ok(v ^ 4);
    if (s_.neighbours != nullptr) {
      const int* end = s_.neighbours + s_.neighbours[v];
      while (*end >= 0 && ok(*end)) ++end;
      return *end < 0;
    }
    for (const int* f = s_.vertex_faces + s_.vertex_faces[v]; *f >= 0; ++f) {
      // Every edge at the vertex is some face's edge towards it.
      const int n = corner_count(*f);
      int k = 0;
      while (k + 1 < n && corner_of(*f, k) != v) ++k;
      if (!ok(corner_of(*f, k == 0 ? n - 1 : k - 1))) return false;
    }
    return true;
  }

 private:
  COHORT_DEVICE bool has(int f, int vertex) const {
    const int n = corner_count(f);
    int k = 0;
    while (k < n && corner_of(f, k) != vertex) ++k;
    return k < n;
  }
  /// The first face at a vertex of a box or mesh that is wanted, or -1.
  template <class Wanted>
  COHORT_DEVICE int first_face(int v, Wanted wanted) const {
    if (s_.shape == kBox) {
      int list[3];
      faces_at(v, list);
      for (int f : list) {
        if (wanted(f)) return f;
      }
      return -1;
    }
    if (s_.faces == nullptr) return -1;
    for (const int* f = s_.vertex_faces + s_.vertex_faces[v]; *f >= 0; ++f) {
      if (wanted(*f)) return *f;
    }
    return -1;
  }
  static constexpr int kSideBelow = 2 * kRim, kSideAbove = 2 * kRim + 1;

  COHORT_DEVICE int faces_at(int v, int* list) const {
    int count = 0;
    if (s_.shape == kBox) {
      for (int i = 0; i < 3; ++i) list[count++] = 2 * i + ((v >> i) & 1 ? 0 : 1);
      return count;
    }
    for (const int* f = s_.vertex_faces + s_.vertex_faces[v]; *f >= 0 && count < kMostAround; ++f) list[count++] = *f;
    return count;
  }

  const ConvexShape& s_;
  Vec side_;           // of the round ones: from the axis to the line along the side
  bool upper_ = true;  // the direction looks to the upper cap
  double steep_ = 0;   // its part along the axis
};

/// Four times the square of a quadrilateral's area.
COHORT_DEVICE inline double area(Vec a, Vec b, Vec c, Vec d) {
  const Vec across = cross(c - a, d - b);
  return dot(across, across);
}

/// Whether two corners of a polygon are one: what cuts it at a corner leaves two there. A choice among corners would
/// take the same one twice, and leave out another.
COHORT_DEVICE inline bool is_one(Vec a, Vec b) {
  const Vec d = a - b;
  return dot(d, d) < kOneCorner * kOneCorner;
}

/// The part of a face or an edge of one shape (in space.corner[0], clockwise) that lies over a face of the other and
/// not above it by more than `reach`. stride: of the face's corners every so many count. Returns the number of points,
/// which lie in points.
COHORT_SEARCH inline int clip(const Features& shape, int face, int stride, Vec normal, double reach, FaceSpace& space,
                              int count, const Vec*& points) {
  const int edges = shape.corner_count(face) / stride;
  if (edges < 3 || edges + count > kMostCorners) return 0;
  const bool is_edge = count == 2;
  Vec* from = space.corner[0];
  Vec* to = space.corner[1];
  int begins = 0;  // of the polygon's corners
  // From the last corner on.
  const Vec first = shape.corner(shape.corner_of(face, (edges - 1) * stride));
  Vec end = first;
  // Clockwise seen from outside.
  for (int e = 0; e < edges; ++e) {
    const Vec begin = end;
    end = e + 1 == edges ? first : shape.corner(shape.corner_of(face, (edges - 2 - e) * stride));
    // Of the edge's length: only signs and quotients count.
    const Vec inwards = cross(end - begin, normal);
    double* const at = space.inside;
    int outside = 0;
    for (int i = 0; i < count; ++i) {
      at[i] = dot(from[i] - begin, inwards);
      outside += !(at[i] > -kInside);
    }
    if (outside == count) return 0;
    if (outside == 0) {
      // As most edges, it cuts nothing off: the polygon begins a corner later, as it does where an edge cuts.
      begins = begins + 1 == count ? 0 : begins + 1;
      continue;
    }
    int kept = 0;
    for (int k = 0, i = begins; k < count; ++k, i = i + 1 == count ? 0 : i + 1) {
      const int after = i + 1 == count ? 0 : i + 1;
      const Vec p = from[i], q = from[after];
      const bool p_inside = at[i] > -kInside, q_inside = at[after] > -kInside;
      if (!p_inside && !q_inside) continue;
      if (p_inside != q_inside) {
        const double along = dot(inwards, q - p);
        const double share = along != 0 ? -at[i] / along : -1;
        if (share >= 0 && share <= 1 && kept < kMostCorners) to[kept++] = p + share * (q - p);
      }
      if (q_inside && kept < kMostCorners) to[kept++] = q;
    }
    Vec* const filled = to;
    to = from, from = filled;
    count = kept, begins = 0;
  }
  int below = 0;
  for (int k = 0, i = begins; k < count; ++k, i = i + 1 == count ? 0 : i + 1) {
    if (dot(from[i] - first, normal) > reach) continue;
    if (!is_edge && below > 0 && (is_one(to[below - 1], from[i]) || is_one(to[0], from[i]))) continue;
    to[below++] = from[i];
  }
  points = to;
  return below;
}

/// True for the shapes that have flat or straight parts: boxes, cylinders, capsules, and meshes whose faces are known.
COHORT_DEVICE inline bool has_features(const ConvexShape& s) {
  return s.shape == kBox || s.shape == kCylinder || s.shape == kCapsule || (s.shape == kMesh && s.faces != nullptr);
}

/// The part of the Minkowski difference that is nearest: the vertices of both shapes that it is made of, three each,
/// and a face of a shape where they are known to be of one.
struct NearestPart {
  int vertex1[3], vertex2[3];
  int face1 = -1, face2 = -1;
  bool flat = false;  ///< of Polytope::flat_part
};

/// Contacts where the shapes' features around the deepest point meet. normal: from shape 1 to shape 2. At most
/// eight contacts, each with its own depth, at most four of more; 0: the features do not lie on each other, the deepest
/// point is the only contact.
COHORT_SEARCH inline int face_contacts(const ConvexShape& a, const ConvexShape& b, const NearestPart& part, Vec normal,
                                       double reach, QueuedContact* out, FaceSpace& space) {
  const Features first(a, normal), second(b, -normal);
  int *const f1 = space.face1, *const f2 = space.face2;
  int v1[3], v2[3];
  for (int k = 0; k < 3; ++k) v1[k] = part.vertex1[k], v2[k] = part.vertex2[k];
  const int dim1 = first.dimension(v1), dim2 = second.dimension(v2);
  int count1 = 1, count2 = 1;
  f1[0] = part.face1, f2[0] = part.face2;
  if (part.face1 < 0) count1 = first.faces(v1, dim1, normal, f1, space.other);
  if (part.face2 < 0) count2 = second.faces(v2, dim2, -normal, f2, space.other);
  // The faces, or the edge and the face, that lie on each other.
  int face1 = -1, face2 = -1, end = -1;
  double most = kFacing;
  for (int i = 0; i < count1; ++i) {
    const Vec n = first.normal(f1[i]);
    if (dot(n, normal) < kTowards) continue;
    for (int j = 0; j < count2; ++j) {
      const double facing = -dot(n, second.normal(f2[j]));
      if (facing > most) most = facing + kFacesAlike, face1 = f1[i], face2 = f2[j];
    }
  }
  const auto edge_on_face = [&](const Features& edges, const int* v, int dim, const Features& faces, const int* f,
                                int count, Vec outward, int& face) {
    int* const ends = space.end;
    ends[0] = v[1];
    const int edge_count = dim == 2 ? 1 : edges.neighbours(v[0], ends, space.around);
    const Vec from = edges.corner(v[0]);
    for (int j = 0; j < edge_count; ++j) put(space.along[j], edges.corner(ends[j]) - from);
    for (int i = 0; i < count && face < 0; ++i) {
      const Vec n = faces.normal(f[i]);
      if (dot(n, outward) < kTowards) continue;
      for (int j = 0; j < edge_count && face < 0; ++j) {
        const Vec along = vec(space.along[j]);
        const double rise = dot(along, n);
        if (rise * rise < kAlong * kAlong * dot(along, along)) face = f[i], end = ends[j];
      }
    }
  };
  bool edge1 = false;
  if (face1 < 0) {
    edge1 = dim1 < 3 && dim1 <= dim2;
    if (edge1) {
      edge_on_face(first, v1, dim1, second, f2, count2, -normal, face2);
    } else if (dim2 < 3) {
      edge_on_face(second, v2, dim2, first, f1, count1, normal, face1);
    }
    if (end < 0) return 0;
  }
  const Features& region = edge1 ? second : first;
  const int region_face = edge1 ? face2 : face1;
  // Of faces that have too many corners together, every second, third, ... corner counts.
  const int all = end >= 0 ? 2 : second.corner_count(face2), of_region = region.corner_count(region_face);
  const bool thinned = all + of_region > kMostCorners;
  const auto stride_of = [&](int corners) { return thinned ? (2 * corners + kMostCorners - 1) / kMostCorners : 1; };
  // What is clipped: the edge, or the second shape's face, clockwise.
  int count = 2;
  const Features& clipped = edge1 ? first : second;
  if (end >= 0) {
    space.corner[0][0] = clipped.corner(edge1 ? v1[0] : v2[0]);
    space.corner[0][1] = clipped.corner(end);
  } else {
    const int stride = stride_of(all);
    count = all / stride;
    for (int k = 0; k < count; ++k) {
      space.corner[0][k] = second.corner(second.corner_of(face2, (count - 1 - k) * stride));
    }
  }
  const Vec n = region.normal(region_face);
  const Vec* point = nullptr;
  const int points = clip(region, region_face, stride_of(of_region), n, reach, space, count, point);
  if (points == 0) return 0;
  int picked[kMostContacts], contacts = points < kMostContacts ? points : kMostContacts;
  for (int i = 0; i < contacts; ++i) picked[i] = i;
  if (points > kFewContacts) {
    contacts = kFewContacts;
    pick_four(points, picked, [&](int p, int q, int r, int s) { return area(point[p], point[q], point[r], point[s]); });
  } else if (end >= 0 && points > 2) {
    // An edge has two ends.
    contacts = 2;
    double farthest = -1;
    for (int i = 0; i < points; ++i) {
      for (int j = i + 1; j < points; ++j) {
        const Vec d = point[j] - point[i];
        if (dot(d, d) > farthest) farthest = dot(d, d), picked[0] = i, picked[1] = j;
      }
    }
  }
  // Two faces meet along the second's normal, an edge and a face along the face's. A point of the one is taken to the
  // other along that one's normal; what it is deep is measured along the contact's.
  const Vec outward = end >= 0 ? n : -second.normal(face2);
  const double share = dot(n, outward);
  const Vec corner = region.corner(region.corner_of(region_face, 0));
  for (int i = 0; i < contacts; ++i) {
    const Vec p = point[picked[i]];
    const double height = dot(p - corner, n);
    out[i].dist = share * height;
    put(out[i].pos, p - height * n + (0.5 * out[i].dist) * outward);
    put(out[i].normal, edge1 ? -outward : outward);
  }
  return contacts;
}

}  // namespace cohort::sim::collide
