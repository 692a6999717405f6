// A rank is killed; the others keep their process and their memory, and a new one takes its place.
#include <random>

#include <gtest/gtest.h>

#include "cli/training.h"

namespace cohort::testing {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// All files of a checkpoint that hold what was trained.
std::map<std::string, std::string> weights_of(const Training& training, const std::string& name, int step) {
  const fs::path folder = training.outputs() / name / "latest" / "checkpoints" / ("checkpoint-" + std::to_string(step));
  std::map<std::string, std::string> files;
  for (const char* file :
       {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors", "random.safetensors", "rng.safetensors"})
    if (fs::exists(folder / file)) files[file] = text_of(folder / file);
  return files;
}

class TrainRecovery : public ::testing::Test {
 protected:
  static constexpr int kSteps = 200;  // far behind the steps at which a rank is killed

  std::vector<std::string> flags(int ranks, int restarts) const {
    return launch({"--nproc_per_node=" + std::to_string(ranks), "--max-restarts=" + std::to_string(restarts)});
  }
  std::vector<std::string> settings(std::vector<std::string> more = {}) const {
    more.push_back("train.steps=" + std::to_string(kSteps));
    more.push_back("train.ema.enabled=true");
    more.push_back("train.hash_every=50");
    return more;
  }
  void expect_undisturbed(const std::string& name, const std::string& reference) {
    const auto whole = weights_of(training_, reference, kSteps);
    ASSERT_TRUE(whole.contains("model.safetensors") && whole.contains("ema/model.safetensors") &&
                whole.contains("optimizer.safetensors"));
    const auto own = weights_of(training_, name, kSteps);
    for (const auto& [file, bytes] : whole) EXPECT_TRUE(own.contains(file) && own.at(file) == bytes) << file;
    const std::string log = training_.log(name);
    EXPECT_FALSE(contains(log, "resuming from ")) << "no checkpoint is read\n" << log;
    EXPECT_EQ(training_.runs(name).size(), 1u);
  }

  const Training training_;
  std::minstd_rand random_{static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed() + 1)};
};

TEST_F(TrainRecovery, SurvivorsKeepTheirProcessesAndTheWeightsAreThoseOfAnUndisturbedRun) {
  for (const int ranks : {2, 3}) {
    const std::string whole = "whole" + std::to_string(ranks);
    const Outcome undisturbed = run(training_.after(flags(ranks, 0), whole, settings()), Training::variables());
    ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
    for (int victim = 0; victim < ranks; ++victim) {
      const std::string name = "killed" + std::to_string(ranks) + std::to_string(victim);
      Process job(training_.after(flags(ranks, 1), name, settings()), Training::variables());
      const int at_step = 20 + static_cast<int>(random_() % 80);
      ASSERT_TRUE(eventually([&] { return training_.step(name) >= at_step; })) << job.err();
      const std::vector<pid_t> pids = training_.pids(name, ranks);
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
      ::kill(pids[static_cast<std::size_t>(victim)], SIGKILL);
      const Outcome outcome = job.wait();
      EXPECT_TRUE(contains(outcome.err, "ranks are there again after")) << outcome.err;
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(training_.last_pid(name, rank) == pids[static_cast<std::size_t>(rank)], rank != victim) << rank;
      EXPECT_EQ(outcome.code, 0) << name << "\n" << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "rank " + std::to_string(victim) + " (pid")) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "SIGKILL (signal 9)")) << outcome.err;
      expect_undisturbed(name, whole);
      if (HasFailure()) return;
    }
  }
}

TEST_F(TrainRecovery, DeathsDuringARecoveryAndAfterItAreRecoveredToo) {
  constexpr int kRanks = 3;
  const std::vector<std::string> more = settings({"train.gradient_accumulation_steps=2", "train.log_every=7"});
  const Outcome undisturbed = run(training_.after(flags(kRanks, 0), "whole", more), Training::variables());
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  Process job(training_.after(flags(kRanks, 3), "often", more), Training::variables());
  ASSERT_TRUE(eventually([&] { return training_.step("often") >= 28; })) << job.err();
  const std::vector<pid_t> pids = training_.pids("often", kRanks);
  ::kill(pids[0], SIGKILL);
  ASSERT_TRUE(eventually([&] { return contains(job.err(), "recovery 1 of 3"); })) << job.err();
  std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 800));
  ::kill(pids[2], SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "ranks are there again after")) << outcome.err;
  for (const std::size_t rank : {0u, 1u, 2u})
    EXPECT_EQ(training_.last_pid("often", static_cast<int>(rank)) == pids[rank], rank == 1) << rank;
  EXPECT_GE(count_of(outcome.err, "recovery "), 2u) << outcome.err;
  expect_undisturbed("often", "whole");
}

TEST_F(TrainRecovery, ARankThatHangsIsReplacedAsOneThatDied) {
  const Outcome undisturbed = run(training_.after(flags(2, 0), "whole", settings()), Training::variables());
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  std::vector<std::string> impatient = flags(2, 1);
  impatient.push_back("--hang-timeout=2");
  Process job(training_.after(impatient, "stopped", settings()), Training::variables());
  ASSERT_TRUE(eventually([&] { return training_.step("stopped") >= 60; })) << job.err();
  const std::vector<pid_t> pids = training_.pids("stopped", 2);
  ::kill(pids[1], SIGSTOP);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 (pid " + std::to_string(pids[1]) + ") hangs: ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the process is stopped")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "recovery 1 of 1")) << outcome.err;
  expect_undisturbed("stopped", "whole");
}

TEST_F(TrainRecovery, WhenNoRestartIsLeftTheJobEndsWithTheFirstCause) {
  Process job(training_.after(flags(2, 0), "none", {"train.steps=100000"}), Training::variables());
  ASSERT_TRUE(eventually([&] { return training_.step("none") >= 5; })) << job.err();
  ::kill(training_.pids("none", 2)[1], SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 137) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first of 2 ranks; the job was stopped")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
