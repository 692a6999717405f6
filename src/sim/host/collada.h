/// Meshes of COLLADA files (.dae), which robots' URDF files name and MuJoCo does not read.
///
///   const TriangleMesh mesh = read_collada(read_file("base.dae"));
///   mesh.face.size() / 3 triangles of mesh.vertex.size() / 3 corners
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace cohort::sim {

struct TriangleMesh {
  std::vector<float> vertex;                   ///< (n, 3) m
  std::vector<int> face;                       ///< (m, 3) rows of vertex, counter-clockwise from outside
  std::optional<std::array<float, 4>> colour;  ///< diffuse, of the material that most triangles have
};

/// All geometries of the scene where its nodes put them, in metres (<unit>). The axes stay as they are whatever
/// <up_axis> says, as ROS' own viewer has it (rviz, mesh_loader.cpp). Polygons become fans of triangles; lines,
/// textures, normals and animations are left out. Throws Error for a text that holds no triangle, and for an index
/// beyond the vertices (COLLADA 1.4.1, Khronos Group 2008, chapter 5).
TriangleMesh read_collada(std::string_view text);

}  // namespace cohort::sim
