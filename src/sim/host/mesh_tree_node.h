/// A node of a mesh's tree; in a header of its own for kernels.
#pragma once

namespace cohort::sim {

/// Triangles of a leaf, and children of a node.
inline constexpr int kTreeWidth = 8;
/// More levels than a tree of 2^31 triangles has: from the twentieth on the largest part of a node is halved.
inline constexpr int kMostTreeLevels = 64;

/// Children of a node: boxes (m), and where they go on. A child c >= 0 is a node, c < 0 the block of triangles ~c.
/// An empty place has a box that ends before it begins.
struct MeshTreeNode {
  float low[3][kTreeWidth], high[3][kTreeWidth];
  int child[kTreeWidth];
};

}  // namespace cohort::sim
