#include "sim/collide/convex.h"

#include <algorithm>

#include "sim/collide/faces.h"

namespace cohort::sim::collide {

namespace {

/// Distances below this count as touching, m.
constexpr double kTouching = 1e-9;
/// The polytope stops growing when a new point is not farther out than its face by more than this, m: MuJoCo's default
/// of the same tolerance (ccd_tolerance).
constexpr double kPolytopeTolerance = 1e-6;
constexpr int kGjkSteps = 100, kMostVertices = 132, kMostFaces = 264;

/// A point of the Minkowski difference with the points it comes from, and which vertices they are.
struct Support {
  Vec w, a, b;
  int vertex1, vertex2;
};

Support support(const ConvexShape& a, const ConvexShape& b, Vec d, bool with_radius) {
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
bool reduce(Simplex& s, Vec& nearest) {
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
    for (const int* f : faces) {
      const Vec a = s.p[f[0]].w, n = cross(s.p[f[1]].w - a, s.p[f[2]].w - a);
      const double origin = -dot(n, a), other = dot(n, s.p[f[3]].w - a);
      // A flat tetrahedron has no inside.
      if (origin * other > 0 && std::abs(other) > 1e-14 * (1 + norm(n))) continue;
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
    std::copy_n(chosen, 4, w);
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
Cores gjk(const ConvexShape& a, const ConvexShape& b, bool with_radius, double bound, Simplex& s, Vec& nearest) {
  const auto apart = [](bool yes) { return yes ? Cores::kApart : Cores::kTouch; };
  Vec v = a.centre() - b.centre();
  if (dot(v, v) < 1e-20) v = {1, 0, 0};
  s.count = 0;
  nearest = v;
  for (int step = 0; step < kGjkSteps; ++step) {
    const Support p = support(a, b, -nearest, with_radius);
    const double squared = dot(nearest, nearest), along = dot(nearest, p.w);
    if (along > 0 && along * along > bound * bound * squared) return Cores::kFar;
    // The support plane is no nearer than the point found, to rounding.
    if (s.count > 0 && squared - along <= 1e-12 * squared) return Cores::kApart;
    for (int i = 0; i < s.count; ++i) {
      const Vec d = s.p[i].w - p.w;
      if (dot(d, d) < 1e-26) return apart(squared > kTouching * kTouching);
    }
    s.p[s.count++] = p;
    if (reduce(s, nearest)) return Cores::kTouch;
    if (dot(nearest, nearest) <= kTouching * kTouching) return Cores::kTouch;
  }
  return apart(dot(nearest, nearest) > kTouching * kTouching);
}

/// The polytope of the Minkowski difference around the origin.
class Polytope {
 public:
  Polytope(const ConvexShape& a, const ConvexShape& b)
      : a_(a), b_(b) {}  // NOLINT: the numbers are written before they are read

  bool start(const Simplex& s) {
    count_ = 0;
    for (int i = 0; i < s.count; ++i) add(s.p[i]);
    // From a point, segment or triangle to a tetrahedron with volume.
    const Vec axes[6] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    if (count_ == 1) {
      for (const Vec& d : axes) {
        if (count_ == 1) try_point(d, [&](Vec w) { return norm(w - vertex_[0].w); });
      }
    }
    if (count_ == 2) {
      const Vec along = vertex_[1].w - vertex_[0].w;
      for (const Vec& d : axes) {
        const Vec side = cross(along, d);
        if (count_ == 2 && norm(side) > 1e-12) {
          try_point(side, [&](Vec w) { return norm(cross(w - vertex_[0].w, along)) / norm(along); });
        }
      }
    }
    if (count_ == 3) {
      const Vec n = cross(vertex_[1].w - vertex_[0].w, vertex_[2].w - vertex_[0].w);
      const double area = norm(n);
      if (area < 1e-16) return false;
      for (double side : {1.0, -1.0}) {
        if (count_ == 3) {
          try_point(side * n, [&](Vec w) { return std::abs(dot(n, w - vertex_[0].w)) / area; });
        }
      }
    }
    if (count_ < 4) return false;
    const int corners[4][3] = {{0, 1, 2}, {0, 3, 1}, {0, 2, 3}, {1, 3, 2}};
    for (const int* c : corners) attach(c[0], c[1], c[2]);
    // Normals point away from the tetrahedron's middle.
    const Vec middle = 0.25 * (vertex_[0].w + vertex_[1].w + vertex_[2].w + vertex_[3].w);
    for (int f = 0; f < faces_; ++f) {
      if (dot(normal(f), vertex_[corner_[f][0]].w - middle) < 0) {
        std::swap(corner_[f][1], corner_[f][2]);
        x_[f] = -x_[f], y_[f] = -y_[f], z_[f] = -z_[f];
        dist_[f] = -dist_[f];
      }
    }
    return true;
  }

  /// Finds the face nearest to the origin when no support point lies farther out. False: there is none.
  bool expand() {
    while (true) {
      int best = 0;
      for (int f = 1; f < faces_; ++f) {
        if (dist_[f] < dist_[best]) best = f;
      }
      if (faces_ == 0) return false;
      nearest_normal_ = normal(best), nearest_dist_ = dist_[best];
      std::copy_n(corner_[best], 3, nearest_corner_);
      const Support p = support(a_, b_, nearest_normal_, true);
      if (dot(p.w, nearest_normal_) - nearest_dist_ < kPolytopeTolerance || count_ >= kMostVertices) return true;
      // Faces that see the new point go; the edges that one of them has alone make new faces.
      int seen[kMostFaces], seen_count = 0;
      for (int f = 0; f < faces_; ++f) {
        seen[seen_count] = f;
        seen_count += x_[f] * p.w.x + y_[f] * p.w.y + z_[f] * p.w.z - dist_[f] > 1e-14;
      }
      int edges[3 * kMostFaces][2], edge_count = 0;
      for (int k = 0; k < seen_count; ++k) {
        const int* v = corner_[seen[k]];
        for (int from = v[2], i = 0; i < 3; from = v[i++]) {
          int e = 0;
          while (e < edge_count && (edges[e][0] != v[i] || edges[e][1] != from)) ++e;
          if (e < edge_count) {
            --edge_count;
            edges[e][0] = edges[edge_count][0], edges[e][1] = edges[edge_count][1];
          } else {
            edges[edge_count][0] = from, edges[edge_count][1] = v[i], ++edge_count;
          }
        }
      }
      if (edge_count == 0) return true;
      while (seen_count > 0) remove(seen[--seen_count]);
      const int index = add(p);
      for (int e = 0; e < edge_count; ++e) {
        if (!attach(edges[e][0], edges[e][1], index)) return true;
      }
    }
  }

  /// The vertices of both shapes that the nearest face is made of.
  void vertices(int* of1, int* of2) const {
    for (int k = 0; k < 3; ++k) {
      const Support& p = vertex_[nearest_corner_[k]];
      of1[k] = p.vertex1, of2[k] = p.vertex2;
    }
  }

  void witness(Witness& out) const {
    double w[3];
    const int* v = nearest_corner_;
    const Vec foot = nearest_dist_ * nearest_normal_;
    nearest_on_triangle(vertex_[v[0]].w - foot, vertex_[v[1]].w - foot, vertex_[v[2]].w - foot, w);
    out.on1 = out.on2 = {};
    for (int k = 0; k < 3; ++k) {
      out.on1 = out.on1 + w[k] * vertex_[v[k]].a;
      out.on2 = out.on2 + w[k] * vertex_[v[k]].b;
    }
    out.dist = -std::max(0.0, nearest_dist_);
    out.normal = nearest_normal_;
  }

 private:
  int add(const Support& p) {
    vertex_[count_] = p;
    return count_++;
  }
  template <class Spread>
  void try_point(Vec direction, Spread spread) {
    const Support p = support(a_, b_, direction, true);
    if (spread(p.w) > 1e-10) add(p);
  }
  Vec normal(int f) const { return {x_[f], y_[f], z_[f]}; }
  /// The last face takes its place.
  void remove(int f) {
    --faces_;
    x_[f] = x_[faces_], y_[f] = y_[faces_], z_[f] = z_[faces_], dist_[f] = dist_[faces_];
    std::copy_n(corner_[faces_], 3, corner_[f]);
  }
  /// False when there is no room. A face without area is never the nearest.
  bool attach(int i, int j, int k) {
    if (faces_ == kMostFaces) return false;
    Vec n = cross(vertex_[j].w - vertex_[i].w, vertex_[k].w - vertex_[i].w);
    const double area = norm(n);
    n = (area > 1e-18 ? 1 / area : 0) * n;
    x_[faces_] = n.x, y_[faces_] = n.y, z_[faces_] = n.z;
    dist_[faces_] = area > 1e-18 ? dot(n, vertex_[i].w) : 1e300;
    int* v = corner_[faces_++];
    v[0] = i, v[1] = j, v[2] = k;
    return true;
  }

  const ConvexShape &a_, &b_;
  // A union keeps its members from being zeroed, which takes longer than most searches.
  union {
    Support vertex_[kMostVertices + 4];
  };
  // Faces: unit normals outwards, distances from the origin, corners.
  double x_[kMostFaces], y_[kMostFaces], z_[kMostFaces], dist_[kMostFaces];
  int corner_[kMostFaces][3];
  int count_ = 0, faces_ = 0;
  Vec nearest_normal_;
  double nearest_dist_ = 0;
  int nearest_corner_[3];
};

}  // namespace

void nearest_on_triangle(Vec a, Vec b, Vec c, double* w) {
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

Vec ConvexShape::vertex(int i) const {
  if (shape == kBox) return {i & 1 ? size.x : -size.x, i & 2 ? size.y : -size.y, i & 4 ? size.z : -size.z};
  const float* v = vertices + i / kVertexBlock * 3 * kVertexBlock + i % kVertexBlock;
  return {static_cast<double>(v[0]), static_cast<double>(v[kVertexBlock]), static_cast<double>(v[2 * kVertexBlock])};
}

Vec ConvexShape::support(Vec direction, int& which) const {
  which = 0;
  Vec p;
  if (shape == kPrism) {
    // The lower triangle or the upper one; a prism's frame is the one that the search is made in.
    double best = -1e300;
    for (int i = direction.z > 0 ? 3 : 0, end = i + 3; i < end; ++i) {
      const Vec corner{static_cast<double>(vertices[3 * i]), static_cast<double>(vertices[3 * i + 1]),
                       static_cast<double>(vertices[3 * i + 2])};
      const double height = dot(direction, corner);
      if (height > best) best = height, p = corner;
    }
    return p;
  }
  const Vec d = turn_back(rot, direction);
  switch (shape) {
    case kCapsule:
      p.z = d.z > 0 ? size.y : -size.y;
      break;
    case kEllipsoid: {
      const Vec scaled{d.x * size.x, d.y * size.y, d.z * size.z};
      const double length = norm(scaled);
      if (length > 0) p = {scaled.x * size.x / length, scaled.y * size.y / length, scaled.z * size.z / length};
      break;
    }
    case kCylinder: {
      const double across = std::sqrt(d.x * d.x + d.y * d.y);
      if (across > 1e-15) p.x = d.x / across * size.x, p.y = d.y / across * size.x;
      p.z = d.z > 0 ? size.y : -size.y;
      break;
    }
    case kBox:
      which = (d.x > 0 ? 1 : 0) | (d.y > 0 ? 2 : 0) | (d.z > 0 ? 4 : 0);
      p = vertex(which);
      break;
    case kMesh:
      which =
          farthest(vertices, vertex_count, static_cast<float>(d.x), static_cast<float>(d.y), static_cast<float>(d.z));
      p = vertex(which);
      break;
    default:
      break;
  }
  return turn(rot, p) + pos;
}

namespace {

/// As convex_distance; vertex1, vertex2: of both shapes, three each, those of the part of the Minkowski difference that
/// is nearest; apart: from b to a where the cores are apart, otherwise untouched.
bool search(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out, int* vertex1, int* vertex2,
            Vec& apart) {
  Simplex s;
  Vec nearest;
  const double around = a.radius() + b.radius();
  // A hair more than the reach, so that rounding decides nothing here.
  const Cores cores = gjk(a, b, false, (reach + around) * (1 + 1e-9) + kTouching, s, nearest);
  if (cores != Cores::kTouch) apart = nearest;
  if (cores == Cores::kFar) return false;
  if (cores == Cores::kApart) {
    const double distance = norm(nearest);
    out.dist = distance - around;
    if (out.dist > reach) return false;
    Vec on1, on2;
    for (int i = 0; i < s.count; ++i) on1 = on1 + s.weight[i] * s.p[i].a, on2 = on2 + s.weight[i] * s.p[i].b;
    out.normal = (-1 / distance) * nearest;
    out.on1 = on1 + a.radius() * out.normal;
    out.on2 = on2 - b.radius() * out.normal;
    for (int k = 0; k < 3; ++k) {
      const Support& p = s.p[std::min(k, s.count - 1)];
      vertex1[k] = p.vertex1, vertex2[k] = p.vertex2;
    }
    return true;
  }
  // The cores overlap: the polytope of the whole shapes.
  if (around > 0 && gjk(a, b, true, 1e300, s, nearest) != Cores::kTouch) return false;
  Polytope polytope(a, b);
  if (!polytope.start(s)) return false;
  if (!polytope.expand()) return false;
  polytope.witness(out);
  polytope.vertices(vertex1, vertex2);
  return true;
}

}  // namespace

bool convex_distance(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out) {
  int vertex1[3], vertex2[3];
  Vec apart;
  return search(a, b, reach, out, vertex1, vertex2, apart);
}

int convex_contacts(const ConvexShape& a, const ConvexShape& b, double reach, QueuedContact* out, double* apart) {
  Witness w;
  int vertex1[3], vertex2[3];
  Vec between;
  if (!search(a, b, reach, w, vertex1, vertex2, between)) {
    const double length = norm(between);
    if (length > 0) put(apart, turn_back(b.rot, (1 / length) * between));
    return 0;
  }
  if (has_features(a) && has_features(b)) {
    const int count = face_contacts(a, b, vertex1, vertex2, w.normal, reach, out);
    if (count > 0) return count;
  }
  out[0].dist = w.dist;
  put(out[0].pos, 0.5 * (w.on1 + w.on2));
  put(out[0].normal, w.normal);
  return 1;
}

}  // namespace cohort::sim::collide
