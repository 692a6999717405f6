// vla-eval's protocol both ways: messages as its 0.8.0 packs them (fixtures/vla_eval, by make_vla_eval_fixtures.py), and where
// COHORT_VLA_EVAL_PYTHON names a Python that has it, its own client and server.
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actor/policy_actor.h"
#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "data/images/codec.h"
#include "serve/msgpack.h"
#include "serve/policy_server.h"
#include "serve/remote_policy.h"
#include "serve/server_protocol.h"
#include "serve/sum_policy.h"
#include "serve/websocket_client.h"
#include "serve/websocket_server.h"
#include "support/command.h"
#include "support/process.h"
#include "tasks/line_task.h"
#include "tasks/rollout.h"

namespace cohort::serve {
namespace {

using cohort::testing::LineTask;
using cohort::testing::SumPolicy;
using cohort::testing::SumPolicySettings;

constexpr double kSeconds = cohort::testing::kPatience;  // s

std::string fixture(const std::string& name) {
  return read_file(std::string(COHORT_SOURCE_DIR "/tests/serve/fixtures/vla_eval/") + name);
}

policy::Spec sees(std::vector<policy::Observation> observations) {
  policy::Spec spec;
  spec.summary = "sums";
  spec.observations = std::move(observations);
  spec.action_width = 1;
  return spec;
}

std::unique_ptr<PolicyServer> serve_sums(const SumPolicySettings& sums) {
  std::vector<std::unique_ptr<policy::Policy>> policies;
  policies.push_back(std::make_unique<SumPolicy>(sums));
  return std::make_unique<PolicyServer>(std::move(policies),
                                        PolicyServerSettings{.network = {.port = 0}, .protocol = "vla-eval"});
}

/// A message of its client: {type, payload, seq, timestamp}.
Value ask(WebSocketClient& client, const std::string& type, Map payload, std::int64_t sequence) {
  client.send(
      pack({Map{{"type", {type}}, {"payload", {std::move(payload)}}, {"seq", {sequence}}, {"timestamp", {0.0}}}},
           ArrayKeys::kTexts));
  return unpack(client.receive(kSeconds).bytes);
}
Map x(float value) {
  return {{"x", {float_array({1}, std::span(&value, 1))}}};
}
std::string text_at(const Value& value, std::initializer_list<const char*> keys) {
  const Value* at = &value;
  for (const char* key : keys) at = at != nullptr ? find(*at, key) : nullptr;
  const auto* text = at != nullptr ? std::get_if<std::string>(&at->of) : nullptr;
  return text != nullptr ? *text : "";
}
std::vector<float> action(const Value& answer) {
  const Value* found = find(*find(answer, "payload"), "actions");
  return found != nullptr ? to_floats(std::get<NumpyArray>(found->of)) : std::vector<float>{};
}

TEST(VlaEvalProtocol, MessagesOfItsRunnerAreReadAsTheyArePacked) {
  const auto protocol = server_protocol("vla-eval");
  const policy::Spec spec = sees({{.name = "observation/x", .shape = {1}},
                                  {.name = "observation.state", .shape = {8}},
                                  {.name = "observation.images.top", .shape = {3, 4, 3}, .picture = true}});
  for (const char* kind : {"observation_png", "observation_raw"}) {
    if (std::string(kind) == "observation_png" && !data::has_png()) continue;
    const Request request = protocol->read(fixture(kind), spec);
    EXPECT_EQ(request.sequence, 3) << kind;
    EXPECT_EQ(request.prompt, "close the drawer") << kind;
    ASSERT_EQ(request.frames.size(), 1u) << kind;
    EXPECT_EQ(request.frames[0].numbers, (std::vector<float>{0.5f, 0, 1, 2, 3, 4, 5, 6, 7})) << kind;
    const Picture& picture = request.frames[0].pictures.at(0);
    ASSERT_EQ(picture.rgb.size(), 3u * 4 * 3) << kind;
    for (std::size_t i = 0; i < picture.rgb.size(); ++i)
      EXPECT_EQ(picture.rgb[i], 60 * (i / 12) + 10 * (i / 3 % 4) + i % 3) << kind << " " << i;
  }
  if (data::has_jpeg()) {
    const Request request = protocol->read(fixture("observation_jpeg"), spec);
    EXPECT_EQ(request.frames[0].pictures.at(0).rgb, std::vector<std::uint8_t>(8 * 8 * 3, 128));
  }
  EXPECT_TRUE(protocol->read(fixture("hello"), spec).greeting);
  const Request start = protocol->read(fixture("episode_start"), spec);
  EXPECT_TRUE(start.reset && start.frames.empty());
  EXPECT_FALSE(protocol->acknowledge(start, spec)) << "its client waits for no answer";
  EXPECT_FALSE(protocol->read(fixture("episode_end"), spec).reset);
}

TEST(VlaEvalProtocol, WhatIsWrongWithAMessageIsNamed) {
  const auto protocol = server_protocol("vla-eval");
  const policy::Spec spec = sees({{.name = "observation/top_image", .shape = {3, 4, 3}, .picture = true}});
  const auto said = [&](const Value& message) {
    return message_of([&] { protocol->read(pack(message, ArrayKeys::kTexts), spec); });
  };
  const auto observation = [](Map payload) {
    return Value{Map{{"type", {std::string("observation")}},
                     {"payload", {std::move(payload)}},
                     {"seq", {std::int64_t{1}}},
                     {"timestamp", {0.0}}}};
  };
  const auto top = [&](Map packed) {
    packed.insert(packed.begin(), {"__image__", {true}});
    return observation({{"images", {Map{{"top", {std::move(packed)}}}}}});
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(said({Map{{"observation/x", {1.0}}}}),
      "lacks 'type': vla-eval's have type, payload, seq and timestamp; openpi's");
  has(said({Map{
          {"type", {std::string("dance")}}, {"payload", {Map{}}}, {"seq", {std::int64_t{1}}}, {"timestamp", {0.0}}}}),
      "type is 'dance'");
  has(said(observation({{"images", {1.0}}})), "'images' is a number");
  has(said(Map{{"type", {std::string("observation")}},
               {"payload", {List{{1.0}}}},
               {"seq", {std::int64_t{1}}},
               {"timestamp", {0.0}}}),
      "payload is a list of 1, but must be a map");
  has(said(Map{{"type", {std::string("episode_start")}},
               {"payload", {Map{{"seed", {std::string("a")}}}}},
               {"seq", {std::int64_t{1}}},
               {"timestamp", {0.0}}}),
      "'seed' is a text, but must be a whole number");
  has(said(observation({})), "lacks the observation 'observation/top_image'");
  has(said(top({{"format", {std::string("webp")}}, {"data", {Bytes{"x"}}}})), "format 'webp': raw, png and jpeg");
  has(said(top({{"format", {std::string("png")}}})), "lacks its format or its data");
  has(said(top({{"format", {std::string("png")}}, {"data", {Bytes{"no picture"}}}})), "'top' cannot be read");
  has(said(top({{"format", {std::string("raw")}},
                {"data", {Bytes{"abc"}}},
                {"shape", {List{{std::int64_t{1} << 40}, {std::int64_t{1} << 40}, {std::int64_t{3}}}}}})),
      "and 3 bytes");
  // Its own word for the instruction, not openpi's.
  policy::Spec told = sees({{.name = "observation/x", .shape = {1}}});
  told.instructed = true;
  const auto said_of_told = [&](Map payload) {
    return message_of([&] { protocol->read(pack(observation(std::move(payload)), ArrayKeys::kTexts), told); });
  };
  has(said_of_told({{"x", {1.0}}, {"task_description", {2.0}}}), "'task_description' is a number, but must be a text");
  has(said_of_told({}), "'task_description', a text");
  EXPECT_NE(message_of([] { server_protocol("grpc"); }).find("openpi, omnigibson, vla-eval"), std::string::npos);
}

TEST(VlaEvalProtocol, AMissingInstructionIsAskedForByItsOwnWord) {
  const auto server = serve_sums({.prompt = true});
  const auto thread = make_client_thread();
  WebSocketClient client(thread, parse_url("vla-eval://127.0.0.1:" + std::to_string(server->port())), kSeconds);
  client.send(fixture("episode_start"));
  const std::string said = text_at(ask(client, "observation", x(1), 2), {"payload", "error"});
  EXPECT_NE(said.find("lacks 'task_description'"), std::string::npos) << said;
  EXPECT_NE(said.find("send \"task_description\": "), std::string::npos) << said;
  Map told = x(1);
  told.push_back({"task_description", {std::string("close the drawer")}});
  EXPECT_EQ(action(ask(client, "observation", std::move(told), 3)).size(), 1u) << "and what it says works";
}

TEST(VlaEvalProtocol, AServerAnswersEachObservationWithOneActionOfItsChunk) {
  const auto server = serve_sums({.chunk = 3});
  const auto thread = make_client_thread();
  WebSocketClient client(thread, parse_url("vla-eval://127.0.0.1:" + std::to_string(server->port())), kSeconds);
  const Value hello = ask(client, "hello", {{"protocol_version", {std::int64_t{1}}}}, 1);
  EXPECT_EQ(text_at(hello, {"type"}), "hello");
  EXPECT_EQ(text_at(hello, {"payload", "model_server"}), "sums");
  EXPECT_NE(find(*find(*find(hello, "payload"), "observation_params"), "send_state"), nullptr) << "it sees numbers";
  client.send(fixture("episode_start"));  // no answer
  for (int i = 0; i < 3; ++i) {
    const Value answer = ask(client, "observation", x(1), 7 + i);
    EXPECT_EQ(std::get<std::int64_t>(find(answer, "seq")->of), 7 + i) << "that of the question";
    EXPECT_EQ(action(answer), (std::vector<float>{-1.0f + static_cast<float>(i) / 1000 + 1e-6f})) << "episode 1";
  }
  // An error is told and the connection goes on, with a chunk of its own.
  const Value wrong = ask(client, "observation", {{"y", {1.0}}}, 11);
  EXPECT_EQ(text_at(wrong, {"type"}), "error");
  EXPECT_NE(text_at(wrong, {"payload", "error"}).find("lacks the observation"), std::string::npos);
  EXPECT_EQ(std::get<std::int64_t>(find(wrong, "seq")->of), 11);
  client.send(fixture("episode_end"));
  client.send(pack({Map{{"type", {std::string("episode_start")}},
                        {"payload", {Map{{"seed", {std::int64_t{9}}}}}},
                        {"seq", {std::int64_t{12}}},
                        {"timestamp", {0.0}}}}));
  EXPECT_EQ(action(ask(client, "observation", x(2), 13)), (std::vector<float>{-2.0f + 9e-6f}));
}

TEST(VlaEvalProtocol, EpisodesBehindItAreThoseOfThePolicyItself) {
  const auto server = serve_sums({.chunk = 4});
  SumPolicy policy({.chunk = 4});
  const auto seeds = tasks::consecutive_seeds(3, 7);
  LineTask alone(2);
  actor::PolicyActor expected_actor(policy, alone, "sums");
  const auto expected = tasks::run_episodes(alone, expected_actor, seeds);
  for (const int n : {1, 3}) {
    LineTask task(n);
    const auto remote = connect_policy("vla-eval://127.0.0.1:" + std::to_string(server->port()), {});
    actor::PolicyActor actor(*remote, task, "sums");
    const auto got = tasks::run_episodes(task, actor, seeds);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      EXPECT_EQ(got[i].steps, expected[i].steps) << i;
      EXPECT_EQ(got[i].total_reward, expected[i].total_reward) << i;
    }
  }
}

/// A server that answers its one client's messages, hello and episode_start among them, with what it is given.
class ScriptedModelServer final : public WebSocketHandler {
 public:
  explicit ScriptedModelServer(std::deque<Value> answers) : answers_(std::move(answers)) {
    server_ = std::make_unique<WebSocketServer>(WebSocketServerSettings{.port = 0}, *this);
  }
  std::string url() const { return "vla-eval://127.0.0.1:" + std::to_string(server_->port()); }
  std::string opened(std::uint64_t, const std::string&) override { return ""; }
  void message(std::uint64_t client, std::string bytes, bool) override {
    const std::string type = text_at(unpack(bytes), {"type"});
    if (type == "episode_start" || type == "episode_end" || answers_.empty()) return;
    server_->send(client, pack(answers_.front(), ArrayKeys::kTexts));
    answers_.pop_front();
  }
  void closed(std::uint64_t, const std::string&) override {}

 private:
  std::deque<Value> answers_;
  std::unique_ptr<WebSocketServer> server_;
};

TEST(VlaEvalProtocol, AServerThatAnswersWronglyIsNamedWithWhatItSaid) {
  const auto message = [](const char* type, Map payload, std::int64_t sequence) {
    return Value{Map{
        {"type", {std::string(type)}}, {"payload", {std::move(payload)}}, {"seq", {sequence}}, {"timestamp", {0.0}}}};
  };
  const auto hello = [&](std::int64_t version) { return message("hello", {{"protocol_version", {version}}}, 1); };
  const float one = 1;
  const std::vector<std::pair<std::deque<Value>, std::string>> cases{
      {{hello(2)}, "its protocol_version is 2, but 1 is spoken here"},
      {{message("action", {}, 1)}, "it answers hello with action"},
      {{{Map{{"observations", {Map{}}}}}}, "a server of openpi's protocol is named ws://HOST:PORT"},
      {{hello(1), message("error", {{"error", {std::string("observation_failed: KeyError: 'states'")}}}, 3)},
       "it refuses the observation: observation_failed: KeyError: 'states'"},
      {{hello(1), message("action", {{"actions", {float_array({1}, std::span(&one, 1))}}}, 99)},
       "it answers message 99"},
      {{hello(1), message("action", {}, 3)}, "its answer is a map of 0, but must hold 'actions'"}};
  for (const auto& [answers, part] : cases) {
    ScriptedModelServer server(answers);
    const std::string said = message_of([&] {
      LineTask task(1);
      const auto remote = connect_policy(server.url(), {.answer_timeout = kSeconds});
      actor::PolicyActor actor(*remote, task, "scripted");
      const std::uint64_t seeds[] = {3};
      tasks::run_episodes(task, actor, seeds);
    });
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
    EXPECT_TRUE(said.starts_with(server.url())) << said;
  }
}

/// Skips a test whose peer is missing.
#define COHORT_NEEDS_VLA_EVAL()                                  \
  if (std::getenv("COHORT_VLA_EVAL_PYTHON") == nullptr)          \
  GTEST_SKIP() << "COHORT_VLA_EVAL_PYTHON is not set: a Python " \
                  "that has vla-eval 0.8.0"

std::string peer(const std::string& words) {
  return std::string(std::getenv("COHORT_VLA_EVAL_PYTHON")) + " " COHORT_SOURCE_DIR "/tests/serve/vla_eval_peer.py " +
         words;
}

TEST(VlaEvalPeer, ItsRunnerPlaysEpisodesWithAPolicyThatIsServedHere) {
  COHORT_NEEDS_VLA_EVAL();
  const auto server = serve_sums({.picture = true, .prompt = true, .chunk = 2});
  const test::CommandOutcome outcome = test::run_command(peer("client " + std::to_string(server->port())));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(VlaEvalPeer, ItsModelServerActsInATaskHere) {
  COHORT_NEEDS_VLA_EVAL();
  const int port = cohort::testing::free_port();
  cohort::testing::Process server({std::getenv("COHORT_VLA_EVAL_PYTHON"),
                                   COHORT_SOURCE_DIR "/tests/serve/vla_eval_peer.py", "server", std::to_string(port)});
  LineTask task(2);
  const auto remote = connect_policy("vla-eval://127.0.0.1:" + std::to_string(port), {.connect_timeout = kSeconds});
  EXPECT_EQ(remote->spec().summary, "Back");
  actor::PolicyActor actor(*remote, task, "peer");
  // It goes against x with half of it, two steps with what it saw at the first.
  const std::int32_t envs[] = {0, 1};
  const std::uint64_t seeds[] = {3, 4};
  task.reset(envs, seeds);
  actor.begin(envs, seeds, task.spec().instruction);
  std::vector<float> chosen(2), before(2);
  for (int step = 0; step < 4; ++step) {
    const auto now = task.observation(0).span<float>();
    if (step % 2 == 0) before = {now[0], now[1]};
    actor.act(task, envs, make_view(chosen.data(), {2, 1}));
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(chosen[i], -0.5f * before[i]) << step << " " << server.err();
    task.step(make_view(chosen.data(), {2, 1}));
  }
}

}  // namespace
}  // namespace cohort::serve
