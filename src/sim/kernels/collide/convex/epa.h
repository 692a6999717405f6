/// Depth of convex shapes that overlap: the expanding polytope (van den Bergen 2001).
#pragma once
#include "sim/kernels/collide/convex/faces.h"
#include "sim/kernels/collide/convex/gjk.h"

namespace cohort::sim::collide {

/// The polytope stops growing when a new point is not farther out than its face by more than this, m: MuJoCo's default
/// of the same tolerance (ccd_tolerance). Polytopes' faces are found exactly.
inline constexpr double kPolytopeTolerance = 1e-6;

/// Faces whose distances differ by no more are one flat part, m.
inline constexpr double kCoplanar = 1e-10;

/// What does not lie farther below a flat part of the difference belongs to it, m: as far as single precision tells
/// places of a tenth of a meter.
inline constexpr double kFlat = 1e-8;

struct Witness {
  double dist = 0;  ///< negative: depth
  Vec on1, on2;     ///< nearest, or deepest, points of the surfaces
  Vec normal;       ///< unit, from shape 1 to shape 2
};

/// A face of the Minkowski difference of two polytopes: a face of one and a vertex of the other (edge2[0] or edge1[0]),
/// or an edge of each, by its vertices in rising order.
struct DifferenceFace {
  int face1 = -1, face2 = -1;
  int edge1[2] = {-1, -1}, edge2[2] = {-1, -1};
  COHORT_DEVICE bool operator==(const DifferenceFace& o) const {
    return face1 == o.face1 && face2 == o.face2 && edge1[0] == o.edge1[0] && edge1[1] == o.edge1[1] &&
           edge2[0] == o.edge2[0] && edge2[1] == o.edge2[1];
  }
};

/// Edges with a smaller sine between them, and triangles as narrow, have no direction across them.
inline constexpr double kLeastSine = 1e-3;

/// The vertices of a box or mesh that lie farthest in a direction, to within kFlat.
struct FlatVertices {
  static constexpr int kMost = 16;
  int vertex[kMost], count = 0;
  double area = 0;  ///< of `corners`, m^2, twice

  /// False: there are more.
  COHORT_SEARCH bool find(const ConvexShape& s, Vec direction) {
    const Vec d = s.along_own(direction);
    int nearly;
    s.support(direction, nearly);  // in single precision
    double farthest = dot(d, s.vertex(nearly)), height[kMost];
    const auto look = [&](int v) {
      const double at = dot(d, s.vertex(v));
      if (!(at > farthest - kFlat)) return true;
      for (int i = 0; i < count; ++i) {
        if (vertex[i] == v) return true;
      }
      if (count == kMost) return false;
      if (at > farthest) farthest = at;
      // In rising order.
      int i = count++;
      for (; i > 0 && vertex[i - 1] > v; --i) vertex[i] = vertex[i - 1], height[i] = height[i - 1];
      vertex[i] = v, height[i] = at;
      return true;
    };
    if (s.known_neighbours()) {
      // Edges lead from each of them to a farther one that is one of them, too.
      const Features around(s, {});
      int done[kMost], looked_at = 0;
      if (!look(nearly)) return false;
      for (bool grows = true; grows;) {
        grows = false;
        for (int i = 0; i < count && !grows; ++i) {
          const int v = vertex[i];
          int k = 0;
          while (k < looked_at && done[k] != v) ++k;
          if (k < looked_at) continue;
          done[looked_at++] = v, grows = true;
          if (!around.all_neighbours(v, look)) return false;
        }
      }
    } else {
      for (int v = 0; v < s.corners(); ++v) {
        if (!look(v)) return false;
      }
    }
    const int all = count;
    count = 0;
    for (int i = 0; i < all; ++i) {
      if (height[i] > farthest - kFlat) vertex[count++] = vertex[i];
    }
    return true;
  }

  /// Of the vertices the three that make the largest triangle, the two that are farthest apart, or the only one: their
  /// number, and the last of them as often as there are fewer than three. Depends on the vertices alone.
  COHORT_SEARCH int corners(const ConvexShape& s, int* corner) {
    int ends[2] = {vertex[0], vertex[0]};
    double longest = 0, largest = 0;
    corner[0] = corner[1] = corner[2] = vertex[0];
    for (int i = 0; i < count; ++i) {
      const Vec from = s.vertex(vertex[i]);
      for (int j = i + 1; j < count; ++j) {
        const Vec first = s.vertex(vertex[j]) - from;
        if (dot(first, first) > longest) longest = dot(first, first), ends[0] = vertex[i], ends[1] = vertex[j];
        for (int k = j + 1; k < count; ++k) {
          const Vec across = cross(first, s.vertex(vertex[k]) - from);
          if (!(dot(across, across) > largest)) continue;
          largest = dot(across, across), corner[0] = vertex[i], corner[1] = vertex[j], corner[2] = vertex[k];
        }
      }
    }
    area = root(largest);
    if (area > kLeastSine * longest) return 3;
    corner[0] = ends[0], corner[1] = corner[2] = ends[1];
    return count > 1 ? 2 : 1;
  }
};

/// The polytope of the Minkowski difference around the origin.
class Polytope {
 public:
  COHORT_DEVICE Polytope(const ConvexShape& a, const ConvexShape& b, PolytopeSpace& space) : a_(a), b_(b), p_(space) {
    const auto flat = [](const ConvexShape& s) { return s.shape == kBox || s.shape == kMesh; };
    flat_ = flat(a) && flat(b);
  }

  COHORT_SEARCH bool start(const Simplex& s) {
    count_ = 0;
    for (int i = 0; i < s.count; ++i) add(s.p[i]);
    // From a point, segment or triangle to a tetrahedron with volume.
    const Vec axes[6] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    if (count_ == 1) {
      for (int k = 0; k < 6; ++k) {
        if (count_ == 1) try_point(axes[k], [&](Vec w) { return norm(w - p_.vertex[0].w); });
      }
    }
    if (count_ == 2) {
      const Vec along = p_.vertex[1].w - p_.vertex[0].w;
      for (int k = 0; k < 6; ++k) {
        const Vec side = cross(along, axes[k]);
        if (count_ == 2 && norm(side) > 1e-12) {
          try_point(side, [&](Vec w) { return norm(cross(w - p_.vertex[0].w, along)) / norm(along); });
        }
      }
    }
    if (count_ == 3) {
      const Vec n = cross(p_.vertex[1].w - p_.vertex[0].w, p_.vertex[2].w - p_.vertex[0].w);
      const double area = norm(n);
      if (area < 1e-16) return false;
      for (int k = 0; k < 2; ++k) {
        if (count_ == 3) {
          const double side = k == 0 ? 1 : -1;
          try_point(side * n, [&](Vec w) { return magnitude(dot(n, w - p_.vertex[0].w)) / area; });
        }
      }
    }
    if (count_ < 4) return false;
    make_tetrahedron();
    return true;
  }

  /// Finds the face nearest to the origin when no support point lies farther out. False: there is none.
  COHORT_SEARCH bool expand() {
    if (!grow()) return false;
    choose_among_coplanar();
    return true;
  }

  /// The vertices of both shapes that the nearest face is made of.
  COHORT_DEVICE void vertices(int* of1, int* of2) const {
    for (int k = 0; k < 3; ++k) {
      const Support& s = p_.vertex[nearest_corner_[k]];
      of1[k] = s.vertex1, of2[k] = s.vertex2;
    }
  }

  COHORT_DEVICE void witness(Witness& out) const {
    double w[3];
    const int* v = nearest_corner_;
    const Vec foot = nearest_dist_ * nearest_normal_;
    nearest_on_triangle(p_.vertex[v[0]].w - foot, p_.vertex[v[1]].w - foot, p_.vertex[v[2]].w - foot, w);
    out.on1 = out.on2 = {};
    for (int k = 0; k < 3; ++k) {
      out.on1 = out.on1 + w[k] * p_.vertex[v[k]].a;
      out.on2 = out.on2 + w[k] * p_.vertex[v[k]].b;
    }
    out.dist = -(nearest_dist_ > 0 ? nearest_dist_ : 0.0);
    out.normal = nearest_normal_;
  }

  /// The only face of the difference that is nearest to the origin: all triangles that are as near are parts of it.
  /// False: there are several, or it is not known to be one.
  COHORT_SEARCH bool nearest_face(DifferenceFace& out) const {
    if (!flat_ || !known_ || !face_of(nearest_corner_, out)) return false;
    for (int f = 0; f < faces_; ++f) {
      if (p_.dist[f] > nearest_dist_ + kCoplanar) continue;
      const int corner[3] = {p_.corner[f][0], p_.corner[f][1], p_.corner[f][2]};
      DifferenceFace other;
      if (!face_of(corner, other) || !(other == out)) return false;
    }
    return is_whole(out);
  }
  /// Where parallel parts of both shapes touch, several faces of the difference are one flat part, of which a polytope
  /// may know any triangle: its normal and distance by the vertices of both shapes that are in it, which do not depend
  /// on the triangle. Of several parts that are as near, the nearest by these numbers. part: its corners. False: of
  /// what is nearest not all is known.
  COHORT_SEARCH bool flat_part(Witness& out, NearestPart& part) const {
    if (!flat_) return false;
    constexpr int kMostParts = 4;
    Witness found[kMostParts];
    double depth[kMostParts];
    int count = 0;
    for (int f = 0; f < faces_; ++f) {
      if (p_.dist[f] > nearest_dist_ + kCoplanar) continue;
      int in = 0;
      while (in < count && !lies_in(f, found[in].normal, depth[in])) ++in;
      if (in < count) continue;
      NearestPart own;
      if (count == kMostParts || !flat_part_along(normal(f), p_.dist[f], found[count], own)) return false;
      depth[count] = dot(found[count].normal, found[count].on1 - found[count].on2);
      if (!lies_in(f, found[count].normal, depth[count])) return false;
      found[count].dist = -depth[count];
      if (count == 0 || depth[count] < -out.dist || (depth[count] == -out.dist && comes_before(own, part))) {
        out = found[count], part = own;
      }
      ++count;
    }
    part.flat = true;
    return count > 0;
  }
  COHORT_DEVICE Vec normal() const { return nearest_normal_; }

 private:
  /// Four points.
  COHORT_SEARCH void make_tetrahedron() {
    const int corners[4][3] = {{0, 1, 2}, {0, 3, 1}, {0, 2, 3}, {1, 3, 2}};
    for (int k = 0; k < 4; ++k) attach(corners[k][0], corners[k][1], corners[k][2]);
    // Normals point away from the tetrahedron's middle.
    const Vec middle = 0.25 * (p_.vertex[0].w + p_.vertex[1].w + p_.vertex[2].w + p_.vertex[3].w);
    for (int f = 0; f < faces_; ++f) {
      if (dot(normal(f), p_.vertex[p_.corner[f][0]].w - middle) < 0) {
        const unsigned char second = p_.corner[f][1];
        p_.corner[f][1] = p_.corner[f][2], p_.corner[f][2] = second;
        p_.x[f] = -p_.x[f], p_.y[f] = -p_.y[f], p_.z[f] = -p_.z[f];
        p_.dist[f] = -p_.dist[f];
      }
    }
  }

  COHORT_DEVICE int nearest() const {
    int best = 0;
    for (int f = 1; f < faces_; ++f) {
      if (p_.dist[f] < p_.dist[best]) best = f;
    }
    return best;
  }
  COHORT_DEVICE void look_at(int face) {
    nearest_normal_ = normal(face), nearest_dist_ = p_.dist[face];
    for (int k = 0; k < 3; ++k) nearest_corner_[k] = p_.corner[face][k];
  }

  COHORT_SEARCH bool grow() {
    while (true) {
      if (faces_ == 0) return false;
      const int best = nearest();
      look_at(best);
      Support p = support(a_, b_, nearest_normal_, true);
      known_ = dot(p.w, nearest_normal_) - nearest_dist_ < (flat_ ? kCoplanar : kPolytopeTolerance);
      const int seen = known_ ? unknown_beside(best, p) : best;
      if (seen < 0 || count_ >= kMostPolytopeVertices) return true;
      if (!insert(add(p), seen)) return true;  // the nearest face is known as well as it can be
    }
  }

  /// A triangle of two polytopes that is as near as the nearest, in another plane, and beyond which the difference
  /// reaches, to p; -1: none.
  COHORT_SEARCH int unknown_beside(int best, Support& p) const {
    constexpr double kParallel = 1 - 1e-9;
    for (int f = 0; flat_ && f < faces_; ++f) {
      if (f == best || p_.dist[f] > nearest_dist_ + kCoplanar || dot(normal(f), nearest_normal_) > kParallel) continue;
      p = support(a_, b_, normal(f), true);
      if (dot(p.w, normal(f)) - p_.dist[f] >= kCoplanar) return f;
    }
    return -1;
  }

  /// Takes point `index` in: from the faces that see it new ones lead to it. nearest: the nearest face, which sees it.
  /// False where rounding tears the surface.
  COHORT_SEARCH bool insert(int index, int nearest) {
    const Support& p = p_.vertex[index];
    // Faces that see the new point go; the edges that one of them has alone make new faces.
    int seen_count = 0;
    for (int f = 0; f < faces_; ++f) {
      p_.seen[seen_count] = static_cast<short>(f);
      seen_count += p_.x[f] * p.w.x + p_.y[f] * p.w.y + p_.z[f] * p.w.z - p_.dist[f] > 1e-14;
    }
    // They are one piece without a hole, which has two edges more than faces; where faces are nearly coplanar, rounding
    // may see some elsewhere as well.
    int edge_count = border(seen_count);
    if (edge_count != seen_count + 2) {
      seen_count = piece_around(nearest, seen_count);
      edge_count = border(seen_count);
      if (edge_count != seen_count + 2) return false;
    }
    while (seen_count > 0) remove(p_.seen[--seen_count]);
    for (int e = 0; e < edge_count; ++e) {
      if (!attach(p_.edge[e][0], p_.edge[e][1], index)) return false;
    }
    return true;
  }

  /// A flat part about so far away along n, if the difference reaches no farther there; out: but for its distance.
  COHORT_SEARCH bool flat_part_along(Vec n, double distance, Witness& out, NearestPart& part) const {
    FlatVertices first, second;
    if (!first.find(a_, n) || !second.find(b_, -n)) return false;
    const Vec farthest = a_.to_shared(a_.vertex(first.vertex[0])) - b_.to_shared(b_.vertex(second.vertex[0]));
    if (!(dot(n, farthest) < distance + kFlat)) return false;
    const int dim1 = first.corners(a_, part.vertex1), dim2 = second.corners(b_, part.vertex2);
    const auto edge = [](const ConvexShape& s, const int* v, int k) {
      return s.to_shared(s.vertex(v[k])) - s.to_shared(s.vertex(v[0]));
    };
    Vec across;
    if (dim1 == 3 && (dim2 < 3 || first.area >= second.area)) {
      across = cross(edge(a_, part.vertex1, 1), edge(a_, part.vertex1, 2));
    } else if (dim2 == 3) {
      across = cross(edge(b_, part.vertex2, 1), edge(b_, part.vertex2, 2));
    } else if (dim1 == 2 && dim2 == 2) {
      const Vec edge1 = edge(a_, part.vertex1, 1), edge2 = edge(b_, part.vertex2, 1);
      across = cross(edge1, edge2);
      if (!(norm(across) > kLeastSine * norm(edge1) * norm(edge2))) return false;
    } else {
      return false;
    }
    out.normal = (dot(across, n) < 0 ? -1 / norm(across) : 1 / norm(across)) * across;
    out.on1 = a_.to_shared(a_.vertex(part.vertex1[0])), out.on2 = b_.to_shared(b_.vertex(part.vertex2[0]));
    return true;
  }
  /// Whether a triangle lies in a plane.
  COHORT_DEVICE bool lies_in(int face, Vec n, double distance) const {
    for (int k = 0; k < 3; ++k) {
      if (!(magnitude(dot(n, p_.vertex[p_.corner[face][k]].w) - distance) < kFlat)) return false;
    }
    return true;
  }
  COHORT_DEVICE static bool comes_before(const NearestPart& a, const NearestPart& b) {
    for (int k = 0; k < 3; ++k) {
      if (a.vertex1[k] != b.vertex1[k]) return a.vertex1[k] < b.vertex1[k];
    }
    for (int k = 0; k < 3; ++k) {
      if (a.vertex2[k] != b.vertex2[k]) return a.vertex2[k] < b.vertex2[k];
    }
    return false;
  }

  /// Whether what touches along a face of the difference is as small as it seems. Parallel parts of both shapes make a
  /// larger face, of which a polytope may know any triangle.
  COHORT_SEARCH bool is_whole(const DifferenceFace& face) const {
    const Features first(a_, {}), second(b_, {});
    const bool edges = face.face1 < 0 && face.face2 < 0;
    const bool whole1 = face.face1 >= 0 || first.alone(face.edge1, edges ? 2 : 1, nearest_normal_, kFlat);
    return whole1 && (face.face2 >= 0 || second.alone(face.edge2, edges ? 2 : 1, -nearest_normal_, kFlat));
  }

  /// Which face of the difference a triangle of these vertices is a part of. False: that is not clear.
  COHORT_SEARCH bool face_of(const int* corner, DifferenceFace& out) const {
    int of1[3], of2[3];
    for (int k = 0; k < 3; ++k) of1[k] = p_.vertex[corner[k]].vertex1, of2[k] = p_.vertex[corner[k]].vertex2;
    const Features first(a_, {}), second(b_, {});
    const int dim1 = first.dimension(of1), dim2 = second.dimension(of2);
    out = {};
    if (dim1 == 3 && dim2 == 1) {
      out.face1 = first.face_with(of1);
      out.edge2[0] = of2[0];
      return out.face1 >= 0;
    }
    if (dim1 == 1 && dim2 == 3) {
      out.face2 = second.face_with(of2);
      out.edge1[0] = of1[0];
      return out.face2 >= 0;
    }
    if (dim1 != 2 || dim2 != 2 || !first.known() || !second.known()) return false;
    const bool rises1 = of1[0] < of1[1], rises2 = of2[0] < of2[1];
    out.edge1[0] = of1[!rises1], out.edge1[1] = of1[rises1];
    out.edge2[0] = of2[!rises2], out.edge2[1] = of2[rises2];
    return true;
  }

  /// The edges that one of the faces in p_.seen has alone, to p_.edge; returns their number.
  COHORT_SEARCH int border(int seen_count) {
    int edge_count = 0;
    for (int k = 0; k < seen_count; ++k) {
      const unsigned char* v = p_.corner[p_.seen[k]];
      unsigned char from = v[2];
      for (int i = 0; i < 3; from = v[i++]) {
        int e = 0;
        while (e < edge_count && (p_.edge[e][0] != v[i] || p_.edge[e][1] != from)) ++e;
        if (e < edge_count) {
          --edge_count;
          p_.edge[e][0] = p_.edge[edge_count][0], p_.edge[e][1] = p_.edge[edge_count][1];
        } else {
          p_.edge[edge_count][0] = from, p_.edge[edge_count][1] = v[i], ++edge_count;
        }
      }
    }
    return edge_count;
  }
  /// Leaves those faces in p_.seen that edges connect with one of them, in their order; returns their number.
  COHORT_SEARCH int piece_around(int face, int seen_count) {
    const auto touch = [&](int f, int g) {
      int same = 0;
      for (int i = 0; i < 9; ++i) same += p_.corner[f][i / 3] == p_.corner[g][i % 3];
      return same >= 2;
    };
    // A face that belongs to the piece is marked by its complement.
    for (bool grows = true; grows;) {
      grows = false;
      for (int k = 0; k < seen_count; ++k) {
        const int f = p_.seen[k];
        if (f < 0) continue;
        bool belongs = f == face;
        for (int j = 0; j < seen_count && !belongs; ++j) belongs = p_.seen[j] < 0 && touch(f, ~p_.seen[j]);
        if (belongs) p_.seen[k] = static_cast<short>(~f), grows = true;
      }
    }
    int kept = 0;
    for (int k = 0; k < seen_count; ++k) {
      if (p_.seen[k] < 0) p_.seen[kept++] = static_cast<short>(~p_.seen[k]);
    }
    return kept;
  }
  /// A flat part of the difference may be several triangles: the one that the origin is over.
  COHORT_SEARCH void choose_among_coplanar() {
    const Vec foot = nearest_dist_ * nearest_normal_;
    double inside = -1e300;
    for (int f = 0; f < faces_; ++f) {
      if (p_.dist[f] > nearest_dist_ + kCoplanar) continue;
      const Vec a = p_.vertex[p_.corner[f][0]].w - foot, b = p_.vertex[p_.corner[f][1]].w - foot,
                c = p_.vertex[p_.corner[f][2]].w - foot, n = normal(f);
      // Twice the areas over the three sides, as shares of the whole.
      const double over_a = dot(cross(b, c), n), over_b = dot(cross(c, a), n), over_c = dot(cross(a, b), n);
      double least = over_a < over_b ? over_a : over_b;
      least = (over_c < least ? over_c : least) / (over_a + over_b + over_c);
      if (least <= inside) continue;
      inside = least;
      for (int k = 0; k < 3; ++k) nearest_corner_[k] = p_.corner[f][k];
    }
  }
  COHORT_DEVICE int add(const Support& p) {
    p_.vertex[count_] = p;
    return count_++;
  }
  template <class Spread>
  COHORT_DEVICE void try_point(Vec direction, Spread spread) {
    const Support p = support(a_, b_, direction, true);
    if (spread(p.w) > 1e-10) add(p);
  }
  COHORT_DEVICE Vec normal(int f) const { return {p_.x[f], p_.y[f], p_.z[f]}; }
  /// The last face takes its place.
  COHORT_DEVICE void remove(int f) {
    --faces_;
    p_.x[f] = p_.x[faces_], p_.y[f] = p_.y[faces_], p_.z[f] = p_.z[faces_], p_.dist[f] = p_.dist[faces_];
    for (int k = 0; k < 3; ++k) p_.corner[f][k] = p_.corner[faces_][k];
  }
  /// False when there is no room. A face without area is never the nearest.
  COHORT_SEARCH bool attach(int i, int j, int k) {
    if (faces_ == kMostPolytopeFaces) return false;
    Vec n = cross(p_.vertex[j].w - p_.vertex[i].w, p_.vertex[k].w - p_.vertex[i].w);
    const double area = norm(n);
    n = (area > 1e-18 ? 1 / area : 0) * n;
    p_.x[faces_] = n.x, p_.y[faces_] = n.y, p_.z[faces_] = n.z;
    p_.dist[faces_] = area > 1e-18 ? dot(n, p_.vertex[i].w) : 1e300;
    unsigned char* v = p_.corner[faces_++];
    v[0] = static_cast<unsigned char>(i), v[1] = static_cast<unsigned char>(j), v[2] = static_cast<unsigned char>(k);
    return true;
  }

  const ConvexShape &a_, &b_;
  PolytopeSpace& p_;
  int count_ = 0, faces_ = 0;
  Vec nearest_normal_;
  double nearest_dist_ = 0;
  bool flat_;           // both shapes are polytopes
  bool known_ = false;  // the nearest face lies on the surface
  int nearest_corner_[3];
};

}  // namespace cohort::sim::collide
