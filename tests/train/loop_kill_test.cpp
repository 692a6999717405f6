#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/philox.h"
#include "support/fresh_folder.h"
#include "support/process.h"

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

pid_t start(const fs::path& folder, int rank, int world, int port, const char* cpu_reduction, const char* pause) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (world > 1) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(world).c_str(), 1);
    ::setenv("LOCAL_WORLD_SIZE", std::to_string(world).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  }
  const char* program = COHORT_BINARY_DIR "/tests/training_to_kill";
  ::execl(program, program, folder.c_str(), cpu_reduction, pause, nullptr);
  ::_exit(127);
}

struct Outcome {
  bool finished = false;  // all ranks ended by themselves, without an error
  bool killed = false;
};

/// Runs a training; kills its last rank when `lines` more steps have been reported (0: never), and then the others, as
/// a launcher does.
Outcome run_training(const fs::path& folder, int world, std::size_t lines, const char* cpu_reduction) {
  fs::create_directories(folder);
  const std::size_t before = lines_of(folder / "metrics").size();
  const int port = testing::free_port();
  const char* const pause =
      lines > 0 ? "15" : "0";  // ms after every step: one that is to be killed does not end before
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(start(folder, rank, world, port, cpu_reduction, pause));
  std::size_t running = ranks.size();
  Outcome outcome{.finished = true};
  while (running > 0) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      --running;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) outcome.finished = false;
      continue;
    }
    if (lines > 0 && !outcome.killed && lines_of(folder / "metrics").size() >= before + lines) {
      outcome.killed = true;
      for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) ::kill(*rank, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return outcome;
}

void resume_again_and_again(int world, const char* cpu_reduction) {
  const fs::path folder = test::fresh_folder(format("killed_{}_{}", world, cpu_reduction));
  ASSERT_TRUE(run_training(folder / "undisturbed", world, 0, cpu_reduction).finished);
  const fs::path killed = folder / "killed";
  const RandomStream random(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                            RandomPurpose::kTest, 0, 0);
  int kills = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::size_t lines = 1 + random.below(i, 30);
    std::printf("kill %d after %d more steps\n", static_cast<int>(i), static_cast<int>(lines));
    const auto outcome = run_training(killed, world, lines, cpu_reduction);
    if (outcome.finished) break;
    ASSERT_TRUE(outcome.killed) << "it failed by itself";
    ++kills;
  }
  EXPECT_GT(kills, 0);
  ASSERT_TRUE(run_training(killed, world, 0, cpu_reduction).finished);
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
    const auto found = expected.find(line.substr(0, line.find(' ')));
    ASSERT_NE(found, expected.end()) << line;
    EXPECT_EQ(line, found->second);
  }
  for (const auto& entry : fs::directory_iterator(killed / "checkpoints")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path() << " was left behind";
  }
}

TEST(KilledTraining, ResumedAgainAndAgainItEndsWithTheBitsOfAnUndisturbedOne) {
  resume_again_and_again(1, "auto");
}

// Three: the sum of three gradients depends on the order in which it is taken, of two it does not.
TEST(KilledTraining, ThreeRanksThatShareMemoryResumeWithTheBitsOfAnUndisturbedRun) {
  resume_again_and_again(3, "shared_memory");
}
TEST(KilledTraining, ThreeRanksOnSocketsResumeWithTheBitsOfAnUndisturbedRun) {
  resume_again_and_again(3, "gloo");
}

}  // namespace
}  // namespace cohort::train
