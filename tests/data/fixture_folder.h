/// The committed fixtures, and folders for a test's own files.
#pragma once
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::data {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(COHORT_SOURCE_DIR) / "tests" / "data" / "fixtures" / name;
}

inline nlohmann::json fixture_json(const std::string& name) {
  return parse_json<nlohmann::json>(read_file(fixture(name)));
}

/// An empty folder that goes away with the object.
class OwnFolder {
 public:
  OwnFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            format("cohort_{}_{}_{}", test->test_suite_name(), test->name(), ::getpid());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cohort::data
