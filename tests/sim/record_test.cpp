// Recordings, and the archives that hold them.
#include "sim/host/record.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/message_of.h"
#include "formats/zip_archive.h"
#include "sim/host_memory.h"
#include "support/command.h"

namespace cohort::sim {
namespace {
namespace fs = std::filesystem;

class Recording : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    scene_.add_entity(Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/walker.xml"});
    scene_.build(3);
  }
  void TearDown() override { fs::remove_all(folder_); }
  /// Records `frames` frames of the same motion, and announces more or fewer.
  void record(const std::string& name, int frames, std::int64_t announced) {
    scene_.reset();
    StateRecorder recorder(scene_, folder_ / name, announced);
    for (int i = 0; i < frames; ++i) {
      recorder.add();
      scene_.set_random_ctrl(i);
      scene_.step();
    }
    recorder.save();
  }
  fs::path folder_ = fs::temp_directory_path() / format("cohort_recording_{}", ::getpid());
  Scene scene_;
};

TEST_F(Recording, FewerFramesThanAnnouncedMakeTheSameFile) {
  // Enough that the arrays are copied in several pieces.
  constexpr int kFrames = 8000;
  record("exact.npz", kFrames, kFrames);
  record("fewer.npz", kFrames, 10 * kFrames + 1);
  EXPECT_GT(fs::file_size(folder_ / "exact.npz"), 3'000'000u);
  EXPECT_TRUE(read_file(folder_ / "exact.npz") == read_file(folder_ / "fewer.npz"));
  record("none.npz", 0, 5);
  const test::CommandOutcome read =
      test::run_command(std::string(std::getenv("COHORT_PYTHON")) +
                        " -c 'import numpy as n,sys,zipfile as z; print([z.ZipFile(f).testzip() for f in "
                        "sys.argv[1:]], [n.load(f)[\"qvel\"].shape for f in sys.argv[1:]])' " +
                        (folder_ / "fewer.npz").string() + " " + (folder_ / "none.npz").string());
  EXPECT_EQ(read.output, "[None, None] [(8000, 3, 13), (0, 3, 13)]\n");
}

TEST_F(Recording, WithoutSavingNothingRemains) {
  {
    StateRecorder recorder(scene_, folder_ / "new" / "run.npz", 4);
    recorder.add();
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Recording, WhatTheDiskCannotHoldIsRefusedBeforehand) {
  for (const char* name : {"new/run.npz", "new/run.csv"}) {
    // Numbers whose product is no 64-bit number.
    const std::string message = message_of(
        [&] { const StateRecorder recorder(scene_, folder_ / name, std::numeric_limits<std::int64_t>::max()); });
    EXPECT_NE(message.find("the disk has"), std::string::npos) << message;
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

/// While it lives, files end at so many bytes: a disk that is full there.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(Recording, ADiskThatBecomesFullLeavesTheFirstFramesOfACsv) {
  // In the first piece that is written, in a later one, and when the last is.
  record("whole.csv", 6000, 6000);
  const std::string whole = read_file(folder_ / "whole.csv");
  ASSERT_GT(whole.size(), 3'000'000u);
  for (const std::size_t limit : {std::size_t{100'000}, std::size_t{2'500'000}, whole.size() - 1000}) {
    std::string message;
    {
      const FileLimit full(limit);
      message = message_of([&] { record("cut.csv", 6000, 6000); });
    }
    const std::string cut = read_file(folder_ / "cut.csv");
    EXPECT_LE(cut.size(), limit);
    EXPECT_GT(cut.size(), limit - 2000) << "all whole frames are kept";
    EXPECT_TRUE(whole.starts_with(cut));
    const auto rows = std::count(cut.begin(), cut.end(), '\n') - 1;
    EXPECT_EQ(rows % 3, 0);
    EXPECT_NE(message.find(format("cut.csv holds the first {} of ", rows / 3)), std::string::npos) << message;
    fs::remove(folder_ / "cut.csv");
  }
  // Not even one frame.
  const FileLimit full(100);
  const std::string message = message_of([&] { record("none.csv", 6000, 6000); });
  EXPECT_NE(message.find("nothing of the recording is kept"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(folder_ / "none.csv"));
}

TEST_F(Recording, AnNpzTakesItsRoomAtTheBeginning) {
  {
    const StateRecorder recorder(scene_, folder_ / "run.npz", 5000);
    struct stat status {};
    const fs::path aside = fs::directory_iterator(folder_)->path();
    ASSERT_EQ(::stat(aside.c_str(), &status), 0);
    EXPECT_GE(status.st_blocks * 512, 5000 * 3 * 4 * scene_.info().nq);
  }
  const FileLimit full(100'000);
  const std::string message = message_of([&] { const StateRecorder recorder(scene_, folder_ / "run.npz", 5000); });
  EXPECT_NE(message.find("run.npz"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST(ZipArchive, SizesBeyondFourGibibytesAreThoseThatPythonReads) {
  const fs::path path = fs::temp_directory_path() / format("cohort_zip_{}.zip", ::getpid());
  {
    // What is not written takes no room on the disk.
    ZipEntry large{"large", 5'000'000'000, 0, 0}, small{"small", 5, 0, zip_crc(0, "hello")};
    AtomicFile file(path);
    const std::string first = zip_local_header(large);
    file.write(0, first);
    small.offset = first.size() + large.size;
    const std::string second = zip_local_header(small) + "hello";
    const ZipEntry entries[] = {large, small};
    file.write(small.offset, second + zip_directory(entries, small.offset + second.size()));
    file.commit();
  }
  const test::CommandOutcome read = test::run_command(
      std::string(std::getenv("COHORT_PYTHON")) +
      " -c 'import zipfile,sys; z=zipfile.ZipFile(sys.argv[1]); print([i.file_size for i in z.infolist()], "
      "z.read(\"small\"), z.open(\"large\").read(3))' " +
      path.string());
  fs::remove(path);
  EXPECT_EQ(read.output, "[5000000000, 5] b'hello' b'\\x00\\x00\\x00'\n");
}

TEST(HostMemory, AVariableLimitsAProcess) {
  constexpr double kLimit = 1e9;
  ::setenv(kHostMemoryVariable, "1e9", 1);
  const double limited = available_host_memory();
  ::setenv(kHostMemoryVariable, "much", 1);
  const std::string message = message_of([] { available_host_memory(); });
  ::unsetenv(kHostMemoryVariable);
  EXPECT_LT(limited, kLimit);
  EXPECT_NE(message.find("COHORT_HOST_MEMORY=much"), std::string::npos) << message;
}

}  // namespace
}  // namespace cohort::sim
