#include "core/files.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/message_of.h"
#include "core/near_file.h"
#include "support/fresh_folder.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

TEST(Files, AtomicWriteReplacesTheWholeFileAndLeavesNothingAside) {
  const fs::path folder = test::fresh_folder("test");
  write_file_atomically(folder / "deep" / "a.txt", "one");
  write_file_atomically(folder / "deep" / "a.txt", "two");
  EXPECT_EQ(read_file(folder / "deep" / "a.txt"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "deep"), fs::directory_iterator()), 1);
}

TEST(Files, AFolderInTheWayStays) {
  // A full disk is tested in tests/train.
  const fs::path folder = test::fresh_folder("full");
  fs::create_directories(folder / "taken" / "inside");
  EXPECT_THROW(write_file_atomically(folder / "taken", "x"), Error);
  EXPECT_TRUE(fs::is_directory(folder / "taken"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Files, WritingFollowsLinksAndKeepsThem) {
  const fs::path folder = test::fresh_folder("links");
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
  const fs::path folder = test::fresh_folder("pipe");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string message = message_of([&] { write_file_atomically(folder / "pipe", "x"); });
  EXPECT_NE(message.find("a pipe or a device"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(Files, AFileThatIsNotCommittedLeavesNothingNotEvenItsFolders) {
  const fs::path folder = test::fresh_folder("dropped");
  {
    AtomicFile file(folder / "new" / "deep" / "a.txt");
    file.write(3, "x");
    EXPECT_TRUE(fs::is_directory(folder / "new" / "deep"));
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Files, TheLongestNameIsWrittenAndALongerOneIsRefusedAtOnce) {
  const fs::path folder = test::fresh_folder("long");
  AtomicFile one(folder / std::string(255, 'n')), two(folder / std::string(255, 'n'));
  one.write(0, "1");
  two.write(0, "2");
  one.commit();
  two.commit();
  EXPECT_EQ(read_file(folder / std::string(255, 'n')), "2");
  const std::string message = message_of([&] { const AtomicFile file(folder / std::string(256, 'n')); });
  EXPECT_NE(message.find("too long"), std::string::npos) << message;
}

class TemporaryFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = make_folder_in_tmp("cohort-files-test");
    if (const char* set = std::getenv("TMPDIR")) before_ = set;
    ::setenv("TMPDIR", base_.c_str(), 1);
  }
  void TearDown() override {
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
    fs::remove_all(base_);
  }
  fs::path base_;
  std::optional<std::string> before_;
};

TEST_F(TemporaryFolders, OfAKilledProcessAreRemovedByTheNextAndOthersStay) {
  fs::create_directory(base_ / "cohort-test-other");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const TemporaryFolder folder("cohort-test");
    write_file_atomically(folder.path() / "inside" / "file", "x");
    const std::string path = folder.path().string();
    if (::write(ends[1], path.data(), path.size()) < 0) ::_exit(1);
    for (;;) ::pause();
  }
  char path[4096] = "";
  ASSERT_GT(::read(ends[0], path, sizeof path - 1), 0);
  ::close(ends[0]), ::close(ends[1]);
  { const TemporaryFolder next("cohort-test"); }
  EXPECT_TRUE(fs::exists(path)) << "its process lives";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  {
    const TemporaryFolder another("cohort-tes");
    EXPECT_TRUE(fs::exists(path)) << "of another prefix";
    const TemporaryFolder next("cohort-test");
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(fs::exists(next.path()));
  }
  EXPECT_TRUE(fs::exists(base_ / "cohort-test-other"));
  fs::remove(base_ / "cohort-test-other");
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(TemporaryFolders, AreNeverTakenFromThoseWhoJustMadeThem) {
  std::vector<std::thread> threads;
  std::atomic<int> lost = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const TemporaryFolder folder("cohort-test");
        lost += !std::ofstream(folder.path() / "file").is_open();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(fs::is_empty(base_));
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

TEST(Files, WhatGoesWhileItIsReadIsNotThere) {
  EXPECT_FALSE(read_file_if_there("/there/is/none"));
  // As a process's files in /proc when it ends: opened, and then an error.
  if (std::filesystem::exists("/proc/self/mem")) EXPECT_FALSE(read_file_if_there("/proc/self/mem"));
  EXPECT_TRUE(read_file_if_there(__FILE__));
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

TEST(Files, AMissingFileIsAnsweredWithTheNameThatIsNear) {
  const fs::path folder = test::fresh_folder("near");
  write_file_atomically(folder / "shop.csv", "a");
  write_file_atomically(folder / "runs" / "arm" / "config.json", "{}");
  EXPECT_EQ(near_file(folder / "shp.csv"), "; did you mean " + (folder / "shop.csv").string() + "?");
  EXPECT_EQ(near_file(folder / "rnus" / "arm"), "; did you mean " + (folder / "runs").string() + "?")
      << "the folder is what is misspelt";
  EXPECT_EQ(near_file(folder / "shop.csv"), "") << "it is there";
  EXPECT_EQ(near_file(folder / "weather.parquet"), "") << "nothing is near";
  const std::string message = message_of([&] { read_file(folder / "shp.csv"); });
  EXPECT_NE(message.find("shop.csv?"), std::string::npos) << message;
}

TEST(Files, SymlinkIsReplacedInOneStep) {
  const fs::path folder = test::fresh_folder("link");
  replace_symlink("checkpoint-1", folder / "last");
  replace_symlink("checkpoint-2", folder / "last");
  EXPECT_EQ(fs::read_symlink(folder / "last"), "checkpoint-2");
}

}  // namespace
}  // namespace cohort
