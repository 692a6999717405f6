#include "sim/host/mesh_tree.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "sim/index.h"

namespace cohort::sim {

namespace {

/// A box; the fourth numbers are 0 and make four of one register.
struct TreeBox {
  static constexpr float kFar = std::numeric_limits<float>::max();
  alignas(16) std::array<float, 4> low{kFar, kFar, kFar, 0}, high{-kFar, -kFar, -kFar, 0};
  void add_point(const std::array<float, 4>& p) {
    for (std::size_t i = 0; i < 4; ++i) low[i] = std::min(low[i], p[i]);
    for (std::size_t i = 0; i < 4; ++i) high[i] = std::max(high[i], p[i]);
  }
  void add(const float* p) { add_point({p[0], p[1], p[2], 0}); }
  void add(const TreeBox& b) {
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
  explicit TreeBuilder(std::span<const float> corners) {
    const int n = static_cast<int>(corners.size() / 9);
    items_.resize(at(n));
    for (int i = 0; i < n; ++i) {
      items_[at(i)].triangle = i;
      for (int k = 0; k < 3; ++k) items_[at(i)].box.add(&corners[at(9 * i + 3 * k)]);
    }
    tree_.triangle.reserve(kTreeWidth * at(n / 4 + 1));
    tree_.node.reserve(at(n / 16 + 1));
    add_node(group_of(0, n), 0);
  }
  MeshTree take() { return std::move(tree_); }

 private:
  static constexpr int kLeaf = kTreeWidth, kMedianDepth = 20;
  static constexpr std::size_t kBins = 16;
  struct Item {
    TreeBox box;
    int triangle = 0;
  };
  struct Group {
    int first = 0, count = 0;
    TreeBox box, middles;  ///< of the triangles, and of their middles
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
    std::array<std::array<TreeBox, kBins>, 3> box;
    std::array<std::array<int, kBins>, 3> count{};
    for (int i = g.first; i < g.first + g.count; ++i) {
      const TreeBox& b = items_[at(i)].box;
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
      TreeBox right;
      int n = 0;
      for (std::size_t b = kBins - 1; b > 0; --b) {
        right.add(box[a][b]);
        n += count[a][b];
        behind[b] = right.area() * static_cast<float>(n);
      }
      TreeBox left;
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
    const std::size_t self = tree_.node.size();
    tree_.node.emplace_back();
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
      TreeBox box;
      if (!empty) {
        box = groups[i].box;
        child = groups[i].count <= kLeaf ? ~add_block(groups[i]) : add_node(groups[i], depth + 1);
      }
      MeshTreeNode& node = tree_.node[self];
      node.child[i] = child;
      for (std::size_t a = 0; a < 3; ++a) {
        node.low[a][i] = empty ? 1e30f : box.low[a];
        node.high[a][i] = empty ? -1e30f : box.high[a];
      }
    }
    return static_cast<int>(self);
  }

  int add_block(const Group& g) {
    for (int i = 0; i < kTreeWidth; ++i) {
      tree_.triangle.push_back(i < g.count ? items_[at(g.first + i)].triangle : -1);
    }
    return static_cast<int>(tree_.triangle.size()) / kTreeWidth - 1;
  }

  MeshTree tree_;
  std::vector<Item> items_;
};

}  // namespace

MeshTree build_mesh_tree(std::span<const float> corners) {
  if (corners.empty()) return {};
  return TreeBuilder(corners).take();
}

bool is_sound(const MeshTree& tree, std::size_t triangles) {
  const std::size_t blocks = tree.triangle.size() / kTreeWidth;
  if (tree.triangle.size() % kTreeWidth != 0 || (tree.empty() && blocks > 0)) return false;
  for (const std::int32_t t : tree.triangle) {
    if (t < -1 || (t >= 0 && at(t) >= triangles)) return false;
  }
  std::vector<int> level(tree.node.size(), 0);
  for (std::size_t i = 0; i < tree.node.size(); ++i) {
    for (int k = 0; k < kTreeWidth; ++k) {
      const MeshTreeNode& node = tree.node[i];
      const int child = node.child[k];
      if (node.low[0][k] > node.high[0][k]) continue;  // an empty place
      if (child < 0 ? at(~child) >= blocks : at(child) <= i || at(child) >= tree.node.size()) return false;
      if (child < 0) continue;
      level[at(child)] = std::max(level[at(child)], level[i] + 1);
      if (level[at(child)] >= kMostTreeLevels) return false;
    }
  }
  return true;
}

}  // namespace cohort::sim
