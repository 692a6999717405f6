/// What a model's file is, before anything parses it.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::sim {

/// Name of an XML text's root element; "" where there is none.
std::string root_element(std::string_view xml);

/// True for a URDF file: its root element is <robot>. Where it has none, or cannot be read, the suffix .urdf decides,
/// in capitals too.
bool is_urdf(const std::filesystem::path& file);

/// Why a file cannot be read, naming it: it is missing, a folder, or permission is denied; "" when it can.
std::string why_unreadable(const std::filesystem::path& file);

/// A height field whose size the model's text gives (nrow, ncol).
struct HeightFieldSize {
  std::string name;
  double rows = 0, cols = 0;
};
/// Those of an MJCF text and of the files that it includes, which lie in `folder`. What cannot be read is left out:
/// MuJoCo's parser says so.
std::vector<HeightFieldSize> height_field_sizes(std::string_view xml, const std::filesystem::path& folder);

/// What is wrong with the first file of a mesh, texture, height field, skin or include that an MJCF text in `folder`
/// names and that only stands for another (core/placeholder_file.h), naming it; "" where there is none. MuJoCo's
/// decoders would take it for a damaged mesh, its parser for broken XML.
std::string placeholder_asset(std::string_view xml, const std::filesystem::path& folder);

/// Why there is no such file: the folder on its way that lacks a part, and the nearest name there.
std::string what_is_missing(const std::filesystem::path& file);

struct MeshPath {
  std::filesystem::path file;  ///< "" where there is a problem
  std::string problem;         ///< names the mesh, what was looked for and where
};
/// The file that a URDF file in `folder` means by package://NAME/REST or model://NAME/REST (below the folder NAME that
/// is `folder` or one above it, or lies in one of these, or in one that ROS_PACKAGE_PATH, AMENT_PREFIX_PATH,
/// GZ_SIM_RESOURCE_PATH or GAZEBO_MODEL_PATH names), or by file:///PATH. A path without a scheme is left as it is.
MeshPath resolve_mesh(const std::string& uri, const std::filesystem::path& folder);

}  // namespace cohort::sim
