// Who hosts an elastic job's rendezvous, in files that its nodes share.
#include "launch/term_file.h"

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "launch/elastic_client.h"
#include "launch/elastic_rendezvous.h"
#include "support/process.h"

namespace cohort::launch {
namespace {
namespace fs = std::filesystem;

class Terms : public ::testing::Test {
 protected:
  const cohort::TemporaryFolder folder_{"cohort-terms"};
  const fs::path path_ = folder_.path() / "job.rendezvous";
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
};

TEST_F(Terms, OneOfManyThatClaimATermGetsItAndAllReadWho) {
  constexpr int kNodes = 16, kTerms = 10;
  for (int number = 1; number <= kTerms; ++number) {
    std::atomic<int> winners = 0, winner = -1;
    std::vector<std::thread> nodes;
    for (int node = 0; node < kNodes; ++node)
      nodes.emplace_back([&, node] {
        const TermFile terms(path_, "job", kJobSecret);
        if (!terms.claim({.number = number, .host = "10.0.0." + std::to_string(node), .port = 29400})) return;
        ++winners;
        winner = node;
      });
    for (std::thread& node : nodes) node.join();
    EXPECT_EQ(winners, 1);
    const auto newest = TermFile(path_, "job", kJobSecret).newest();
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(newest->number, number);
    EXPECT_EQ(newest->host, "10.0.0." + std::to_string(winner));
  }
  EXPECT_EQ(files(), static_cast<std::size_t>(kTerms)) << "nothing but the terms";
  const TermFile terms(path_, "job", kJobSecret);
  EXPECT_FALSE(terms.newest_of({.host = "nobody", .port = 29400}).has_value());
  EXPECT_TRUE(terms.claim({.number = kTerms + 1, .ended = 3}));
  EXPECT_EQ(terms.newest()->ended, 3);
  EXPECT_EQ(terms.newest()->host, "");
}

TEST_F(Terms, WhatAnotherJobOrAStrangerWroteIsAnErrorThatNamesTheFile) {
  const TermFile terms(path_, "job", kJobSecret);
  ASSERT_TRUE(terms.claim({.number = 1, .host = "h", .port = 1}));
  const std::string name = terms.name_of(1), text = read_file(name);
  const auto error = [&](const TermFile& reader) { return message_of([&] { (void)reader.newest(); }); };
  EXPECT_NE(error(TermFile(path_, "job", "another secret of a job")).find(name + " is not signed"), std::string::npos);
  EXPECT_NE(error(TermFile(path_, "other", kJobSecret)).find("is of job 'job', not of 'other'"), std::string::npos);
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file_atomically(name, damaged);
    EXPECT_NE(error(terms).find("is not signed"), std::string::npos) << at;
    write_file_atomically(name, text.substr(0, at));
    EXPECT_NE(error(terms).find("is not signed"), std::string::npos) << at;
  }
  write_file_atomically(terms.name_of(2), text);
  write_file_atomically(name, text);
  EXPECT_NE(error(terms).find(terms.name_of(2)), std::string::npos) << "a copy of another term";
  EXPECT_NE(message_of([&] { TermFile(folder_.path() / "none" / "x", "job", kJobSecret); }).find("cannot be written"),
            std::string::npos);
}

/// Nodes of one process that meet through one endpoint and the files.
TEST_F(Terms, AnyNodeTakesOverFromAHostThatIsLostAndTheNextOneFromThat) {
  ::setenv("COHORT_JOB_SECRET", kJobSecret, 1);
  const int port = testing::free_port();
  // A job that has ended under the same path is no hindrance.
  const TermFile terms(path_, "job", kJobSecret);
  ASSERT_TRUE(terms.claim({.number = 1, .host = "127.0.0.1", .port = 1}));
  ASSERT_TRUE(terms.claim({.number = 2, .ended = 0}));
  const auto agent = [&](const std::string& id) {
    LaunchSettings settings;
    settings.elastic = true;
    settings.least_nodes = 1;
    settings.nodes = 3;
    settings.last_call = 0.5;
    settings.run_id = "job";
    settings.node_id = id;
    settings.rendezvous_host = "127.0.0.1";
    settings.rendezvous_port = port;
    settings.state_file = path_.string();
    return std::make_unique<ElasticRendezvous>(settings);
  };
  std::vector<std::unique_ptr<ElasticRendezvous>> agents;
  for (const char* id : {"a", "b", "c"}) agents.push_back(agent(id));
  const auto meet_all = [&] {
    std::vector<Meeting> met(agents.size());
    std::vector<std::thread> nodes;
    for (std::size_t i = 0; i < agents.size(); ++i) nodes.emplace_back([&, i] { met[i] = agents[i]->meet(0); });
    for (std::thread& node : nodes) node.join();
    return met;
  };
  std::vector<Meeting> met = meet_all();
  for (const Meeting& meeting : met) EXPECT_EQ(meeting.nodes, 3);
  for (int left = 2; left > 0; --left) {
    const auto newest = terms.newest();
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(newest->number, 2 + 3 - left);
    // The host is node 0.
    for (std::size_t i = 0; i < agents.size(); ++i)
      if (met[i].node_rank == 0) {
        agents.erase(agents.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    met = meet_all();
    for (const Meeting& meeting : met) {
      EXPECT_EQ(meeting.nodes, left);
      EXPECT_NE(meeting.store_port, 0);
    }
    EXPECT_EQ(agents.front()->attempt(0), 3 - left);
  }
  // Whoever is left ends the job; a node that lost sight of it earlier does not go on.
  agents.front()->finished();
  EXPECT_THROW(agents.front()->meet(1), JobEnded);
  EXPECT_EQ(terms.newest()->ended, 0);
  ::unsetenv("COHORT_JOB_SECRET");
}

}  // namespace
}  // namespace cohort::launch
