#include "data/kept_files.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "core/log.h"
#include "data/fixture_folder.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

class KeptFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", (folder_.path() / "cache").c_str(), 1);
    fs::create_directories(data_);
    std::ofstream(data_ / "lift.hdf5") << "data";
  }
  void TearDown() override {
    if (before_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  static std::size_t count(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
  }
  OwnFolder folder_;
  const fs::path data_ = folder_.path() / "shared/robot";
  std::string before_;
};

TEST_F(KeptFilesTest, TheDatasFolderStaysAsItWasAndTheLogSaysWhereAFileWent) {
  const std::string log_file = (folder_.path() / "run.log").string();
  log::add_file(log_file);
  for (const fs::path& data : {data_, data_ / "lift.hdf5"}) {
    const KeptFiles files(data, "auto");
    EXPECT_FALSE(files.read("dataset_statistics_1.json"));
    files.write("dataset_statistics_1.json", "{}", "statistics of lift");
    EXPECT_EQ(count(data_), 1u);
    const auto kept = files.read("dataset_statistics_1.json");
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->path, folder_.path() / "cache/cohort/dataset_statistics_1.json");
    fs::remove(kept->path);
  }
  log::flush();
  log::remove_file(log_file);
  EXPECT_NE(read_file(log_file).find("statistics of lift: kept in " +
                                     (folder_.path() / "cache/cohort/dataset_statistics_1.json").string()),
            std::string::npos);
}

TEST_F(KeptFilesTest, WhatAlreadyLiesBesideTheDataIsRead) {
  std::ofstream(data_ / "dataset_statistics_1.json") << "{\"old\": 1}";
  const auto kept = KeptFiles(data_, "auto").read("dataset_statistics_1.json");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->content, "{\"old\": 1}");
}

TEST_F(KeptFilesTest, InARunOfOnesOwnFilesLieBesideTheData) {
  const fs::path run = folder_.path() / "outputs/demo/2026", recorded = run / "recorded/push_t/1.0.0";
  fs::create_directories(recorded);
  std::ofstream(run / "config.json") << "{}";
  KeptFiles(recorded, "auto").write("a.json", "1", "a");
  EXPECT_FALSE(fs::exists(recorded / "a.json")) << "no run without its log";
  std::ofstream(run / "training.log") << "";
  KeptFiles(recorded, "auto").write("a.json", "1", "a");
  EXPECT_TRUE(fs::exists(recorded / "a.json"));
}

TEST_F(KeptFilesTest, AFolderOfOnesChoiceAndNeverAreObeyed) {
  KeptFiles(data_, (folder_.path() / "mine").string()).write("a.json", "1", "a");
  EXPECT_TRUE(fs::exists(folder_.path() / "mine/a.json"));
  const KeptFiles never(data_, "never");
  EXPECT_FALSE(never.any());
  never.write("a.json", "1", "a");
  EXPECT_EQ(count(data_), 1u);
  EXPECT_FALSE(fs::exists(folder_.path() / "cache"));
}

}  // namespace
}  // namespace cohort::data
