/// Meshes of text files that MuJoCo reads in part or not at all: Wavefront OBJ (.obj) and STL written as text (.stl).
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

/// Whether an STL file is written as text ("solid NAME, facet normal ..."). A binary one may begin with "solid", too: its
/// size is 84 bytes and 50 for each triangle.
bool is_text_stl(std::string_view stl);

/// All triangles; corners at the same place are one vertex. Normals and names are left out. Throws Error for a number
/// that cannot be read, for a facet without three corners and for a file without facets (StereoLithography Interface
/// Specification, 3D Systems 1988, section 6.5).
TriangleMesh read_text_stl(std::string_view stl);

}  // namespace cohort::sim
