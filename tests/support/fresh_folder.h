/// A folder of its own for a test, empty at its beginning; it stays for whoever looks into a failure.
#pragma once
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace cohort::test {

inline std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("cohort_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace cohort::test
