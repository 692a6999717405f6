/// A folder of its own for a test, empty at its beginning; it stays for whoever looks into a failure.
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace cohort::test {

/// In the build's folder, by the test's name: other tests, and the same test of another build, have others.
inline std::filesystem::path fresh_folder(const std::string& name) {
  std::string own = name;
  if (const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info())
    own = std::string(info->test_suite_name()) + "." + info->name() + "." + name;
  std::replace(own.begin(), own.end(), '/', '_');
  const auto folder = std::filesystem::path(COHORT_BINARY_DIR) / "test-output" / own;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace cohort::test
