#include "sim/collide/convex.h"

#include <algorithm>

namespace cohort::sim::collide {

namespace {

/// Distances below this count as touching, m.
constexpr double kTouching = 1e-9;
/// The polytope stops growing when a new point is not farther out than its face by more than this, m: MuJoCo's default
/// of the same tolerance (ccd_tolerance).
constexpr double kPolytopeTolerance = 1e-6;
/// Meshes of fewer vertices are looked through; larger ones are climbed.
constexpr int kClimbFrom = 16;
constexpr int kGjkSteps = 100, kMostVertices = 132, kMostFaces = 264;

/// A point of the Minkowski difference with the points it comes from.
struct Support {
  Vec w, a, b;
};

Support support(const ConvexShape& a, const ConvexShape& b, Vec d, bool with_radius) {
  Support s;
  s.a = a.support(d);
  s.b = b.support(-d);
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

struct Face {
  int v[3];
  Vec normal;
  double dist;
  bool alive;
};

/// The polytope of the Minkowski difference around the origin.
class Polytope {
 public:
  Polytope(const ConvexShape& a, const ConvexShape& b) : a_(a), b_(b) {}  // NOLINT: the unions stay as they are

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
      if (dot(face_[f].normal, vertex_[face_[f].v[0]].w - middle) < 0) {
        std::swap(face_[f].v[1], face_[f].v[2]);
        face_[f].normal = -face_[f].normal;
        face_[f].dist = -face_[f].dist;
      }
    }
    return true;
  }

  /// Index of the face nearest to the origin when no support point lies farther out; -1: none was found.
  int expand() {
    int best = -1;
    while (true) {
      best = -1;
      for (int f = 0; f < faces_; ++f) {
        if (face_[f].alive && (best < 0 || face_[f].dist < face_[best].dist)) best = f;
      }
      if (best < 0) return -1;
      const Support p = support(a_, b_, face_[best].normal, true);
      if (dot(p.w, face_[best].normal) - face_[best].dist < kPolytopeTolerance || count_ >= kMostVertices) return best;
      // Faces that see the new point go; the edges that one of them has alone make new faces.
      int edges[3 * kMostFaces][2], edge_count = 0;
      for (int f = 0; f < faces_; ++f) {
        Face& face = face_[f];
        if (!face.alive || dot(face.normal, p.w - vertex_[face.v[0]].w) <= 1e-14) continue;
        face.alive = false;
        dead_[dead_count_++] = f;
        for (int k = 0; k < 3; ++k) {
          const int from = face.v[k], to = face.v[(k + 1) % 3];
          bool shared = false;
          for (int e = 0; e < edge_count && !shared; ++e) {
            if (edges[e][0] == to && edges[e][1] == from) {
              edges[e][0] = edges[edge_count - 1][0], edges[e][1] = edges[edge_count - 1][1];
              --edge_count;
              shared = true;
            }
          }
          if (!shared) edges[edge_count][0] = from, edges[edge_count][1] = to, ++edge_count;
        }
      }
      if (edge_count == 0) return best;
      const int index = add(p);
      for (int e = 0; e < edge_count; ++e) {
        if (!attach(edges[e][0], edges[e][1], index)) return best;
      }
    }
  }

  void witness(int index, Witness& out) const {
    const Face& f = face_[index];
    double w[3];
    const Vec foot = f.dist * f.normal;
    nearest_on_triangle(vertex_[f.v[0]].w - foot, vertex_[f.v[1]].w - foot, vertex_[f.v[2]].w - foot, w);
    out.on1 = out.on2 = {};
    for (int k = 0; k < 3; ++k) {
      out.on1 = out.on1 + w[k] * vertex_[f.v[k]].a;
      out.on2 = out.on2 + w[k] * vertex_[f.v[k]].b;
    }
    out.dist = -std::max(0.0, f.dist);
    out.normal = f.normal;
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
  /// False when there is no room; a face without area is left out.
  bool attach(int i, int j, int k) {
    const int at = dead_count_ > 0 ? dead_[--dead_count_] : faces_;
    if (at == kMostFaces) return false;
    Face f{{i, j, k}, cross(vertex_[j].w - vertex_[i].w, vertex_[k].w - vertex_[i].w), 0, true};
    const double area = norm(f.normal);
    f.normal = (area > 1e-18 ? 1 / area : 0) * f.normal;
    f.dist = area > 1e-18 ? dot(f.normal, vertex_[i].w) : 1e300;
    face_[at] = f;
    faces_ = std::max(faces_, at + 1);
    return true;
  }

  const ConvexShape &a_, &b_;
  // Unions keep their members from being zeroed, which takes longer than most searches.
  union {
    Support vertex_[kMostVertices + 4];
  };
  union {
    Face face_[kMostFaces];
  };
  int dead_[kMostFaces];
  int count_ = 0, faces_ = 0, dead_count_ = 0;
};

bool same_place(Vec a, Vec b) {
  const Vec d = a - b;
  return dot(d, d) < 1e-24;
}

/// Turns a shape by R about a point.
ConvexShape turned(const ConvexShape& s, const double* R, Vec about) {
  ConvexShape out = s;
  for (int i = 0; i < 3; ++i) {
    const Vec c = turn(R, column(s.rot, i));
    for (int r = 0; r < 3; ++r) out.rot[3 * r + i] = c[r];
  }
  out.pos = about + turn(R, s.pos - about);
  return out;
}

/// Rotation by a small angle about a unit axis (Rodrigues).
void rotation(double* R, Vec axis, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) R[3 * i + j] = (i == j ? c : 0) + (1 - c) * axis[i] * axis[j];
  }
  R[1] -= s * axis.z, R[2] += s * axis.y, R[3] += s * axis.z;
  R[5] -= s * axis.x, R[6] -= s * axis.y, R[7] += s * axis.x;
}

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

Vec ConvexShape::support(Vec direction) const {
  const Vec d = turn_back(rot, direction);
  Vec p;
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
      p = {d.x > 0 ? size.x : -size.x, d.y > 0 ? size.y : -size.y, d.z > 0 ? size.z : -size.z};
      break;
    case kMesh: {
      const auto along = [&](int i) {
        const float* v = vertices + 3 * i;
        return d.x * static_cast<double>(v[0]) + d.y * static_cast<double>(v[1]) + d.z * static_cast<double>(v[2]);
      };
      int at = 0;
      if (edges != nullptr && vertex_count >= kClimbFrom) {
        // From neighbour to farther neighbour: a convex body has no hill but the highest.
        at = last_vertex;
        double best = along(at);
        for (int from = -1; from != at;) {
          from = at;
          for (const int* e = edges + edges[from]; *e >= 0; ++e) {
            const double height = along(*e);
            if (height > best) best = height, at = *e;
          }
        }
        last_vertex = at;
      } else {
        double best = -1e300;
        for (int i = 0; i < vertex_count; ++i) {
          const double height = along(i);
          if (height > best) best = height, at = i;
        }
      }
      const float* v = vertices + 3 * at;
      p = {static_cast<double>(v[0]), static_cast<double>(v[1]), static_cast<double>(v[2])};
      break;
    }
    default:
      break;
  }
  return turn(rot, p) + pos;
}

bool convex_distance(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out) {
  Simplex s;
  Vec nearest;
  const double around = a.radius() + b.radius();
  // A hair more than the reach, so that rounding decides nothing here.
  const Cores cores = gjk(a, b, false, (reach + around) * (1 + 1e-9) + kTouching, s, nearest);
  if (cores == Cores::kFar) return false;
  if (cores == Cores::kApart) {
    const double apart = norm(nearest);
    out.dist = apart - around;
    if (out.dist > reach) return false;
    Vec on1, on2;
    for (int i = 0; i < s.count; ++i) on1 = on1 + s.weight[i] * s.p[i].a, on2 = on2 + s.weight[i] * s.p[i].b;
    out.normal = (-1 / apart) * nearest;
    out.on1 = on1 + a.radius() * out.normal;
    out.on2 = on2 - b.radius() * out.normal;
    return true;
  }
  // The cores overlap: the polytope of the whole shapes.
  if (around > 0 && gjk(a, b, true, 1e300, s, nearest) != Cores::kTouch) return false;
  Polytope polytope(a, b);
  if (!polytope.start(s)) return false;
  const int face = polytope.expand();
  if (face < 0) return false;
  polytope.witness(face, out);
  return true;
}

int convex_contacts(const ConvexShape& a, const ConvexShape& b, double bound, double reach, QueuedContact* out) {
  constexpr double kAngle = 1e-3, kDistinct = 1e-3;
  Witness w;
  if (!convex_distance(a, b, reach, w)) return 0;
  const auto write = [&](QueuedContact& c, const Witness& from) {
    c.dist = from.dist;
    put(c.pos, 0.5 * (from.on1 + from.on2));
    put(c.normal, from.normal);
  };
  write(out[0], w);
  const auto round = [](const ConvexShape& s) { return s.shape == kEllipsoid || s.shape == kSphere; };
  if (round(a) || round(b)) return 1;
  int count = 1;
  const Vec n = w.normal, centre = vec(out[0].pos);
  // The tangents of MuJoCo's default contact frame.
  Vec t1 = std::abs(n.y) < 0.5 ? Vec{0, 1, 0} : Vec{0, 0, 1};
  t1 = t1 - dot(n, t1) * n;
  t1 = (1 / norm(t1)) * t1;
  const Vec t2 = cross(n, t1);
  for (const Vec& axis : {t1, t2}) {
    double R[9], back[9];
    // Seen from a shape, the turned shapes' normal is at most twice the angle from the present one. A shape that
    // touches with one corner all the while has no second contact here.
    rotation(R, axis, 2 * kAngle);
    if (same_place(a.support(turn(R, n)), a.support(turn_back(R, n))) ||
        same_place(b.support(turn(R, -n)), b.support(turn_back(R, -n)))) {
      continue;
    }
    for (double angle : {-kAngle, kAngle}) {
      rotation(R, axis, angle);
      rotation(back, axis, -angle);
      Witness other;
      if (!convex_distance(turned(a, R, centre), turned(b, back, centre), reach, other)) continue;
      write(out[count], other);
      bool distinct = true;
      for (int k = 0; k < count; ++k)
        distinct = distinct && norm(vec(out[k].pos) - vec(out[count].pos)) > kDistinct * bound;
      if (!distinct) continue;
      out[count].dist = w.dist;
      ++count;
    }
  }
  return count;
}

}  // namespace cohort::sim::collide
