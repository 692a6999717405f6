#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files.h"
#include "core/philox.h"
#include "train/python_peer.h"

namespace cohort::train {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 90;  // as in training_to_kill.cpp

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Starts the training; kills it when it has written `lines` more lines (0: never). Returns its wait status.
int run_child(const fs::path& folder, std::size_t lines) {
  fs::create_directories(folder);
  const std::size_t before = lines_of(folder / "metrics").size();
  const std::string program = COHORT_BINARY_DIR "/tests/training_to_kill";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program.c_str(), program.c_str(), folder.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  for (;;) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    if (lines > 0 && lines_of(folder / "metrics").size() >= before + lines) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(KilledTraining, ResumedAgainAndAgainItEndsWithTheBitsOfAnUndisturbedOne) {
  const fs::path folder = fresh_folder("killed");
  ASSERT_EQ(run_child(folder / "undisturbed", 0), 0);
  const fs::path killed = folder / "killed";
  const RandomStream random(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                            RandomPurpose::kTest, 0, 0);
  int kills = 0;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::size_t lines = 1 + random.below(i, 25);
    SCOPED_TRACE(format("kill {} after {} steps", i, lines));
    const int status = run_child(killed, lines);
    if (WIFEXITED(status)) break;
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ++kills;
  }
  EXPECT_GT(kills, 0);
  ASSERT_EQ(run_child(killed, 0), 0);
  const auto last = format("checkpoint-{}", kSteps);
  for (const char* file : {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors", "rng.safetensors",
                           "trainer_state.json"}) {
    EXPECT_EQ(read_file(killed / "checkpoints" / last / file),
              read_file(folder / "undisturbed" / "checkpoints" / last / file))
        << file;
  }
  std::map<std::string, std::string> expected;
  for (const auto& line : lines_of(folder / "undisturbed" / "metrics")) expected[line.substr(0, line.find(' '))] = line;
  EXPECT_EQ(expected.size(), static_cast<std::size_t>(kSteps));
  const auto lines = lines_of(killed / "metrics");
  EXPECT_GE(lines.size(), static_cast<std::size_t>(kSteps));
  for (const auto& line : lines) {
    // A line that the kill cut short ends the file of that run; the next run went on behind it.
    if (const auto found = expected.find(line.substr(0, line.find(' '))); found != expected.end()) {
      EXPECT_EQ(line, found->second);
    }
  }
  for (const auto& entry : fs::directory_iterator(killed / "checkpoints")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path() << " was left behind";
  }
}

}  // namespace
}  // namespace cohort::train
