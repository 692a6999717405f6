/// The files of library/, which are part of the program: tasks, and the models that they name.
#pragma once
#include <string>
#include <string_view>

namespace cohort::tasks {

/// What their paths begin with: "library:/cartpole.xml".
inline constexpr const char* kLibrary = "library:/";

/// The text of the file of this path; empty where there is none.
std::string_view library_text(const std::string& path);

}  // namespace cohort::tasks
