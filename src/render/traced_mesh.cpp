#include "render/traced_mesh.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/index.h"

namespace cohort::render {

namespace {

using sim::at;
using Point = std::array<float, 3>;
constexpr std::size_t kBlock = sim::kTreeWidth;

Point difference(const float* a, const float* b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Point face_normal(const float* a, const float* b, const float* c) {
  const Point u = difference(b, a), v = difference(c, a);
  Point n{u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
  const float length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
  for (float& x : n) x = length > 0 ? x / length : 0;
  return n;
}

/// Box and blocks; kept: the mesh's tree where it is there already.
void finish(TracedMesh& mesh, const sim::MeshTree& kept) {
  if (mesh.corner.empty()) return;
  constexpr float kFar = std::numeric_limits<float>::max();
  std::fill_n(mesh.low, 3, kFar), std::fill_n(mesh.high, 3, -kFar);
  for (std::size_t i = 0; i < mesh.corner.size(); ++i) {
    mesh.low[i % 3] = std::min(mesh.low[i % 3], mesh.corner[i]);
    mesh.high[i % 3] = std::max(mesh.high[i % 3], mesh.corner[i]);
  }
  const sim::MeshTree built = kept.empty() ? sim::build_mesh_tree(mesh.corner) : sim::MeshTree{};
  const sim::MeshTree& tree = kept.empty() ? built : kept;
  mesh.node = tree.node;
  mesh.block.resize(tree.triangle.size() / kBlock);
  for (std::size_t b = 0; b < mesh.block.size(); ++b) {
    TriangleBlock& block = mesh.block[b];
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::int32_t t = tree.triangle[kBlock * b + i];
      if (t < 0) continue;
      const float* c = &mesh.corner[9 * at(t)];
      for (std::size_t a = 0; a < 3; ++a) {
        block.corner[a][i] = c[a];
        block.edge1[a][i] = c[3 + a] - c[a];
        block.edge2[a][i] = c[6 + a] - c[a];
      }
      block.triangle[i] = t;
    }
  }
}

/// Collects triangles with one normal each.
class FlatTriangles {
 public:
  explicit FlatTriangles(TracedMesh& mesh) : mesh_(mesh) {}
  void triangle(const Point& a, const Point& b, const Point& c, const Point& normal) {
    for (const Point* p : {&a, &b, &c}) {
      mesh_.corner.insert(mesh_.corner.end(), p->begin(), p->end());
      mesh_.normal.insert(mesh_.normal.end(), normal.begin(), normal.end());
    }
  }
  void triangle(const Point& a, const Point& b, const Point& c) {
    triangle(a, b, c, face_normal(a.data(), b.data(), c.data()));
  }
  /// Divided as drivers divide a quadrilateral.
  void quad(const Point& a, const Point& b, const Point& c, const Point& d, const Point& normal) {
    triangle(a, b, d, normal), triangle(b, c, d, normal);
  }

 private:
  TracedMesh& mesh_;
};

}  // namespace

MeshRecord TracedMesh::record(bool tree) const {
  MeshRecord r{};
  r.node = tree && !node.empty() ? node.data() : nullptr;
  r.block = block.data();
  r.blocks = static_cast<int>(block.size());
  r.corner = corner.data();
  r.normal = normal.data();
  r.texcoord = texcoord.empty() ? nullptr : texcoord.data();
  std::copy_n(low, 3, r.low);
  std::copy_n(high, 3, r.high);
  return r;
}

TracedMesh trace_mesh(const sim::VisualMesh& mesh) {
  constexpr float kSharp = 0.8f;  // cosine of 37 degrees
  TracedMesh out;
  const std::size_t n = mesh.face.size() / 3;
  out.corner.resize(9 * n), out.normal.resize(9 * n);
  if (!mesh.texcoord.empty()) out.texcoord.resize(6 * n);
  for (std::size_t f = 0; f < n; ++f) {
    const float* corner[3];
    for (std::size_t k = 0; k < 3; ++k) corner[k] = &mesh.vertex[3 * at(mesh.face[3 * f + k])];
    const Point flat = face_normal(corner[0], corner[1], corner[2]);
    for (std::size_t k = 0; k < 3; ++k) {
      const float* own = &mesh.normal[3 * at(mesh.face_normal[3 * f + k])];
      const bool sharp = own[0] * flat[0] + own[1] * flat[1] + own[2] * flat[2] < kSharp;
      const float* normal = sharp && mesh.texcoord.empty() ? flat.data() : own;
      std::copy_n(corner[k], 3, &out.corner[9 * f + 3 * k]);
      std::copy_n(normal, 3, &out.normal[9 * f + 3 * k]);
      if (mesh.texcoord.empty()) continue;
      const float* texcoord = &mesh.texcoord[2 * at(mesh.face_texcoord[3 * f + k])];
      std::copy_n(texcoord, 2, &out.texcoord[6 * f + 2 * k]);
    }
  }
  finish(out, mesh.tree);
  return out;
}

TracedMesh trace_height_field(const sim::VisualHeightField& field, int quads) {
  TracedMesh out;
  FlatTriangles add(out);
  const float x = static_cast<float>(field.size[0]), y = static_cast<float>(field.size[1]),
              top = static_cast<float>(field.size[2]), base = -static_cast<float>(field.size[3]);
  const auto at_x = [&](int c) { return x * (2.0f * static_cast<float>(c) / static_cast<float>(field.cols - 1) - 1); };
  const auto at_y = [&](int r) { return y * (2.0f * static_cast<float>(r) / static_cast<float>(field.rows - 1) - 1); };
  const auto z = [&](int r, int c) { return top * field.height[at(r) * at(field.cols) + at(c)]; };
  const auto point = [&](int r, int c) { return Point{at_x(c), at_y(r), z(r, c)}; };
  const auto foot = [&](int r, int c) { return Point{at_x(c), at_y(r), base}; };
  for (int r = 0; r + 1 < field.rows; ++r) {
    for (int c = 0; c + 1 < field.cols; ++c) {
      add.triangle(point(r + 1, c), point(r, c), point(r + 1, c + 1));
      add.triangle(point(r, c), point(r, c + 1), point(r + 1, c + 1));
    }
  }
  const int last_c = field.cols - 1, last_r = field.rows - 1;
  for (int r = 0; r + 1 < field.rows; ++r) {
    add.quad(foot(r + 1, 0), foot(r, 0), point(r, 0), point(r + 1, 0), {-1, 0, 0});
    add.quad(foot(r, last_c), foot(r + 1, last_c), point(r + 1, last_c), point(r, last_c), {1, 0, 0});
  }
  for (int c = 0; c + 1 < field.cols; ++c) {
    add.quad(foot(0, c), foot(0, c + 1), point(0, c + 1), point(0, c), {0, -1, 0});
    add.quad(foot(last_r, c + 1), foot(last_r, c), point(last_r, c), point(last_r, c + 1), {0, 1, 0});
  }
  const auto below = [&](int r, int c) {
    const float n = static_cast<float>(quads);
    return Point{x * (2.0f * static_cast<float>(c) / n - 1), y * (2.0f * static_cast<float>(r) / n - 1), base};
  };
  for (int r = 0; r < quads; ++r) {
    for (int c = 0; c < quads; ++c) {
      add.quad(below(r, c), below(r + 1, c), below(r + 1, c + 1), below(r, c + 1), {0, 0, -1});
    }
  }
  finish(out, {});
  return out;
}

}  // namespace cohort::render
