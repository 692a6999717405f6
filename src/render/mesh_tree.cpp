#include "render/mesh_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/index.h"

namespace cohort::render {

namespace {

using sim::at;
using Point = std::array<float, 3>;

struct Bounds {
  Point low{std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
  Point high{-std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(),
             -std::numeric_limits<float>::max()};
  void add(const float* p) {
    for (std::size_t i = 0; i < 3; ++i) low[i] = std::min(low[i], p[i]), high[i] = std::max(high[i], p[i]);
  }
  void add(const Bounds& b) { add(b.low.data()), add(b.high.data()); }
  float area() const {
    const float x = high[0] - low[0], y = high[1] - low[1], z = high[2] - low[2];
    return x < 0 ? 0 : x * y + y * z + z * x;
  }
};

/// Builds a node's eight children by splitting the largest group again and again, by the surface area heuristic over
/// bins (Wald, "On fast construction of SAH-based bounding volume hierarchies", 2007).
class TreeBuilder {
 public:
  explicit TreeBuilder(TracedMesh& mesh) : mesh_(mesh) {
    const int n = mesh.triangles();
    bounds_.resize(at(n));
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < 3; ++k) bounds_[at(i)].add(&mesh.corner[at(9 * i + 3 * k)]);
    }
    order_.resize(at(n));
    std::iota(order_.begin(), order_.end(), 0);
    add_node({0, n}, 0);
  }

 private:
  static constexpr int kLeaf = 8, kBins = 16, kMedianDepth = 20;
  struct Group {
    int first = 0, count = 0;
  };

  Bounds bounds_of(const Group& g) const {
    Bounds b;
    for (int i = g.first; i < g.first + g.count; ++i) b.add(bounds_[at(order_[at(i)])]);
    return b;
  }
  float middle(int triangle, std::size_t axis) const {
    return 0.5f * (bounds_[at(triangle)].low[axis] + bounds_[at(triangle)].high[axis]);
  }

  std::pair<Group, Group> split(const Group& g, bool median) {
    Bounds centres;
    for (int i = g.first; i < g.first + g.count; ++i) {
      const int t = order_[at(i)];
      const Point p{middle(t, 0), middle(t, 1), middle(t, 2)};
      centres.add(p.data());
    }
    std::size_t axis = 0;
    int best_bin = -1;
    float best = std::numeric_limits<float>::max();
    for (std::size_t a = 0; a < 3 && !median; ++a) {
      const float begin = centres.low[a], width = centres.high[a] - begin;
      if (!(width > 0)) continue;
      std::array<Bounds, kBins> box;
      std::array<int, kBins> count{};
      for (int i = g.first; i < g.first + g.count; ++i) {
        const std::size_t bin = bin_of(middle(order_[at(i)], a), begin, width);
        box[bin].add(bounds_[at(order_[at(i)])]);
        ++count[bin];
      }
      std::array<float, kBins> behind{};
      Bounds right;
      int n = 0;
      for (std::size_t b = kBins - 1; b > 0; --b) {
        if (count[b] > 0) right.add(box[b]);
        n += count[b];
        behind[b] = right.area() * static_cast<float>(n);
      }
      Bounds left;
      n = 0;
      for (std::size_t b = 0; b + 1 < kBins; ++b) {
        if (count[b] > 0) left.add(box[b]);
        n += count[b];
        const float cost = left.area() * static_cast<float>(n) + behind[b + 1];
        if (n > 0 && n < g.count && cost < best) best = cost, best_bin = static_cast<int>(b), axis = a;
      }
    }
    const auto begin = order_.begin() + g.first, end = begin + g.count;
    auto cut = begin + g.count / 2;
    if (best_bin >= 0) {
      const float low = centres.low[axis], width = centres.high[axis] - low;
      cut = std::stable_partition(
          begin, end, [&](int t) { return bin_of(middle(t, axis), low, width) <= static_cast<std::size_t>(best_bin); });
    } else {
      for (std::size_t a = 1; a < 3; ++a) {
        if (centres.high[a] - centres.low[a] > centres.high[axis] - centres.low[axis]) axis = a;
      }
      std::stable_sort(begin, end, [&](int a, int b) { return middle(a, axis) < middle(b, axis); });
    }
    const int left = static_cast<int>(cut - begin);
    return {{g.first, left}, {g.first + left, g.count - left}};
  }
  static std::size_t bin_of(float value, float begin, float width) {
    const int bin = static_cast<int>(static_cast<float>(kBins) * (value - begin) / width);
    return at(std::clamp(bin, 0, kBins - 1));
  }

  int add_node(const Group& all, int depth) {
    const std::size_t self = mesh_.node.size();
    mesh_.node.emplace_back();
    std::vector<Group> groups{all};
    while (groups.size() < 8) {
      std::size_t largest = groups.size();
      float most = -1;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        if (groups[i].count <= kLeaf) continue;
        const float cost = bounds_of(groups[i]).area() * static_cast<float>(groups[i].count);
        if (cost > most) most = cost, largest = i;
      }
      if (largest == groups.size()) break;
      const auto [left, right] = split(groups[largest], depth >= kMedianDepth);
      groups[largest] = left;
      groups.push_back(right);
    }
    for (std::size_t i = 0; i < 8; ++i) {
      const bool empty = i >= groups.size() || groups[i].count == 0;
      int child = 0;
      Bounds box;
      if (!empty) {
        box = bounds_of(groups[i]);
        child = groups[i].count <= kLeaf ? ~add_block(groups[i]) : add_node(groups[i], depth + 1);
      }
      NodeRecord& node = mesh_.node[self];
      node.child[i] = child;
      for (std::size_t a = 0; a < 3; ++a) {
        node.low[a][i] = empty ? 1e30f : box.low[a];
        node.high[a][i] = empty ? -1e30f : box.high[a];
      }
    }
    return static_cast<int>(self);
  }

  int add_block(const Group& g) {
    TriangleBlock b{};
    for (int i = 0; i < g.count; ++i) {
      const int t = order_[at(g.first + i)];
      const float* c = &mesh_.corner[at(9 * t)];
      for (int a = 0; a < 3; ++a) {
        b.corner[a][i] = c[a];
        b.edge1[a][i] = c[3 + a] - c[a];
        b.edge2[a][i] = c[6 + a] - c[a];
      }
      b.triangle[i] = t;
    }
    mesh_.block.push_back(b);
    return static_cast<int>(mesh_.block.size()) - 1;
  }

  TracedMesh& mesh_;
  std::vector<Bounds> bounds_;
  std::vector<int> order_;
};

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

void finish(TracedMesh& mesh) {
  Bounds all;
  for (std::size_t i = 0; i + 2 < mesh.corner.size(); i += 3) all.add(&mesh.corner[i]);
  if (mesh.corner.empty()) return;
  std::copy(all.low.begin(), all.low.end(), mesh.low);
  std::copy(all.high.begin(), all.high.end(), mesh.high);
  TreeBuilder{mesh};
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
  out.corner.reserve(9 * n), out.normal.reserve(9 * n);
  for (std::size_t f = 0; f < n; ++f) {
    const float* corner[3];
    for (std::size_t k = 0; k < 3; ++k) corner[k] = &mesh.vertex[3 * at(mesh.face[3 * f + k])];
    const Point flat = face_normal(corner[0], corner[1], corner[2]);
    for (std::size_t k = 0; k < 3; ++k) {
      const float* own = &mesh.normal[3 * at(mesh.face_normal[3 * f + k])];
      const bool sharp = own[0] * flat[0] + own[1] * flat[1] + own[2] * flat[2] < kSharp;
      const float* normal = sharp && mesh.texcoord.empty() ? flat.data() : own;
      out.corner.insert(out.corner.end(), corner[k], corner[k] + 3);
      out.normal.insert(out.normal.end(), normal, normal + 3);
      if (mesh.texcoord.empty()) continue;
      const float* texcoord = &mesh.texcoord[2 * at(mesh.face_texcoord[3 * f + k])];
      out.texcoord.insert(out.texcoord.end(), texcoord, texcoord + 2);
    }
  }
  finish(out);
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
  finish(out);
  return out;
}

}  // namespace cohort::render
