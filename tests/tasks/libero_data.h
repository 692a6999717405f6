// Recorded LIBERO tasks, for tests.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace cohort::test {

inline std::filesystem::path libero_data() {
  const char* shared = std::getenv("COHORT_SHARED");
  return std::filesystem::path(shared ? shared : COHORT_SOURCE_DIR "/../shared") / "data" / "libero";
}

/// The folders of tasks, by name; none where the data are not there.
inline std::vector<std::filesystem::path> libero_folders() {
  std::vector<std::filesystem::path> folders;
  if (!std::filesystem::exists(libero_data())) return folders;
  for (const auto& entry : std::filesystem::directory_iterator(libero_data()))
    if (std::filesystem::exists(entry.path() / "task.json")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace cohort::test

#define COHORT_NEED_LIBERO_DATA() \
  if (cohort::test::libero_folders().empty()) GTEST_SKIP() << "COHORT_SHARED names no folder with data/libero"
