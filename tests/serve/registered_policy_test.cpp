// One more kind of policy: a loader and a session, and nothing else of the house is touched.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actor/policy_actor.h"
#include "core/files.h"
#include "core/message_of.h"
#include "policy/registry.h"
#include "serve/policy_server.h"
#include "serve/remote_policy.h"
#include "serve/sum_policy.h"
#include "support/fresh_folder.h"
#include "tasks/line_task.h"
#include "tasks/rollout.h"

namespace cohort::serve {
namespace {

std::vector<tasks::EpisodeOutcome> episodes_of(policy::Policy& policy, int n_envs) {
  cohort::testing::LineTask task(n_envs);
  actor::PolicyActor actor(policy, task, "sums");
  return tasks::run_episodes(task, actor, tasks::consecutive_seeds(3, 9));
}

TEST(PolicyRegistry, AKindThatIsRegisteredActsInATaskAndBehindAPort) {
  register_remote_policies();
  policy::register_kind({.name = "sums",
                         .claims = [](const std::string& where) { return where.ends_with(".sums"); },
                         .load =
                             [](const std::string& where, const policy::LoadSettings&) {
                               return std::make_unique<cohort::testing::SumPolicy>(
                                   cohort::testing::SumPolicySettings{.chunk = std::stoi(read_file(where))});
                             }});
  const std::string path = test::fresh_folder("serve_registered") / "two.sums";
  write_file_atomically(path, "2");
  const auto loaded = policy::load(path);
  EXPECT_EQ(loaded->spec().chunk, 2);
  const auto here = episodes_of(*loaded, 4);

  std::vector<std::unique_ptr<policy::Policy>> replicas;
  replicas.push_back(policy::load(path));
  PolicyServer server(std::move(replicas), {.network = {.port = 0}});
  const std::string address = "ws://127.0.0.1:" + std::to_string(server.port());
  EXPECT_TRUE(policy::is_address(address));
  EXPECT_FALSE(policy::is_address(path));
  const auto remote = policy::load(address);
  EXPECT_EQ(remote->spec().observations.at(0).name, "observation/x");
  const auto there = episodes_of(*remote, 2);
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(here[i].steps, there[i].steps) << i;
    EXPECT_EQ(here[i].total_reward, there[i].total_reward) << i;
  }
  EXPECT_GT(here.front().steps, 1);
  EXPECT_NE(
      message_of([] { policy::load("somewhere/else"); }).find("known here: ws://HOST:PORT, vla-eval://HOST:PORT, sums"),
      std::string::npos);
}

}  // namespace
}  // namespace cohort::serve
