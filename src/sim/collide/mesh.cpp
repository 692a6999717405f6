#include "sim/collide/mesh.h"

#include <algorithm>

namespace cohort::sim::collide {

namespace {

/// Further corners of a mesh on a plane are at least this share of its bounding radius away from the lowest one.
constexpr double kSpread = 0.3;
constexpr int kPlaneContacts = 3;

}  // namespace

ConvexShape convex_shape(const ModelView& m, const QueuedShape& s) {
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
    c.vertices = m.mesh_vertex + 3 * mesh.first_vertex;
    c.vertex_count = mesh.vertex_count;
    if (mesh.first_edge >= 0) c.edges = m.mesh_edge + mesh.first_edge;
  }
  return c;
}

int plane_mesh(const ModelView& m, const QueuedShape& plane, const QueuedShape& s, double reach, QueuedContact* out) {
  const MeshRecord& mesh = m.mesh[s.geom->data];
  const float* vertices = m.mesh_vertex + 3 * mesh.first_vertex;
  const Vec normal = column(plane.rot, 2), down = turn_back(s.rot, -normal);
  const auto corner = [&](int v) {
    return Vec{static_cast<double>(vertices[3 * v]), static_cast<double>(vertices[3 * v + 1]),
               static_cast<double>(vertices[3 * v + 2])};
  };
  int lowest = 0;
  double most = -1e300;
  for (int v = 0; v < mesh.vertex_count; ++v) {
    const double depth = dot(down, corner(v));
    if (depth > most) most = depth, lowest = v;
  }
  int count = 0;
  Vec first;
  const auto add = [&](int v) {
    const Vec at = turn(s.rot, corner(v)) + vec(s.pos);
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
                        QueuedContact* out) {
  const HeightFieldRecord& h = m.height_field[field.geom->data];
  const double width = static_cast<double>(h.size[0]), depth = static_cast<double>(h.size[1]),
               top = static_cast<double>(h.size[2]), bottom = static_cast<double>(h.size[3]);
  // The shape in the field's frame, and its box there.
  ConvexShape s = convex_shape(m, shape);
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
  ConvexShape prism;
  prism.shape = kMesh;
  prism.vertex_count = 6;
  const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::copy_n(identity, 9, prism.rot);
  int count = 0;
  for (int r = r0; r < r1; ++r) {
    for (int c = c0; c < c1; ++c) {
      // Two triangles of a cell, each over three of its corners.
      const int corners[2][3][2] = {{{r + 1, c}, {r, c}, {r + 1, c + 1}}, {{r, c}, {r + 1, c + 1}, {r, c + 1}}};
      for (const auto& triangle : corners) {
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
        if (!convex_distance(prism, s, reach, w)) continue;
        int slot = count;
        if (count == kMaxPairContacts) {
          // The shallowest makes room for a deeper one.
          slot = 0;
          for (int k = 1; k < count; ++k) {
            if (out[k].dist > out[slot].dist) slot = k;
          }
          if (out[slot].dist <= w.dist) continue;
        } else {
          ++count;
        }
        out[slot].dist = w.dist;
        put(out[slot].pos, turn(field.rot, 0.5 * (w.on1 + w.on2)) + vec(field.pos));
        put(out[slot].normal, turn(field.rot, w.normal));
      }
    }
  }
  return count;
}

}  // namespace cohort::sim::collide
