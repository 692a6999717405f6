/// A tree over a mesh's triangles, in the mesh's own frame, by which rays find those that they meet. Building one takes
/// longer than anything else before a first picture, so compiled models keep it.
///
///   const MeshTree tree = build_mesh_tree(corners);  // (triangles, 3, 3)
///   // tree.node[0] is the root; block b has the triangles tree.triangle[8 b] to [8 b + 7]
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/host/mesh_tree_node.h"

namespace cohort::sim {

struct MeshTree {
  std::vector<MeshTreeNode> node;      ///< a node stands before its children
  std::vector<std::int32_t> triangle;  ///< (blocks, 8); -1: an empty place
  bool empty() const { return node.empty(); }
};

/// corners: (triangles, 3, 3), m. Empty for no triangles. By the surface area heuristic over bins (Wald, "On fast
/// construction of SAH-based bounding volume hierarchies", 2007).
MeshTree build_mesh_tree(std::span<const float> corners);

/// Whether whoever follows it ends, and at triangles that there are.
bool is_sound(const MeshTree& tree, std::size_t triangles);

}  // namespace cohort::sim
