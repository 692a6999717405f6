#include "sim/collide/mesh.h"

#include <algorithm>
#include <cmath>

namespace cohort::sim::collide {

namespace {

/// Further corners of a mesh on a plane are at least this share of its bounding radius away from the lowest one.
constexpr double kSpread = 0.3;
constexpr int kPlaneContacts = 3;

/// The corners of a height field's prism: three at the bottom, three above them.
struct Prism {
  Vec corner[6];
  explicit Prism(const float* points) {
    for (int k = 0; k < 6; ++k) {
      corner[k] = {static_cast<double>(points[3 * k]), static_cast<double>(points[3 * k + 1]),
                   static_cast<double>(points[3 * k + 2])};
    }
  }
};

/// A prism and a sphere, without a search; false when they are apart by more than `reach`.
bool sphere_prism(const float* points, Vec centre, double radius, double reach, Witness& w) {
  constexpr int kTop[3] = {3, 4, 5}, kBottom[3] = {0, 1, 2};
  const Prism prism(points);
  const auto touch = [&](Vec on, Vec away, double apart) {
    if (apart > radius + reach) return false;
    w.dist = apart - radius;
    w.normal = away;
    w.on1 = on;
    w.on2 = centre - radius * away;
    return true;
  };
  const auto nearest_on = [&](const int* f) {
    double weight[3];
    const Vec a = prism.corner[f[0]], b = prism.corner[f[1]], c = prism.corner[f[2]];
    nearest_on_triangle(a - centre, b - centre, c - centre, weight);
    return weight[0] * a + weight[1] * b + weight[2] * c;
  };
  // Mostly the nearest point is the top's: when no corner of the bottom lies farther towards the centre.
  {
    const Vec on = nearest_on(kTop), d = centre - on;
    const double squared = dot(d, d);
    bool nearest = d.z > 0;
    for (const int k : kBottom) nearest = nearest && dot(d, prism.corner[k] - on) <= 0;
    if (nearest) {
      const double apart = std::sqrt(squared);
      return touch(on, (1 / apart) * d, apart);
    }
  }
  const Vec middle = (1.0 / 6) * (prism.corner[0] + prism.corner[1] + prism.corner[2] + prism.corner[3] +
                                  prism.corner[4] + prism.corner[5]);
  // Two triangles for each of the three sides, then top and bottom.
  const int face[8][3] = {{0, 1, 4},
                          {0, 4, 3},
                          {1, 2, 5},
                          {1, 5, 4},
                          {2, 0, 3},
                          {2, 3, 5},
                          {kTop[0], kTop[1], kTop[2]},
                          {kBottom[0], kBottom[1], kBottom[2]}};
  double farthest = -1e300;
  Vec out;
  for (const int k : {0, 2, 4, 6, 7}) {
    const Vec at = prism.corner[face[k][0]];
    Vec n = cross(prism.corner[face[k][1]] - at, prism.corner[face[k][2]] - at);
    const double length = norm(n);
    if (length < 1e-18) continue;  // a side without height
    n = (dot(n, at - middle) < 0 ? -1 / length : 1 / length) * n;
    const double beyond = dot(n, centre - at);
    if (beyond > radius + reach) return false;
    if (beyond > farthest) farthest = beyond, out = n;
  }
  // The centre is inside: out through the nearest face.
  if (farthest <= 0) return touch(centre - farthest * out, out, farthest);
  double nearest = 1e300;
  Vec on;
  for (const auto& f : face) {
    const Vec at = nearest_on(f), d = centre - at;
    if (dot(d, d) < nearest) nearest = dot(d, d), on = at;
  }
  const double apart = std::sqrt(nearest);
  return touch(on, apart > 1e-12 ? (1 / apart) * (centre - on) : out, apart);
}

}  // namespace

ConvexShape convex_shape(const ModelView& m, const QueuedShape& s, FarthestVertex farthest) {
  ConvexShape c;
  c.shape = s.geom->shape;
  c.size = {static_cast<double>(s.geom->size[0]), static_cast<double>(s.geom->size[1]),
            static_cast<double>(s.geom->size[2])};
  c.pos = vec(s.pos);
  // The lanes give a sphere no axes and a capsule its own only.
  std::fill_n(c.rot, 9, 0.0);
  for (int i = 0; i < 9; ++i) {
    if (c.shape != kSphere && (c.shape != kCapsule || i % 3 == 2)) c.rot[i] = s.rot[i];
  }
  if (c.shape == kMesh) {
    const MeshRecord& mesh = m.mesh[s.geom->data];
    c.vertices = m.mesh_vertex + mesh.first_vertex;
    c.vertex_count = mesh.vertex_count;
    c.farthest = farthest;
    if (mesh.face_count > 0) {
      c.faces = m.mesh_face + mesh.first_face;
      c.indices = m.mesh_edge;
      c.vertex_faces = m.mesh_edge + mesh.first_vertex_face;
    }
  }
  return c;
}

int plane_mesh(const ModelView& m, const QueuedShape& plane, const QueuedShape& s, double reach,
               FarthestVertex farthest, QueuedContact* out) {
  const MeshRecord& mesh = m.mesh[s.geom->data];
  const Vec normal = column(plane.rot, 2), down = turn_back(s.rot, -normal);
  ConvexShape shape;
  shape.shape = kMesh, shape.vertices = m.mesh_vertex + mesh.first_vertex;
  const int lowest = farthest(shape.vertices, mesh.vertex_count, static_cast<float>(down.x), static_cast<float>(down.y),
                              static_cast<float>(down.z));
  int count = 0;
  Vec first;
  const auto add = [&](int v) {
    const Vec at = turn(s.rot, shape.vertex(v)) + vec(s.pos);
    if (count > 0 && norm(at - first) < kSpread * static_cast<double>(s.geom->radius)) return;
    const double dist = dot(normal, at - vec(plane.pos));
    if (dist > reach) return;
    const Vec middle = at - (0.5 * dist) * normal;
    if (count == 0) first = middle;
    out[count].dist = dist;
    put(out[count].pos, middle);
    put(out[count].normal, normal);
    ++count;
  };
  add(lowest);
  if (count == 0) return 0;
  if (mesh.first_edge >= 0) {
    const int* edges = m.mesh_edge + mesh.first_edge;
    for (const int* e = edges + edges[lowest]; *e >= 0 && count < kPlaneContacts; ++e) add(*e);
  } else {
    for (int v = 0; v < mesh.vertex_count && count < kPlaneContacts; ++v) {
      if (v != lowest) add(v);
    }
  }
  return count;
}

int height_field_convex(const ModelView& m, const QueuedShape& field, const QueuedShape& shape, double reach,
                        FarthestVertex farthest, QueuedContact* out) {
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
  if (std::abs(s.pos.x) > width + around || std::abs(s.pos.y) > depth + around || s.pos.z > top + around ||
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
    return std::clamp(static_cast<int>(clamp(up ? std::ceil(at) : std::floor(at), -1, n)), 0, n - 1);
  };
  const int c0 = cell(lower.x - reach, width, h.cols, false), c1 = cell(upper.x + reach, width, h.cols, true);
  const int r0 = cell(lower.y - reach, depth, h.rows, false), r1 = cell(upper.y + reach, depth, h.rows, true);
  const double dx = 2 * width / (h.cols - 1), dy = 2 * depth / (h.rows - 1);
  // Across the cells' diagonals, which are parallel: from where to where the shape lies, with room for rounding of the
  // corners.
  const Vec across{-dy, dx, 0};
  const double room = norm(across) * (s.radius() + reach + 1e-6 * (width + depth));
  const double least = dot(across, s.support(-across)) - room, most = dot(across, s.support(across)) + room;
  ConvexShape prism;
  prism.shape = kPrism;
  const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::copy_n(identity, 9, prism.rot);
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
      for (const auto& triangle : corners) {
        // The first triangle lies on the diagonal's far side, the second on its near side.
        if (&triangle == corners ? most < diagonal : least > diagonal) continue;
        float points[18];
        double highest = -1e300;
        for (int k = 0; k < 3; ++k) {
          const double z = static_cast<double>(m.height[h.first + triangle[k][0] * h.cols + triangle[k][1]]) * top;
          highest = std::max(highest, z);
          const float x = static_cast<float>(dx * triangle[k][1] - width);
          const float y = static_cast<float>(dy * triangle[k][0] - depth);
          points[3 * k] = points[9 + 3 * k] = x;
          points[3 * k + 1] = points[9 + 3 * k + 1] = y;
          points[3 * k + 2] = static_cast<float>(-bottom);
          points[9 + 3 * k + 2] = static_cast<float>(z);
        }
        if (highest + reach < lower.z) continue;
        // The prism lies below the plane of its triangle.
        const auto corner = [&](int k) {
          return Vec{static_cast<double>(points[9 + 3 * k]), static_cast<double>(points[10 + 3 * k]),
                     static_cast<double>(points[11 + 3 * k])};
        };
        Vec up = cross(corner(1) - corner(0), corner(2) - corner(0));
        if (up.z < 0) up = -up;
        const double length = norm(up);
        if (dot(up, s.support(-up) - corner(0)) > (s.radius() + reach) * length * (1 + 1e-9)) continue;
        prism.vertices = points;
        // The search begins between the middles: a prism's frame is the field's.
        prism.middle = (1.0 / 3) * (corner(0) + corner(1) + corner(2));
        Witness w;
        if (convex_distance(prism, s, reach, w)) keep(w);
      }
    }
  }
  return count;
}

}  // namespace cohort::sim::collide

bool cohort::sim::sphere_and_prism(const float* prism, const float* centre, float radius, float reach, float* out) {
  collide::Witness w;
  const collide::Vec at{static_cast<double>(centre[0]), static_cast<double>(centre[1]), static_cast<double>(centre[2])};
  if (!collide::sphere_prism(prism, at, static_cast<double>(radius), static_cast<double>(reach), w)) return false;
  out[0] = static_cast<float>(w.dist);
  for (int i = 0; i < 3; ++i) {
    out[1 + i] = static_cast<float>(0.5 * (w.on1[i] + w.on2[i]));
    out[4 + i] = static_cast<float>(w.normal[i]);
  }
  return true;
}
