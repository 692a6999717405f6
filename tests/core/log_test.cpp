#include "core/log.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

/// Standard error goes to a file while this lives.
class StandardError {
 public:
  explicit StandardError(const fs::path& path) : path_(path), saved_(::dup(2)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(fd, 2);
    ::close(fd);
  }
  ~StandardError() { restore(); }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  std::string text() {
    restore();
    return read_file(path_);
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    log::flush();
    ::dup2(saved_, 2);
    ::close(saved_);
    saved_ = -1;
  }
  fs::path path_;
  int saved_;
};

class Log : public ::testing::Test {
 protected:
  /// The first file of this process: what it gets is looked at by one of the tests, and the others begin without it.
  static void SetUpTestSuite() {
    const fs::path first = fs::path(::testing::TempDir()) / format("cohort_log_first_{}", ::getpid());
    log::warning("before any file");
    log::debug("too quiet before any file");
    log::add_file(first.string());
    log::info("behind it");
    log::remove_file(first.string());
    first_file_ = read_file(first);
    fs::remove(first);
  }
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / format("cohort_log_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    log::remove_file(file());
    log::set_console(true);
    log::set_level(log::Level::kInfo);
    log::set_console_guard(nullptr, nullptr);
    fs::remove_all(folder_);
  }
  std::string file() const { return (folder_ / "deep" / "training.log").string(); }
  fs::path folder_;
  static inline std::string first_file_;
};

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(Log, LinesGoToStandardErrorAndToTheFile) {
  StandardError error(folder_ / "stderr");
  log::add_file(file());
  log::info("loss {:.2f}", 0.5);
  log::debug("too quiet");
  const std::string console = error.text();
  EXPECT_TRUE(console.ends_with(" info loss 0.50\n")) << console;
  EXPECT_EQ(read_file(file()), console);
}

TEST_F(Log, TheFirstFileAlsoGetsWhatWasWrittenBeforeIt) {
  const auto before = first_file_.find(" warning before any file\n"), behind = first_file_.find(" info behind it\n");
  EXPECT_NE(before, std::string::npos) << first_file_;
  EXPECT_NE(behind, std::string::npos) << first_file_;
  EXPECT_LT(before, behind);
  EXPECT_EQ(first_file_.find("too quiet"), std::string::npos) << first_file_;
}

TEST_F(Log, WhatIsForTheFilesAloneIsNotOnStandardError) {
  StandardError error(folder_ / "stderr");
  log::add_file(file());
  log::write_to_files(log::Level::kError, "said in another way");
  EXPECT_EQ(error.text(), "");
  EXPECT_TRUE(read_file(file()).ends_with(" error said in another way\n")) << read_file(file());
}

TEST_F(Log, AFileAddedTwiceGetsEveryLineOnceAndAResumedOneIsAppendedTo) {
  StandardError error(folder_ / "stderr");
  log::add_file(file());
  log::add_file(file());
  log::info("one");
  log::remove_file(file());
  log::info("not in the file");
  log::add_file(file());
  log::info("two");
  error.text();
  EXPECT_EQ(lines_in(read_file(file())), 2);
}

TEST_F(Log, OtherRanksKeepTheConsoleQuietButWarningsAndTheFileGetAll) {
  StandardError error(folder_ / "stderr");
  log::add_file(file());
  log::set_console(false);
  log::info("a repetition");
  log::warning("only here");
  const std::string console = error.text();
  EXPECT_EQ(lines_in(console), 1);
  EXPECT_NE(console.find("only here"), std::string::npos);
  EXPECT_EQ(lines_in(read_file(file())), 2);
}

TEST_F(Log, AFullDiskIsSaidOnceAndDoesNotThrow) {
  StandardError error(folder_ / "stderr");
  log::add_file("/dev/full");
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(log::info("line {}", i));
  EXPECT_NO_THROW(log::flush());
  log::remove_file("/dev/full");
  const std::string console = error.text();
  EXPECT_EQ(lines_in(console), 4) << console;
  EXPECT_NE(console.find("/dev/full"), std::string::npos);
  EXPECT_NE(console.find("No space left on device"), std::string::npos) << console;
}

TEST_F(Log, AFileThatCannotBeOpenedIsAnErrorWithItsPath) {
  try {
    log::add_file("/proc/no/such/training.log");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("/proc/no/such/training.log"), std::string::npos) << e.what();
  }
}

TEST_F(Log, LinesFromManyThreadsStayWhole) {
  StandardError error(folder_ / "stderr");
  log::add_file(file());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) log::info("thread {} says {} and nothing else", t, i);
    });
  for (std::thread& thread : threads) thread.join();
  error.text();
  const std::string text = read_file(file());
  EXPECT_EQ(lines_in(text), 400);
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_TRUE(std::string_view(text).substr(begin, end - begin).ends_with("and nothing else"));
}

}  // namespace
}  // namespace cohort
