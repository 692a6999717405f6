/// Meshes as the page draws them: each vertex once, few triangles, small numbers.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort::view {

struct ThinMesh {
  std::array<float, 3> low{}, high{};   ///< m, of its vertices
  std::vector<std::uint16_t> position;  ///< (n, 3): 0 at low, 65535 at high
  std::vector<std::int8_t> normal;      ///< (n, 3): 127 is 1
  std::vector<float> texcoord;          ///< (n, 2); empty: none
  std::vector<std::uint32_t> index;     ///< (triangles, 3)
  std::size_t triangles() const { return index.size() / 3; }
};

/// corner, normal: (triangles, 3, 3); texcoord: (triangles, 3, 2) or empty. Above max_triangles the vertices of a grid's
/// cell become one, at their mean (vertex clustering: Rossignac and Borrel 1993), on the finest grid that leaves few
/// enough; their normals are made anew.
ThinMesh thin_mesh(std::span<const float> corner, std::span<const float> normal, std::span<const float> texcoord,
                   std::size_t max_triangles);

}  // namespace cohort::view
