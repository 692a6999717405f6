/// A mesh as rays meet it: triangles with their normals, and a tree over them.
#pragma once
#include <vector>

#include "render/kernels/records.h"
#include "sim/host/visual_model.h"

namespace cohort::render {

/// Owns what a MeshRecord points to.
struct TracedMesh {
  std::vector<NodeRecord> node;
  std::vector<TriangleBlock> block;
  std::vector<float> corner, normal, texcoord;
  float low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  int triangles() const { return static_cast<int>(corner.size() / 9); }
  /// Valid as long as this. tree: false leaves it out, so that every ray meets every triangle.
  MeshRecord record(bool tree) const;
};

/// Normals as MuJoCo's mjr_uploadMesh takes them: a corner's own unless it lies more than 37 degrees from the face's
/// and the mesh has no texture coordinates. Its tree is the one that it came with, or built.
TracedMesh trace_mesh(const sim::VisualMesh& mesh);
/// Top, sides and bottom, as MuJoCo's mjr_uploadHField; quads: divisions of the bottom.
TracedMesh trace_height_field(const sim::VisualHeightField& field, int quads);

}  // namespace cohort::render
