#include "report/run_folder.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

class RunFolderTest : public test::TestFolder {};

TEST_F(RunFolderTest, IsNamedByDateAndTimeAndLatestPointsToIt) {
  const RunFolder run = RunFolder::create(folder_ / "outputs", "informer");
  const std::string name = run.path().filename().string();
  ASSERT_EQ(name.size(), std::string("2026-11-21_09-30-07").size()) << name;
  EXPECT_EQ(name[4], '-');
  EXPECT_EQ(name[10], '_');
  EXPECT_EQ(run.path().parent_path(), folder_ / "outputs" / "informer");
  EXPECT_EQ(fs::read_symlink(folder_ / "outputs" / "informer" / "latest").string(), name);
}

TEST_F(RunFolderTest, RunsThatStartInTheSameSecondGetFoldersOfTheirOwn) {
  // Eight processes at once, each making five folders for the same moment.
  const auto now = std::chrono::system_clock::now();
  constexpr int kProcesses = 8, kEach = 5;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0; i < kEach; ++i) {
        const RunFolder run = RunFolder::create(folder_, "x", now);
        std::ofstream(run.path() / format("{}-{}", ::getpid(), i)) << "mine";
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  int folders = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "x")) {
    if (entry.is_symlink()) continue;
    ++folders;
    EXPECT_EQ(std::distance(fs::directory_iterator(entry), fs::directory_iterator()), 1) << entry.path();
  }
  EXPECT_EQ(folders, kProcesses * kEach);
}

TEST_F(RunFolderTest, KeepsConfigurationAndOverrides) {
  const RunFolder run = RunFolder::create(folder_, "group/informer");
  const std::vector<std::string> overrides = {"data.path=a b.csv", "train.lr=0.1"};
  run.save_configuration("{\"a\": 1}\n", overrides);
  EXPECT_EQ(read_file(run.config_file()), "{\"a\": 1}\n");
  EXPECT_EQ(read_file(run.overrides_file()), "data.path=a b.csv\ntrain.lr=0.1\n");
}

TEST_F(RunFolderTest, AResumeKeepsTheOldConfigurationWhereTheNewOneDiffers) {
  const RunFolder created = RunFolder::create(folder_, "x");
  created.save_configuration("{\"a\": 1}", std::vector<std::string>{"a=1"});
  const RunFolder run = RunFolder::open(created.path());
  run.save_configuration("{\"a\": 1}", {});
  EXPECT_FALSE(fs::exists(run.path() / "config.1.json"));
  run.save_configuration("{\"a\": 2}", std::vector<std::string>{"a=2"});
  run.save_configuration("{\"a\": 3}", std::vector<std::string>{"a=3"});
  EXPECT_EQ(read_file(run.path() / "config.1.json"), "{\"a\": 1}");
  EXPECT_EQ(read_file(run.path() / "config.2.json"), "{\"a\": 2}");
  EXPECT_EQ(read_file(run.config_file()), "{\"a\": 3}");
  const std::string overrides = read_file(run.overrides_file());
  EXPECT_TRUE(overrides.starts_with("a=1\n# resumed ")) << overrides;
  EXPECT_TRUE(overrides.ends_with("\na=3\n")) << overrides;
}

TEST_F(RunFolderTest, ListsItsFilesButFollowsNoLinks) {
  const RunFolder run = RunFolder::create(folder_, "x");
  fs::create_directories(run.checkpoints() / "checkpoint-5");
  std::ofstream(run.checkpoints() / "checkpoint-5" / "model.safetensors") << "x";
  fs::create_directory_symlink("checkpoint-5", run.checkpoints() / "last");
  fs::create_symlink("nowhere", run.path() / "dangling");
  std::ofstream(run.log_file()) << "x";
  EXPECT_EQ(run.files(), (std::vector<fs::path>{"checkpoints/checkpoint-5/model.safetensors", "training.log"}));
}

TEST_F(RunFolderTest, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"", "../x", "/tmp/x", "a/../../b", "a\nb", "./x"})
    EXPECT_THROW(RunFolder::create(folder_, name), Error) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 0);
}

TEST_F(RunFolderTest, AFolderThatCannotBeMadeIsNamedWithTheReason) {
  std::ofstream(folder_ / "outputs") << "a file in the way";
  const std::string text = message_of([&] { RunFolder::create(folder_ / "outputs", "informer"); });
  EXPECT_NE(text.find("outputs/informer"), std::string::npos) << text;
  EXPECT_NE(text.find("Not a directory"), std::string::npos) << text;
  EXPECT_THROW(RunFolder::create("/proc", "informer"), Error);
  EXPECT_THROW(RunFolder::open(folder_ / "missing"), Error);
}

TEST_F(RunFolderTest, SomethingCalledLatestIsLeftAlone) {
  fs::create_directories(folder_ / "x" / "latest" / "mine");
  const RunFolder run = RunFolder::create(folder_, "x");
  EXPECT_TRUE(fs::is_directory(folder_ / "x" / "latest" / "mine"));
  EXPECT_TRUE(fs::is_directory(run.path()));
}

TEST_F(RunFolderTest, AFolderThatIsNotKeptGoesAgainAndLatestPointsToTheOneBefore) {
  fs::path kept;
  {
    const ClaimedFolder nothing(folder_ / "outputs" / "deep", "x");
    EXPECT_TRUE(fs::is_directory(nothing.folder().path()));
  }
  EXPECT_FALSE(fs::exists(folder_ / "outputs")) << "made for it";
  {
    ClaimedFolder first(folder_ / "outputs", "x");
    first.keep();
    kept = first.folder().path();
  }
  {
    const ClaimedFolder second(folder_ / "outputs", "x");
    std::ofstream(second.folder().log_file(), std::ios::app) << "a line";
    EXPECT_EQ(fs::canonical(folder_ / "outputs" / "x" / "latest"), fs::canonical(second.folder().path()));
  }
  EXPECT_EQ(fs::canonical(folder_ / "outputs" / "x" / "latest"), fs::canonical(kept));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "outputs" / "x"), fs::directory_iterator()), 2);
  { const ClaimedFolder resumed(kept); }
  EXPECT_TRUE(fs::is_directory(kept)) << "what is resumed stays";
}

TEST_F(RunFolderTest, AFolderIsClaimedByOneAtATime) {
  fs::path path;
  {
    ClaimedFolder claimed(folder_, "x");
    claimed.keep();
    path = claimed.folder().path();
    const std::string text = message_of([&] { const ClaimedFolder other(path); });
    EXPECT_NE(text.find("another process is training in " + path.string()), std::string::npos) << text;
  }
  EXPECT_FALSE(fs::exists(path / "run.lock")) << "it goes with the claim";
  const ClaimedFolder afterwards(path);
  EXPECT_EQ(afterwards.folder().path(), path);
}

/// A process that holds a folder until it is killed. `beat`: how often it says that it is alive.
pid_t holder_of(const fs::path& folder, const ClaimLimits& limits = {}) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunClaim claim(folder, limits);
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char told = 0;
  EXPECT_EQ(::read(ready[0], &told, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

void wait_until_stopped(pid_t child) {
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
}

TEST_F(RunFolderTest, TheHolderOfAFolderIsNamedWithWhatToDo) {
  const pid_t child = holder_of(folder_);
  const std::string text = message_of([&] { const RunClaim other(folder_); });
  EXPECT_NE(text.find(format(": pid {} on ", child)), std::string::npos) << text;
  EXPECT_NE(text.find(", since 20"), std::string::npos) << text;
  EXPECT_NE(text.find(format("Wait until it has ended, or stop it there with `kill {}`", child)), std::string::npos)
      << text;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const RunClaim afterwards(folder_);
}

TEST_F(RunFolderTest, AHolderThatIsStoppedLosesTheFolderAndEndsWhenItGoesOn) {
  const pid_t child = holder_of(folder_, {.beat = std::chrono::milliseconds(20)});
  ::kill(child, SIGSTOP);
  wait_until_stopped(child);
  {
    const RunClaim claim(folder_);
    ::kill(child, SIGCONT);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    EXPECT_NE(message_of([&] { const RunClaim other(folder_); }), "") << "the new holder's claim is untouched";
  }
  EXPECT_FALSE(fs::exists(folder_ / "run.lock"));
}

/// As of another machine: its processes cannot be looked at, only its beats.
void pretend_another_machine(const fs::path& folder) {
  const fs::path file = folder / "run.lock";
  std::string text = read_file(file);
  const std::string name = "\"processes\":\"";
  const std::size_t at = text.find(name) + name.size();
  text[at] = text[at] == '0' ? '1' : '0';
  std::fstream(file, std::ios::in | std::ios::out).write(text.data(), static_cast<std::streamsize>(text.size()));
}

TEST_F(RunFolderTest, AHolderOnAnotherMachineKeepsTheFolderWhileItBeatsAndLosesItWhenItIsSilent) {
  // Of these, one beats in a way that this test writes, the other never does.
  const ClaimLimits silent{.beat = std::chrono::hours(1), .silence = std::chrono::milliseconds(300)};
  const pid_t child = holder_of(folder_, silent);
  pretend_another_machine(folder_);
  std::atomic<bool> done{false};
  std::thread beats([&] {
    for (int beat = 10; !done; ++beat) {
      std::fstream file(folder_ / "run.lock", std::ios::in | std::ios::out);
      const std::string text = read_file(folder_ / "run.lock");
      file.seekp(static_cast<std::streamoff>(text.size() - 5));
      file << 10 + beat % 80;
      file.close();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const std::string text = message_of(
      [&] { const RunClaim other(folder_, {.beat = std::chrono::hours(1), .silence = std::chrono::minutes(5)}); });
  done = true;
  beats.join();
  EXPECT_NE(text.find(format("pid {} on ", child)), std::string::npos) << text;
  {
    const RunClaim taken(folder_, silent);
    EXPECT_NE(message_of([&] { const RunClaim other(folder_); }).find(format("pid {} on ", ::getpid())),
              std::string::npos);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace cohort::report
