#include "core/files.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/message_of.h"

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

TEST(Files, AFolderInTheWayStays) {
  // A full disk is tested in tests/train.
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_full";
  fs::remove_all(folder);
  fs::create_directories(folder / "taken" / "inside");
  EXPECT_THROW(write_file_atomically(folder / "taken", "x"), Error);
  EXPECT_TRUE(fs::is_directory(folder / "taken"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Files, WritingFollowsLinksAndKeepsThem) {
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_links";
  fs::remove_all(folder);
  fs::create_directories(folder / "real");
  write_file_atomically(folder / "real" / "a.txt", "old");
  fs::create_symlink("real/a.txt", folder / "direct");
  fs::create_symlink("direct", folder / "twice");
  fs::create_symlink("real/none/b.txt", folder / "dangling");
  fs::create_symlink("circle", folder / "circle");
  write_file_atomically(folder / "twice", "new");
  write_file_atomically(folder / "dangling", "b");
  EXPECT_TRUE(fs::is_symlink(folder / "twice") && fs::is_symlink(folder / "direct"));
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(read_file(folder / "real" / "a.txt"), "new");
  EXPECT_EQ(read_file(folder / "real" / "none" / "b.txt"), "b");
  const std::string message = message_of([&] { write_file_atomically(folder / "circle", "x"); });
  EXPECT_NE(message.find("in a circle"), std::string::npos) << message;
}

TEST(Files, PipesAreNotReplaced) {
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_pipe";
  fs::remove_all(folder);
  fs::create_directories(folder);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string message = message_of([&] { write_file_atomically(folder / "pipe", "x"); });
  EXPECT_NE(message.find("a pipe or a device"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(Files, AFileThatIsNotCommittedLeavesNothingNotEvenItsFolders) {
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_dropped";
  fs::remove_all(folder);
  fs::create_directories(folder);
  {
    AtomicFile file(folder / "new" / "deep" / "a.txt");
    file.write(3, "x");
    EXPECT_TRUE(fs::is_directory(folder / "new" / "deep"));
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Files, TheLongestNameIsWrittenAndALongerOneIsRefusedAtOnce) {
  const fs::path folder = fs::path(testing::TempDir()) / "cohort_files_long";
  fs::remove_all(folder);
  fs::create_directories(folder);
  AtomicFile one(folder / std::string(255, 'n')), two(folder / std::string(255, 'n'));
  one.write(0, "1");
  two.write(0, "2");
  one.commit();
  two.commit();
  EXPECT_EQ(read_file(folder / std::string(255, 'n')), "2");
  const std::string message = message_of([&] { const AtomicFile file(folder / std::string(256, 'n')); });
  EXPECT_NE(message.find("too long"), std::string::npos) << message;
}

TEST(Files, ATemporaryFolderThatCannotBeMadeNamesTheVariable) {
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before ? before : "";
  ::setenv("TMPDIR", "/nonexistent", 1);
  const std::string message = message_of([] { const TemporaryFolder folder("cohort-test"); });
  before ? ::setenv("TMPDIR", saved.c_str(), 1) : ::unsetenv("TMPDIR");
  EXPECT_NE(message.find("/nonexistent"), std::string::npos) << message;
  EXPECT_NE(message.find("TMPDIR"), std::string::npos) << message;
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
