// Jobs that are started again: by torchrun, by `cohort launch`, by Slurm, by hand. They go on with their own run.
#include <gtest/gtest.h>

#include "cli/training.h"

namespace cohort::testing {
namespace {

const std::vector<std::string> kTorchrun = {
    python_path(), "-m",         "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1",
    "--no-python", cohort_path()};
const std::vector<std::string> kLaunch = launch({"--nproc_per_node=2", "--max-restarts=1", "--recover=checkpoint"});

/// "step N: parameters HASH", the last one.
std::string last_hash(const std::string& log) {
  const std::size_t at = log.rfind(": parameters ");
  return at == std::string::npos ? "" : log.substr(at + 13, 16);
}

/// Either rank is killed; the run's log holds what both attempts said, whatever the launcher shows.
void a_killed_rank_is_replaced(const std::vector<std::string>& launcher, const char* what) {
  const Training training;
  const std::vector<std::string> length = {"train.steps=160", "train.checkpoint.every=20"};
  const Outcome whole = run(training.after(launch({"--nproc_per_node=2"}), "whole", length), Training::variables());
  ASSERT_EQ(whole.code, 0) << whole.err;

  for (const std::size_t victim : {0u, 1u}) {
    const std::string name = "killed" + std::to_string(victim);
    Process job(training.after(launcher, name, length), Training::variables());
    ASSERT_TRUE(eventually([&] { return training.step(name) >= 45; })) << job.err();
    ::kill(training.pids(name, 2)[victim], SIGKILL);
    const Outcome outcome = job.wait();
    EXPECT_EQ(outcome.code, 0) << what << ", rank " << victim << "\n" << outcome.err;
    EXPECT_EQ(training.runs(name).size(), 1u) << "a restart begins no new run";
    const std::string log = training.log(name);
    EXPECT_TRUE(contains(log, "restart 1 of the job: going on with its run ")) << log;
    EXPECT_TRUE(contains(log, "resuming from ")) << log;
    EXPECT_FALSE(last_hash(log).empty());
    EXPECT_EQ(last_hash(log), last_hash(training.log("whole"))) << "the bits of the undisturbed run";
    for (const char* limit : {"timeout=1800000", "did not take part"})  // "1800" alone stands in times and losses too.
      EXPECT_FALSE(contains(outcome.err, limit)) << "what fails at once is no time limit:\n" << outcome.err;
  }
}

TEST(TrainRestart, UnderTorchrunAKilledRankIsReplacedAndTheRunGoesOn) {
  a_killed_rank_is_replaced(kTorchrun, "torchrun");
}

TEST(TrainRestart, UnderCohortLaunchAKilledRankIsReplacedAndTheRunGoesOn) {
  a_killed_rank_is_replaced(kLaunch, "cohort launch");
}

TEST(TrainRestart, BeforeTheFirstCheckpointItBeginsAgainInTheSameFolder) {
  for (const auto& launcher : {kTorchrun, kLaunch}) {
    const Training training;
    Process job(training.after(launcher, "early", {"train.steps=100"}), Training::variables());
    ASSERT_TRUE(eventually([&] { return training.step("early") >= 3; })) << job.err();
    ::kill(training.pids("early", 2)[1], SIGKILL);
    const Outcome outcome = job.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(training.runs("early").size(), 1u);
    const std::string log = training.log("early");
    EXPECT_TRUE(contains(log, "training begins at its first step")) << log;
    EXPECT_TRUE(fs::exists(training.outputs() / "early" / "latest" / "checkpoints" / "checkpoint-100"));
  }
}

TEST(TrainRestart, AProgramThatFailsBeforeItsFirstStepIsNotStartedAgain) {
  const Training training;
  const Outcome outcome = run(training.after(launch({"--nproc_per_node=2", "--max-restarts=3"}), "no",
                                             {"train.early_stopping.metric=nonsense"}),
                              Training::variables());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "the job is not restarted: it failed before its first training step"))
      << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "restart 1 of")) << outcome.err;
}

/// Trains until it is told to stop, after some steps.
void stop_by_sigterm(const Training& training, const std::string& name, std::vector<std::string> more,
                     const std::map<std::string, std::string>& variables) {
  more.push_back("train.steps=100000");
  Process job(training.alone(name, more), Training::variables(variables));
  ASSERT_TRUE(eventually([&] { return contains(job.err(), "validation loss"); })) << job.err();
  job.send(SIGTERM);
  EXPECT_EQ(job.wait().code, 143) << job.err();
}

TEST(TrainRestart, AJobThatSlurmRequeuedGoesOnWithItsRunAndAnotherJobBeginsOne) {
  const Training training;
  const std::map<std::string, std::string> first = {{"SLURM_JOB_ID", "77"}};
  stop_by_sigterm(training, "slurm", {}, first);
  const fs::path run_of_job = training.runs("slurm").at(0);
  // Another training of the same job and name, with another setting: the newest run, but not the one that is meant.
  stop_by_sigterm(training, "slurm", {"train.seed=2"}, first);
  stop_by_sigterm(training, "slurm", {}, {{"SLURM_JOB_ID", "77"}, {"SLURM_RESTART_COUNT", "1"}});
  EXPECT_EQ(training.runs("slurm").size(), 2u) << "a requeued job begins no new run";
  const std::string log = text_of(run_of_job / "training.log");
  EXPECT_TRUE(contains(log, "restart 1 of the job by Slurm: going on with its run " + run_of_job.string())) << log;
  EXPECT_TRUE(contains(log, "resuming from ")) << log;
  stop_by_sigterm(training, "slurm", {}, {{"SLURM_JOB_ID", "78"}, {"SLURM_RESTART_COUNT", "1"}});
  EXPECT_EQ(training.runs("slurm").size(), 3u) << "it died before it had a run";
}

TEST(TrainRestart, ResumeAutoContinuesTheNewestRunOfThatNameOrBeginsOne) {
  const Training training;
  stop_by_sigterm(training, "auto", {"resume=auto"}, {});
  ASSERT_EQ(training.runs("auto").size(), 1u);
  stop_by_sigterm(training, "auto", {"resume=auto"}, {});
  EXPECT_EQ(training.runs("auto").size(), 1u);
  EXPECT_TRUE(contains(training.log("auto"), "resume=auto: going on with the newest run in ")) << training.log("auto");
  stop_by_sigterm(training, "auto", {}, {});
  EXPECT_EQ(training.runs("auto").size(), 2u) << "without it every start is a new run";
}

TEST(TrainNodes, TwoAgentsOfOneRankEachTrainAsOneAgentOfTwo) {
  const Training training;
  const Outcome one =
      run(training.after(launch({"--nproc_per_node=2"}), "one", {"train.steps=40"}), Training::variables());
  ASSERT_EQ(one.code, 0) << one.err;
  const std::string port = std::to_string(free_port());
  // torchrun's names on one node, accelerate's on the other.
  Process node0(training.after(launch({"--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1",
                                       "--master-port=" + port, "--nproc-per-node=1"}),
                               "two", {"train.steps=40"}),
                Training::variables());
  Process node1(training.after(launch({"--num_machines=2", "--machine_rank=1", "--main_process_ip=127.0.0.1",
                                       "--main_process_port=" + port, "--num_processes=2"}),
                               "two", {"train.steps=40"}),
                Training::variables());
  const Outcome first = node0.wait();
  const Outcome second = node1.wait();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(contains(first.err, "node 0 of 2: ranks 0 to 0 of 2, store at 127.0.0.1:" + port)) << first.err;
  EXPECT_TRUE(contains(second.err, "node 1 of 2: ranks 1 to 1 of 2")) << second.err;
  EXPECT_EQ(last_hash(training.log("two")), last_hash(training.log("one")));
  EXPECT_EQ(training.runs("two").size(), 1u);
}

/// The command of a node of two, with a rank each, for a training without end.
std::vector<std::string> agent_of_two(const Training& training, const std::string& port, const std::string& node) {
  return training.after(launch({"--nnodes=2", "--node-rank=" + node, "--master-addr=127.0.0.1", "--master-port=" + port,
                                "--nproc-per-node=1"}),
                        "two", {"train.steps=100000"});
}

TEST(TrainNodes, ARankThatDiesOnOneNodeEndsTheJobOnTheOther) {
  const Training training;
  const std::string port = std::to_string(free_port());
  Process node0(agent_of_two(training, port, "0"), Training::variables());
  Process node1(agent_of_two(training, port, "1"), Training::variables());
  ASSERT_TRUE(eventually([&] { return training.step("two") >= 5; })) << node0.err() << node1.err();
  ::kill(training.pids("two", 2)[1], SIGKILL);
  const Outcome first = node0.wait();
  const Outcome second = node1.wait();
  EXPECT_EQ(second.code, 137) << second.err;
  EXPECT_TRUE(contains(second.err, "rank 1 failed first")) << second.err;
  EXPECT_EQ(first.code, 1) << first.err;
  EXPECT_TRUE(contains(first.err, "because rank 1 (pid ")) << first.err;
}

TEST(TrainNodes, WhenTheHostOfTheStoreDiesTheFirstLinesSayWhoAndNoStackOfLibTorchStandsBefore) {
  const Training training;
  const std::string port = std::to_string(free_port());
  Process node0(agent_of_two(training, port, "0"), Training::variables());
  Process node1(agent_of_two(training, port, "1"), Training::variables());
  ASSERT_TRUE(eventually([&] { return training.step("two") >= 5; })) << node0.err() << node1.err();
  ::kill(training.pids("two", 2)[0], SIGKILL);
  node0.wait();
  const Outcome other = node1.wait();
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_FALSE(contains(other.err, "frame #") || contains(other.err, "Exception raised from")) << other.err;
  const std::vector<std::string> lines =
      lines_of(other.err.substr(other.err.find("cohort launch: rank 1 failed first")));
  ASSERT_GE(lines.size(), 3u) << other.err;
  EXPECT_TRUE(contains(lines[2], "because rank 0 (pid ")) << other.err;
}

}  // namespace
}  // namespace cohort::testing
