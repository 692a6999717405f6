/// Depth of convex shapes that overlap: the expanding polytope (van den Bergen 2001).
#pragma once
#include "sim/collide/gjk.h"

namespace cohort::sim::collide {

/// The polytope stops growing when a new point is not farther out than its face by more than this, m: MuJoCo's default
/// of the same tolerance (ccd_tolerance).
inline constexpr double kPolytopeTolerance = 1e-6;

/// Faces whose distances differ by no more are one flat part, m.
inline constexpr double kCoplanar = 1e-10;

struct Witness {
  double dist = 0;  ///< negative: depth
  Vec on1, on2;     ///< nearest, or deepest, points of the surfaces
  Vec normal;       ///< unit, from shape 1 to shape 2
};

/// The polytope of the Minkowski difference around the origin.
class Polytope {
 public:
  COHORT_DEVICE Polytope(const ConvexShape& a, const ConvexShape& b, PolytopeSpace& space) : a_(a), b_(b), p_(space) {}

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

 private:
  COHORT_SEARCH bool grow() {
    while (true) {
      int best = 0;
      for (int f = 1; f < faces_; ++f) {
        if (p_.dist[f] < p_.dist[best]) best = f;
      }
      if (faces_ == 0) return false;
      nearest_normal_ = normal(best), nearest_dist_ = p_.dist[best];
      for (int k = 0; k < 3; ++k) nearest_corner_[k] = p_.corner[best][k];
      const Support p = support(a_, b_, nearest_normal_, true);
      if (dot(p.w, nearest_normal_) - nearest_dist_ < kPolytopeTolerance || count_ >= kMostPolytopeVertices)
        return true;
      // Faces that see the new point go; the edges that one of them has alone make new faces.
      int seen_count = 0;
      for (int f = 0; f < faces_; ++f) {
        p_.seen[seen_count] = static_cast<short>(f);
        seen_count += p_.x[f] * p.w.x + p_.y[f] * p.w.y + p_.z[f] * p.w.z - p_.dist[f] > 1e-14;
      }
      // They are one piece without a hole, which has two edges more than faces; where faces are nearly coplanar,
      // rounding may see some elsewhere as well.
      int edge_count = border(seen_count);
      if (edge_count != seen_count + 2) {
        seen_count = piece_around(best, seen_count);
        edge_count = border(seen_count);
        if (edge_count != seen_count + 2) return true;  // the nearest face is known as well as it can be
      }
      while (seen_count > 0) remove(p_.seen[--seen_count]);
      const int index = add(p);
      for (int e = 0; e < edge_count; ++e) {
        if (!attach(p_.edge[e][0], p_.edge[e][1], index)) return true;
      }
    }
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
  int nearest_corner_[3];
};

}  // namespace cohort::sim::collide
