// The server of an elastic job's rendezvous, over its port.
#include "launch/elastic_server.h"

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/json_text.h"
#include "launch/elastic_client.h"
#include "support/process.h"

namespace cohort::launch {
namespace {

using ServerJson = nlohmann::json;

TEST(ElasticServer, NodesWithTheSecretGetTheirRoundAndOthersAreTurnedAway) {
  const int port = testing::free_port();
  const auto server =
      ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(2, 2), "job", kJobSecret, 4242);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(2, 2), "job", kJobSecret, 4242),
            nullptr)
      << "another agent has it";

  RendezvousClient stranger(port);
  stranger.open("not the secret of this job");
  stranger.join("evil");
  EXPECT_TRUE(stranger.hear().is_null()) << "it is told nothing";

  RendezvousClient other(port);
  other.open(kJobSecret);
  other.join("x", "another job");
  const ServerJson refused = other.hear();
  EXPECT_EQ(refused["is"], "refused");

  RendezvousClient a(port), b(port), watcher(port);
  a.open(kJobSecret);
  a.join("a");
  watcher.open(kJobSecret);
  watcher.say({{"do", "state"}});
  EXPECT_EQ(watcher.hear()["state"]["phase"], "gathering");
  b.open(kJobSecret);
  b.join("b");
  const ServerJson of_a = a.hear(), of_b = b.hear();
  EXPECT_EQ(of_a["is"], "round");
  EXPECT_EQ(of_a["world_size"], 2);
  EXPECT_EQ(of_a["store_port"], 4242);
  EXPECT_NE(of_a["first_rank"], of_b["first_rank"]);
  a.say({{"do", "failed"}, {"round", 0}, {"code", 5}, {"what", "exit code 5"}});
  const ServerJson end = b.hear();
  EXPECT_EQ(end["is"], "end");
  EXPECT_EQ(end["code"], 5);
}

TEST(ElasticServer, ConnectionsThatSayNothingKeepNobodyOut) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit before = files;
  files.rlim_cur = 400;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  {
    const int port = testing::free_port();
    const auto server =
        ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(1, 1), "job", kJobSecret, 4242);
    ASSERT_NE(server, nullptr);
    // Both ends of each are this process', so that the server is the first that can open no more.
    std::vector<std::unique_ptr<RendezvousClient>> strangers;
    for (int i = 0; i < 185; ++i) strangers.push_back(std::make_unique<RendezvousClient>(port));
    while (strangers.size() > 150) strangers.pop_back();
    RendezvousClient node(port);
    node.open(kJobSecret);
    node.join("a");
    EXPECT_EQ(node.hear()["is"], "round");
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(ElasticServer, AnotherJobsNodeThatLostItsHostWakesNoServerOnStandby) {
  const int port = testing::free_port();
  const auto server =
      ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(1, 2), "job", kJobSecret, 4242,
                          /*active=*/false);
  RendezvousClient other(port), own(port);
  other.open(kJobSecret);
  other.join("x", "another job", {{"round", 2}, {"nodes", 2}, {"restarts", 0}, {"recovery", 0}, {"certain", true}});
  EXPECT_EQ(other.hear()["is"], "refused");
  own.open(kJobSecret);
  own.join("a");
  EXPECT_EQ(own.hear()["is"], "standby");
}

TEST(ElasticServer, TheStateOfVeryManyNodesFitsIntoAMessage) {
  constexpr int kNodes = 500;
  ElasticState state(limits_of(kNodes, kNodes));
  for (int i = 0; i < kNodes; ++i) state.join("node" + std::to_string(i) + std::string(100, 'n'), "host", 8, 0);
  const std::string text = state.to_json(1);
  EXPECT_LT(text.size(), kMostBytes - 1000);
  const auto json = parse_json<ServerJson>(text);
  EXPECT_EQ(json["world_size"], 8 * kNodes);
  EXPECT_EQ(json["nodes"].size() + json["nodes_left_out"].get<std::size_t>(), static_cast<std::size_t>(kNodes));
}

TEST(ElasticServer, NodesRecoverTogetherAndAreCalledByOneNumber) {
  const int port = testing::free_port();
  const auto server =
      ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(2, 2, 3), "job", kJobSecret, 4242);
  RendezvousClient a(port), b(port);
  for (RendezvousClient* client : {&a, &b}) client->open(kJobSecret);
  a.join("a");
  b.join("b");
  ASSERT_EQ(a.hear()["is"], "round");
  ASSERT_EQ(b.hear()["is"], "round");
  a.say({{"do", "lost"}, {"round", 0}, {"code", 137}, {"what", "SIGKILL"}});
  EXPECT_EQ(a.hear()["is"], "recover");
  const ServerJson of_b = b.hear();
  EXPECT_EQ(of_b["is"], "recover");
  EXPECT_EQ(of_b["number"], 1);
  EXPECT_EQ(of_b["restarts"], 1);
  a.say({{"do", "waits"}, {"round", 0}, {"recovery", 1}});
  b.say({{"do", "waits"}, {"round", 0}, {"recovery", 1}});
  EXPECT_EQ(a.hear(), ServerJson({{"is", "go"}, {"number", 1}}));
  EXPECT_EQ(b.hear(), ServerJson({{"is", "go"}, {"number", 1}}));
}

TEST(ElasticServer, ANodeThatComesDuringARecoveryJoinsAfterIt) {
  const int port = testing::free_port();
  ElasticLimits limits = patient_limits_of(1, 2, 3);
  limits.last_call = 0.05;  // one node is enough for the first round
  const auto server = ElasticServer::host({.host = "127.0.0.1", .port = port}, limits, "job", kJobSecret, 4242);
  RendezvousClient a(port), early(port), again(port);
  for (RendezvousClient* client : {&a, &early, &again}) client->open(kJobSecret);
  a.join("a");
  ASSERT_EQ(a.hear()["is"], "round");
  a.say({{"do", "lost"}, {"round", 0}, {"code", 137}, {"what", "SIGKILL"}});
  ASSERT_EQ(a.hear()["is"], "recover");
  early.join("b");
  EXPECT_EQ(early.hear()["is"], "later");
  EXPECT_TRUE(early.hear().is_null()) << "and closed";
  a.say({{"do", "waits"}, {"round", 0}, {"recovery", 1}});
  EXPECT_EQ(a.hear(), ServerJson({{"is", "go"}, {"number", 1}})) << "nobody has disturbed it";
  again.join("b");
  EXPECT_EQ(a.hear()["is"], "gather");
}

TEST(ElasticServer, OneOnStandbyTurnsNodesAwayUntilTheOtherHostIsLost) {
  const int port = testing::free_port();
  const auto server =
      ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(1, 2), "job", kJobSecret, 4242,
                          /*active=*/false);
  RendezvousClient early(port), moved(port), late(port);
  early.open(kJobSecret);
  early.join("new");
  EXPECT_EQ(early.hear()["is"], "standby");
  EXPECT_TRUE(early.hear().is_null()) << "and closed";
  moved.open(kJobSecret);
  moved.join("a", "job", {{"round", 2}, {"nodes", 2}, {"restarts", 0}, {"recovery", 0}, {"certain", true}});
  const ServerJson round = moved.hear();
  EXPECT_EQ(round["is"], "round");
  EXPECT_EQ(round["round"], 3);
  late.open(kJobSecret);
  late.join("b");
  EXPECT_EQ(moved.hear()["is"], "gather") << "the job meets here now";
}

TEST(ElasticServer, AThousandAgentsMeetAtOnce) {
  constexpr int kAgents = 1000;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2 * kAgents + 100) GTEST_SKIP() << "needs 2,100 open files: ulimit -n allows fewer";
  const int port = testing::free_port();
  const auto server = ElasticServer::host({.host = "127.0.0.1", .port = port}, patient_limits_of(kAgents, kAgents),
                                          "job", kJobSecret, 4242);
  ASSERT_NE(server, nullptr);
  std::mutex mutex;
  std::set<int> ranks;
  std::vector<std::thread> agents;
  for (int i = 0; i < kAgents; ++i)
    agents.emplace_back([&, i] {
      RendezvousClient agent(port);
      agent.open(kJobSecret);
      agent.join("node" + std::to_string(i));
      const ServerJson round = agent.hear();
      const std::scoped_lock lock(mutex);
      if (!round.is_null() && round["is"] == "round" && round["world_size"] == kAgents)
        ranks.insert(round["first_rank"].get<int>());
    });
  for (std::thread& agent : agents) agent.join();
  EXPECT_EQ(ranks.size(), static_cast<std::size_t>(kAgents));
}

}  // namespace
}  // namespace cohort::launch
