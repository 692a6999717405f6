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

/// The file that "package://NAME/REST" means in a URDF file in `folder`: as ROS lays packages out, below the folder
/// NAME that is `folder` or one above it, or that lies in one of these. "" when there is none.
std::filesystem::path find_in_package(const std::string& uri, const std::filesystem::path& folder);

}  // namespace cohort::sim
