#include "core/files.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

TEST(Files, AtomicWriteReplacesTheWholeFileAndLeavesNothingAside) {
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_test";
  fs::remove_all(folder);
  write_file_atomically(folder / "deep" / "a.txt", "one");
  write_file_atomically(folder / "deep" / "a.txt", "two");
  EXPECT_EQ(read_file(folder / "deep" / "a.txt"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "deep"), fs::directory_iterator()), 1);
}

TEST(Files, AFailedRenameKeepsWhatWasThere) {
  // A folder in the way refuses the rename, after everything has been written (a full disk is tested in tests/train).
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_full";
  fs::remove_all(folder);
  fs::create_directories(folder / "taken" / "inside");
  EXPECT_THROW(write_file_atomically(folder / "taken", "x"), Error);
  EXPECT_TRUE(fs::is_directory(folder / "taken"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Files, ReadingAMissingFileNamesIt) {
  try {
    read_file("/nowhere/at/all.csv");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("/nowhere/at/all.csv"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("No such file"), std::string::npos);
  }
}

TEST(Files, SymlinkIsReplacedInOneStep) {
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_link";
  fs::remove_all(folder);
  fs::create_directories(folder);
  replace_symlink("checkpoint-1", folder / "last");
  replace_symlink("checkpoint-2", folder / "last");
  EXPECT_EQ(fs::read_symlink(folder / "last"), "checkpoint-2");
}

}  // namespace
}  // namespace cohort
