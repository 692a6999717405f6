// A training on two nodes, each with its own agent, loses a rank or a node; two agents on this machine stand for them.
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "cli/training.h"
#include "core/json_text.h"

namespace cohort::testing {
namespace {

constexpr int kSteps = 200;  // far behind the step at which something is killed
constexpr const char* kFromMemory = "no checkpoint is read";

class TrainNodes : public ::testing::Test {
 protected:
  /// One node's agent. `endpoints`: how many of them host the rendezvous.
  std::vector<std::string> agent(const std::string& name, const std::string& nodes, int ranks, int endpoints = 1,
                                 int steps = kSteps, const std::string& batch = "train.batch_size=16") const {
    std::string at = "127.0.0.1:" + std::to_string(port_);
    if (endpoints > 1) at += ",127.0.0.1:" + std::to_string(second_port_);
    return training_.after(
        launch({"--nnodes=" + nodes, "--nproc_per_node=" + std::to_string(ranks), "--rdzv-backend=c10d",
                "--rdzv-endpoint=" + at, "--rdzv-id=" + name, "--last-call=200", "--max-restarts=3"}),
        name, {"train.steps=" + std::to_string(steps), "train.ema.enabled=true", batch});
  }
  static std::map<std::string, std::string> variables() {
    return Training::variables({{"COHORT_JOB_SECRET", "a secret of this very job"}});
  }
  /// The agent that hosts the rendezvous: it does when it says that it waits.
  Process host(const std::vector<std::string>& command) const {
    Process first(command, variables());
    EXPECT_TRUE(eventually([&] { return contains(first.err(), "waits for the others"); })) << first.err();
    return first;
  }
  std::map<std::string, std::string> weights(const std::string& name) const {
    const fs::path folder =
        training_.outputs() / name / "latest" / "checkpoints" / ("checkpoint-" + std::to_string(kSteps));
    std::map<std::string, std::string> files;
    for (const char* file : {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors"})
      files[file] = text_of(folder / file);
    return files;
  }
  /// Every step was made once: none was lost, none was made again.
  void expect_every_step_once(const std::string& name, int steps) const {
    std::map<int, int> times;
    for (const std::string& line : lines_of(text_of(training_.outputs() / name / "latest" / "metrics.jsonl"))) {
      const auto json = try_json<nlohmann::json>(line);
      if (json.is_object() && json.contains("step") && json.contains("train/loss")) ++times[json["step"].get<int>()];
    }
    for (int step = 1; step <= steps; ++step) EXPECT_EQ(times[step], 1) << "step " << step;
  }
  void expect_from_memory(const std::string& name, int steps = kSteps) const {
    const std::string text = training_.log(name);
    EXPECT_FALSE(contains(text, "resuming from ")) << text;
    EXPECT_EQ(training_.runs(name).size(), 1u);
    EXPECT_TRUE(
        fs::exists(training_.outputs() / name / "latest" / "checkpoints" / ("checkpoint-" + std::to_string(steps))));
    expect_every_step_once(name, steps);
  }

  const Training training_;
  const int port_ = free_port(), second_port_ = free_port();
};

TEST_F(TrainNodes, ARankThatDiesOnEitherNodeIsReplacedAndAllOthersKeepTheirProcessesAndTheBits) {
  constexpr int kRanks = 4;
  const Outcome undisturbed = run(training_.after(launch({"--nproc_per_node=4"}), "whole",
                                                  {"train.steps=" + std::to_string(kSteps), "train.ema.enabled=true"}),
                                  Training::variables());
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  for (const std::size_t victim : {0u, 3u}) {
    const std::string name = "killed" + std::to_string(victim);
    Process first = host(agent(name, "2:2", 2)), second(agent(name, "2:2", 2), variables());
    ASSERT_TRUE(eventually([&] { return training_.step(name) >= 40; })) << first.err() << second.err();
    const std::vector<pid_t> before = training_.pids(name, kRanks);
    ::kill(before[victim], SIGKILL);
    EXPECT_EQ(first.wait().code, 0) << first.err();
    EXPECT_EQ(second.wait().code, 0) << second.err();
    const Process& other = victim == 0 ? second : first;
    EXPECT_TRUE(contains(other.err(), "all 4 ranks are there again after")) << first.err() << second.err();
    EXPECT_TRUE(contains(other.err(), "a rank of node ")) << other.err();
    for (std::size_t rank = 0; rank < before.size(); ++rank)
      EXPECT_EQ(training_.last_pid(name, static_cast<int>(rank)) == before[rank], rank != victim) << rank;
    EXPECT_EQ(weights(name), weights("whole")) << "rank " << victim;
    expect_from_memory(name);
    if (HasFailure()) return;
  }
}

TEST_F(TrainNodes, TheOthersGoOnFromMemoryWhenANodeIsLostAndWhenItIsThereAgain) {
  // No checkpoint is written before the last step, which lies so far behind that a node can come again.
  constexpr int kMany = 500;
  const std::vector<std::string> node = agent("lost", "1:2", 2, 1, kMany);
  Process first = host(node);
  {
    Process second(node, variables());
    ASSERT_TRUE(eventually([&] { return training_.step("lost") >= 40; })) << first.err() << second.err();
    EXPECT_TRUE(contains(training_.log("lost"), "effective batch: 64 = 16 per process x 4 processes"))
        << training_.log("lost");
    second.send(SIGKILL);
    ASSERT_TRUE(eventually([&] { return contains(training_.log("lost"), kFromMemory); }))
        << first.err() << training_.log("lost");
  }
  const std::string once = training_.log("lost");
  EXPECT_TRUE(contains(once, "effective batch: 64 = 16 per process x 2 processes x 2 accumulated")) << once;
  const int step = training_.step("lost");
  ASSERT_TRUE(eventually([&] { return training_.step("lost") > step + 5; })) << first.err() << once;
  Process third(node, variables());
  const auto times = [&] {
    const std::string text = training_.log("lost");
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(kFromMemory, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  ASSERT_TRUE(eventually([&] { return times() == 2 || !alive(first.pid()); })) << first.err() << third.err();
  EXPECT_EQ(times(), 2u) << "a node that joins gets the state from the others\n" << first.err() << third.err();
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(third.wait().code, 0) << third.err();
  expect_from_memory("lost", kMany);
}

TEST_F(TrainNodes, TheJobGoesOnAtTheSecondEndpointWhenTheHostOfTheFirstIsKilled) {
  Process first = host(agent("moved", "1:2", 2, 2));
  Process second(agent("moved", "1:2", 2, 2), variables());
  ASSERT_TRUE(eventually([&] { return training_.step("moved") >= 40; })) << first.err() << second.err();
  first.send(SIGKILL);
  EXPECT_EQ(second.wait().code, 0) << second.err();
  EXPECT_TRUE(contains(training_.log("moved"), kFromMemory)) << second.err() << training_.log("moved");
  expect_from_memory("moved");
}

TEST_F(TrainNodes, WithoutASecondEndpointTheDeathOfTheHostSaysWhatWouldHaveHelped) {
  Process first = host(agent("alone", "1:2", 1)), second(agent("alone", "1:2", 1), variables());
  ASSERT_TRUE(eventually([&] { return training_.step("alone") >= 10; })) << first.err() << second.err();
  first.send(SIGKILL);
  const Outcome outcome = second.wait();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "--rdzv-endpoint=A:PORT,B:PORT")) << outcome.err;
}

TEST_F(TrainNodes, NumberedNodesRecoverFromMemoryToo) {
  const Outcome undisturbed = run(training_.after(launch({"--nproc_per_node=2"}), "whole",
                                                  {"train.steps=" + std::to_string(kSteps), "train.ema.enabled=true",
                                                   "parallel.ddp.cpu_reduction=gloo"}),
                                  Training::variables());
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  const auto node = [&](const std::string& number) {
    return training_.after(
        launch({"--nnodes=2", "--node-rank=" + number, "--nproc_per_node=1", "--master-addr=127.0.0.1",
                "--master-port=" + std::to_string(port_), "--max-restarts=3"}),
        "numbered",
        {"train.steps=" + std::to_string(kSteps), "train.ema.enabled=true", "parallel.ddp.cpu_reduction=gloo"});
  };
  Process first(node("0"), variables()), second(node("1"), variables());
  ASSERT_TRUE(eventually([&] { return training_.step("numbered") >= 40; })) << first.err() << second.err();
  const std::vector<pid_t> before = training_.pids("numbered", 2);
  ::kill(before[1], SIGKILL);
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
  EXPECT_TRUE(contains(first.err(), "all 2 ranks are there again after")) << first.err() << second.err();
  EXPECT_EQ(training_.last_pid("numbered", 0), before[0]) << "rank 0 keeps its process";
  EXPECT_EQ(weights("numbered"), weights("whole"));
  expect_from_memory("numbered");
}

TEST_F(TrainNodes, UnequalNumbersOfRanksAreForNodesThatAreAllThere) {
  {
    Process first = host(agent("unequal", "2:2", 2)), second(agent("unequal", "2:2", 1), variables());
    EXPECT_EQ(first.wait().code, 0) << first.err();
    EXPECT_EQ(second.wait().code, 0) << second.err();
    EXPECT_TRUE(
        contains(training_.log("unequal"), "effective batch: 48 = 16 per process x 3 processes x 1 accumulated"))
        << training_.log("unequal");
  }
  // 1 rank of 2, or 2 of 4: each would accumulate so many batches as keep a batch of its own.
  const std::string batch = "train.batch_size=12";
  Process first = host(agent("refused", "1:2", 2, 1, kSteps, batch)),
          second(agent("refused", "1:2", 1, 1, kSteps, batch), variables());
  EXPECT_EQ(first.wait().code, 1) << first.err();
  EXPECT_EQ(second.wait().code, 1) << second.err();
  EXPECT_TRUE(contains(first.err() + second.err(), "need the same --nproc_per_node")) << first.err() << second.err();
  EXPECT_TRUE(training_.runs("refused").empty());
}

TEST(DoctorOfRanks, MeasuresTheAllReduceBetweenThem) {
  const Outcome outcome = run(launch({"--nproc_per_node=2", "doctor", "--measure", "--json"}), Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::string text;  // without the launcher's prefixes
  for (const std::string& line : lines_of(outcome.out))
    if (line.starts_with("[rank 0] ")) text += line.substr(9) + "\n";
  const auto json = try_json<nlohmann::json>(text);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(json["ranks"], 2);
  const double sent = json["all_reduce_bytes"].get<double>() / json["all_reduce_s"].get<double>();
  EXPECT_NEAR(json["bytes_per_s_of_a_rank"].get<double>(), sent, sent * 1e-3) << "2 (n - 1) / n is 1 for two ranks";
  EXPECT_GT(json["all_reduce_latency_s"].get<double>(), 0.0);
}

}  // namespace
}  // namespace cohort::testing
