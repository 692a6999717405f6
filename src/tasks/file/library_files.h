/// The files of library/, which are part of the program: tasks, and the models that they name. Task files name them too:
/// `include: library:/quadruped-velocity.yaml`, `mjcf: library:/quadruped.xml`.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "core/home_path.h"

namespace cohort::tasks {

/// What their paths begin with: "library:/cartpole.xml".
inline constexpr const char* kLibrary = "library:/";

/// The path that a file in `folder` means by this text: absolute (~/robots/arm.xml, too), of the library, or relative
/// to the folder.
inline std::filesystem::path path_from(const std::filesystem::path& folder, const std::string& text) {
  const std::filesystem::path path(with_home(text));
  return path.is_absolute() || text.starts_with(kLibrary) ? path : folder / path;
}

/// The text of the file of this path; empty where there is none.
std::string_view library_text(const std::string& path);

}  // namespace cohort::tasks
