// A policy behind a port, in a task: the same episodes as without the port, and errors that name the server.
#include "serve/remote_policy.h"

#include <cmath>
#include <deque>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "actor/policy_actor.h"
#include "core/error.h"
#include "core/message_of.h"
#include "policy/convention_policy.h"
#include "serve/msgpack.h"
#include "serve/policy_server.h"
#include "serve/server_url.h"
#include "serve/sum_policy.h"
#include "serve/websocket_server.h"
#include "support/process.h"
#include "tasks/line_task.h"
#include "tasks/rollout.h"

namespace cohort::serve {
namespace {

using cohort::testing::LineTask;
using cohort::testing::SumPolicy;
using cohort::testing::SumPolicySettings;

/// The sums without a network: its own idea of what a served policy sees and when.
class SumActor final : public tasks::Actor {
 public:
  explicit SumActor(std::int64_t execute) : execute_(execute) {}
  std::string name() const override { return "sums"; }
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds, const std::string&) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto env = static_cast<std::size_t>(envs[i]);
      if (env >= of_.size()) of_.resize(env + 1);
      of_[env] = {.seed = static_cast<float>(seeds[i])};
    }
  }
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    for (const std::int32_t env : envs) {
      Sums& sums = of_[static_cast<std::size_t>(env)];
      if (sums.step++ % execute_ == 0) sums.sum += task.observation(0).span<float>()[static_cast<std::size_t>(env)];
      const std::int64_t row = (sums.step - 1) % execute_;
      actions.span<float>()[static_cast<std::size_t>(env)] =
          -sums.sum + static_cast<float>(row) / 1000 + sums.seed / 1e6f + 0.0f;
    }
  }

 private:
  struct Sums {
    float seed = 0, sum = 0;
    std::int64_t step = 0;
  };
  std::int64_t execute_;
  std::vector<Sums> of_;
};

std::string url_of(const PolicyServer& server) {
  return "ws://127.0.0.1:" + std::to_string(server.port());
}

std::unique_ptr<PolicyServer> serve(const SumPolicySettings& settings) {
  std::vector<std::unique_ptr<policy::Policy>> policies;
  policies.push_back(std::make_unique<SumPolicy>(settings));
  PolicyServerSettings network;
  network.network.port = 0;
  return std::make_unique<PolicyServer>(std::move(policies), network);
}

TEST(RemotePolicy, EpisodesAreThoseOfThePolicyForAnyNumberOfEnvironments) {
  const auto server = serve({.chunk = 4});
  const auto seeds = tasks::consecutive_seeds(3, 9);
  for (const std::int64_t execute : {0, 3, 1}) {
    LineTask alone(2);
    SumActor expected_actor(execute == 0 ? 4 : execute);
    const auto expected = tasks::run_episodes(alone, expected_actor, seeds);
    for (const int n : {1, 4}) {
      LineTask task(n);
      const auto remote = connect_policy(url_of(*server), {.exec_horizon = execute});
      actor::PolicyActor actor(*remote, task, "sums");
      const auto got = tasks::run_episodes(task, actor, seeds);
      for (std::size_t i = 0; i < seeds.size(); ++i) {
        EXPECT_EQ(got[i].steps, expected[i].steps) << i;
        EXPECT_EQ(got[i].total_reward, expected[i].total_reward) << i;
      }
    }
  }
}

TEST(RemotePolicy, WhatWasSeenSinceTheLastAnswerComesAlongWhereThePolicyLooksAtIt) {
  // Two moments of each four steps are added up; of the first answer there is but one.
  const auto server = serve({.chunk = 4, .frames = 2});
  LineTask task(1);
  const auto remote = connect_policy(url_of(*server), {});
  actor::PolicyActor actor(*remote, task, "sums");
  const std::int32_t env = 0;
  const std::uint64_t seed = 3;
  task.reset(std::span(&env, 1), std::span(&seed, 1));
  actor.begin(std::span(&env, 1), std::span(&seed, 1), "");
  std::vector<float> x, chosen;
  for (int step = 0; step < 9; ++step) {
    x.push_back(task.observation(0).span<float>()[0]);
    float action = 0;
    actor.act(task, std::span(&env, 1), make_view(&action, {1, 1}));
    chosen.push_back(action);
    float small = 0.1f;
    task.step(make_view(&small, {1, 1}));
  }
  const float own = 3 / 1e6f;
  EXPECT_EQ(chosen[0], -x[0] + own);
  EXPECT_EQ(chosen[4], -((x[0] + x[3]) + x[4]) + own);
  EXPECT_EQ(chosen[8], -((((x[0] + x[3]) + x[4]) + x[7]) + x[8]) + own);
}

TEST(RemotePolicy, WhatDoesNotFitTheTaskIsNamed) {
  LineTask task(1);
  const auto server = serve({.picture = true, .chunk = 2});
  EXPECT_NE(message_of([&] { connect_policy(url_of(*server), {.exec_horizon = 3}); }).find("gives 2 actions at a time"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              const auto remote = policy::shown_as("openpi-libero", connect_policy(url_of(*server), {}));
              actor::PolicyActor(*remote, task, "sums");
            }).find("it sees 'observation/x', but --observations openpi-libero shows observation/image"),
            std::string::npos);
  EXPECT_NE(message_of([&] { parse_url("wss://a:1"); }).find("ssh -L"), std::string::npos);
  for (const char* bad : {"ws://", "ws://a:b", "ws://a:99999", "http://a", "vla-eval://a:b"})
    EXPECT_NE(message_of([&] { parse_url(bad); }).find("ws://HOST:PORT"), std::string::npos) << bad;
  EXPECT_EQ(parse_url("ws://[::1]:12/x").host, "::1");
  EXPECT_EQ(parse_url("ws://robot").port, "8000");
  EXPECT_EQ(parse_url("vla-eval://robot:9").scheme, "vla-eval");
}

TEST(RemotePolicy, AServerThatIsNotThereIsNamed) {
  LineTask task(1);
  const std::string url = "ws://127.0.0.1:" + std::to_string(cohort::testing::free_port());
  const std::string said = message_of([&] { connect_policy(url, {.connect_timeout = 0.6}); });
  EXPECT_NE(said.find(url + ": no policy server after 0.6 s"), std::string::npos) << said;
}

/// A server that says whatever it is told to, to the one client that it gets.
class Scripted final : public WebSocketHandler {
 public:
  explicit Scripted(std::deque<std::string> answers) : answers_(std::move(answers)) {
    server_ = std::make_unique<WebSocketServer>(WebSocketServerSettings{.port = 0}, *this);
  }
  std::string url() const { return "ws://127.0.0.1:" + std::to_string(server_->port()); }
  std::string opened(std::uint64_t, const std::string&) override { return pack({Map{}}); }
  void message(std::uint64_t client, std::string bytes, bool) override {
    EXPECT_NE(find(unpack(bytes), "x"), nullptr) << "by the task's own name";
    EXPECT_EQ(std::get<std::string>(find(unpack(bytes), "prompt")->of), "come near zero");
    EXPECT_EQ(find(unpack(bytes), "reset"), nullptr) << "openpi's server would take it for an observation";
    if (answers_.empty()) return;  // it hangs
    if (answers_.front() == "die")
      server_->fail(client, "Traceback: CUDA out of memory");
    else
      server_->send(client, answers_.front());
    answers_.pop_front();
  }
  void closed(std::uint64_t, const std::string&) override {}

 private:
  std::deque<std::string> answers_;
  std::unique_ptr<WebSocketServer> server_;
};

TEST(RemotePolicy, AServerThatAnswersWronglyIsNamedWithWhatItSaid) {
  const auto answer = [](std::vector<std::int64_t> shape, std::vector<float> numbers) {
    return pack({Map{{"actions", {float_array(std::move(shape), numbers)}}}});
  };
  const std::vector<std::pair<std::deque<std::string>, std::string>> cases{
      {{answer({1, 2}, {1, 2})}, "the shape (1, 2), but the task's have 1 numbers"},
      {{answer({2, 1}, {1, NAN})}, "number 0 of action 1 of its answer is nan"},
      {{answer({0, 1}, {})}, "the shape (0, 1)"},
      {{pack({Map{}})}, "its answer is a map of 0, but must hold 'actions'"},
      {{pack({Map{{"error", {std::string("Traceback\nno memory")}}}})}, "it answers with an error: "},
      {{pack({Map{{"chunk", {1.0}}}})}, "its answer is a map of 1 ('chunk'), but must hold 'actions'"},
      {{pack({Map{{"actions", {NumpyArray{"<U1", {1, 1}, "abcd"}}}}})}, "its actions are an array of '<U1' (1, 1)"},
      {{"\xc1"}, "its answer cannot be read"},
      {{"die"}, "refuses the observation: Traceback: CUDA out of memory"},
      {{answer({1, 1}, {0}), "die"}, "refuses the observation"},
      {{}, "no answer within 0.3 s"}};
  for (const auto& [answers, part] : cases) {
    Scripted server(answers);
    LineTask task(1);
    const auto remote = connect_policy(server.url(), {.answer_timeout = answers.empty() ? 0.3 : 60});
    actor::PolicyActor actor(*remote, task, "scripted");
    const std::uint64_t seeds[] = {3};  // a wind that it cannot beat: it will be asked again
    const std::string said = message_of([&] { tasks::run_episodes(task, actor, seeds); });
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
    EXPECT_TRUE(said.starts_with(server.url())) << said;
  }
}

}  // namespace
}  // namespace cohort::serve
