#include "render/mesh_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/index.h"

namespace cohort::render {

namespace {

using sim::at;
using Point = std::array<float, 3>;

/// A box; the fourth numbers are 0 and make four of one register.
struct Bounds {
  static constexpr float kFar = std::numeric_limits<float>::max();
  alignas(16) std::array<float, 4> low{kFar, kFar, kFar, 0}, high{-kFar, -kFar, -kFar, 0};
  void add_point(const std::array<float, 4>& p) {
    for (std::size_t i = 0; i < 4; ++i) low[i] = std::min(low[i], p[i]);
    for (std::size_t i = 0; i < 4; ++i) high[i] = std::max(high[i], p[i]);
  }
  void add(const float* p) { add_point({p[0], p[1], p[2], 0}); }
  void add(const Bounds& b) {
    for (std::size_t i = 0; i < 4; ++i) low[i] = std::min(low[i], b.low[i]);
    for (std::size_t i = 0; i < 4; ++i) high[i] = std::max(high[i], b.high[i]);
  }
  float area() const {
    const float x = high[0] - low[0], y = high[1] - low[1], z = high[2] - low[2];
    return x < 0 ? 0 : x * y + y * z + z * x;
  }
  std::array<float, 4> middle() const {
    std::array<float, 4> m;
    for (std::size_t i = 0; i < 4; ++i) m[i] = 0.5f * (low[i] + high[i]);
    return m;
  }
};

/// Builds a node's eight children by splitting the largest group again and again, by the surface area heuristic over
/// bins (Wald, "On fast construction of SAH-based bounding volume hierarchies", 2007).
class TreeBuilder {
 public:
  explicit TreeBuilder(TracedMesh& mesh) : mesh_(mesh) {
    const int n = mesh.triangles();
    items_.resize(at(n));
    for (int i = 0; i < n; ++i) {
      items_[at(i)].triangle = i;
      for (int k = 0; k < 3; ++k) items_[at(i)].box.add(&mesh.corner[at(9 * i + 3 * k)]);
    }
    mesh.block.reserve(at(n / 4 + 1));
    mesh.node.reserve(at(n / 16 + 1));
    add_node(group_of(0, n), 0);
  }

 private:
  static constexpr int kLeaf = 8, kMedianDepth = 20;
  static constexpr std::size_t kBins = 16;
  struct Item {
    Bounds box;
    int triangle = 0;
  };
  struct Group {
    int first = 0, count = 0;
    Bounds box, middles;  ///< of the triangles, and of their middles
  };

  Group group_of(int first, int count) const {
    Group g{.first = first, .count = count, .box = {}, .middles = {}};
    for (int i = first; i < first + count; ++i)
      g.box.add(items_[at(i)].box), g.middles.add_point(items_[at(i)].box.middle());
    return g;
  }

  /// Where a group is cut: between bins of an axis.
  struct Cut {
    std::size_t axis = 0, last_bin = 0;
    bool found = false;
  };
  /// Of numbers along the axes.
  struct Binning {
    std::array<float, 4> begin, scale;
    explicit Binning(const Group& g) : begin(g.middles.low), scale{} {
      for (std::size_t a = 0; a < 3; ++a) {
        const float width = g.middles.high[a] - begin[a];
        scale[a] = width > 0 ? static_cast<float>(kBins) / width : 0;
      }
    }
    std::size_t of(float middle, std::size_t axis) const {
      const int bin = static_cast<int>(scale[axis] * (middle - begin[axis]));
      return at(std::clamp(bin, 0, static_cast<int>(kBins) - 1));
    }
  };

  Cut best_cut(const Group& g, const Binning& binning) const {
    std::array<std::array<Bounds, kBins>, 3> box;
    std::array<std::array<int, kBins>, 3> count{};
    for (int i = g.first; i < g.first + g.count; ++i) {
      const Bounds& b = items_[at(i)].box;
      const std::array<float, 4> middle = b.middle();
      for (std::size_t a = 0; a < 3; ++a) {
        const std::size_t bin = binning.of(middle[a], a);
        box[a][bin].add(b);
        ++count[a][bin];
      }
    }
    Cut cut;
    float best = std::numeric_limits<float>::max();
    for (std::size_t a = 0; a < 3; ++a) {
      if (!(binning.scale[a] > 0)) continue;
      std::array<float, kBins> behind{};
      Bounds right;
      int n = 0;
      for (std::size_t b = kBins - 1; b > 0; --b) {
        right.add(box[a][b]);
        n += count[a][b];
        behind[b] = right.area() * static_cast<float>(n);
      }
      Bounds left;
      n = 0;
      for (std::size_t b = 0; b + 1 < kBins; ++b) {
        left.add(box[a][b]);
        n += count[a][b];
        const float cost = left.area() * static_cast<float>(n) + behind[b + 1];
        if (n > 0 && n < g.count && cost < best) best = cost, cut = {a, b, true};
      }
    }
    return cut;
  }

  std::pair<Group, Group> split(const Group& g, bool median) {
    const Binning binning(g);
    const Cut cut = median ? Cut{} : best_cut(g, binning);
    const auto begin = items_.begin() + g.first, end = begin + g.count;
    auto middle = begin + g.count / 2;
    if (cut.found) {
      middle = std::partition(begin, end, [&](const Item& item) {
        return binning.of(item.box.middle()[cut.axis], cut.axis) <= cut.last_bin;
      });
    } else {
      std::size_t axis = 0;
      for (std::size_t a = 1; a < 3; ++a) {
        if (g.middles.high[a] - g.middles.low[a] > g.middles.high[axis] - g.middles.low[axis]) axis = a;
      }
      std::sort(begin, end, [&](const Item& a, const Item& b) {
        const float x = a.box.middle()[axis], y = b.box.middle()[axis];
        return x < y || (x == y && a.triangle < b.triangle);
      });
    }
    const int left = static_cast<int>(middle - begin);
    return {group_of(g.first, left), group_of(g.first + left, g.count - left)};
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
        const float cost = groups[i].box.area() * static_cast<float>(groups[i].count);
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
        box = groups[i].box;
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
      const int t = items_[at(g.first + i)].triangle;
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
  std::vector<Item> items_;
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
  std::copy_n(all.low.begin(), 3, mesh.low);
  std::copy_n(all.high.begin(), 3, mesh.high);
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
