/// Meshes of Wavefront OBJ files (.obj), where MuJoCo reads a part of them only.
#pragma once
#include <string_view>

#include "sim/host/collada.h"

namespace cohort::sim {

/// Whether some faces have texture coordinates and others none: MuJoCo (4.0's obj_decoder) then leaves out all faces
/// from the first of the other kind on, with a warning about coordinates.
bool mixes_texture_coordinates(std::string_view obj);

/// All faces, as triangles; without normals, texture coordinates and materials. Throws Error for a file without faces
/// and for an index beyond the vertices.
TriangleMesh read_obj(std::string_view obj);

}  // namespace cohort::sim
