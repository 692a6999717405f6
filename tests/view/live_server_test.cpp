// The server of `cohort view`: who may talk to it, what it makes of what it is told, how much it sends.
#include "view/live_server.h"

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/json_text.h"
#include "serve/websocket_client.h"
#include "tasks/actor.h"
#include "tasks/registry.h"

namespace cohort::view {
namespace {

using nlohmann::json;

/// A server with its loop in a thread, until the end of the test.
class Served {
 public:
  explicit Served(LiveSession& session, LiveServerSettings settings = {}) : server(session, settings) {
    thread_ = std::thread([this] { server.run([this] { return ends_.load(); }); });
  }
  ~Served() {
    ends_ = true;
    thread_.join();
  }
  LiveServer server;

 private:
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

class LiveServing : public testing::Test {
 protected:
  LiveServing() {
    scene_.add_entity(sim::Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/walker.xml"});
    scene_.build(2);
    session_.emplace(scene_, "random", -1);
  }

  /// The first line of the answer to a request as it is written here.
  static std::string first_line(int port, const std::string& request) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string answer;
    char bytes[4096];
    for (ssize_t n = 0; answer.find("\r\n") == std::string::npos && (n = ::recv(fd, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(n));
    ::close(fd);
    return answer.substr(0, answer.find("\r\n"));
  }
  static std::string get(const std::string& target, const std::string& host) {
    return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  }
  static std::string handshake(const std::string& target, const std::string& host, const std::string& origin) {
    return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + origin +
           "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  }

  sim::Scene scene_;
  std::optional<ModelSession> session_;
};

TEST_F(LiveServing, OnlyWhoHasTheTokenAndComesFromItsOwnPageGetsIn) {
  const Served served(*session_);
  const int port = served.server.port();
  const std::string own = "127.0.0.1:" + std::to_string(port), token = "token=" + served.server.token();
  EXPECT_NE(first_line(port, get("/?" + token, own)).find(" 200 "), std::string::npos);
  EXPECT_NE(first_line(port, get("/?" + token, "localhost:9000")).find(" 200 "), std::string::npos) << "through ssh -L";
  EXPECT_NE(first_line(port, get("/", own)).find(" 403 "), std::string::npos);
  EXPECT_NE(first_line(port, get("/?token=" + std::string(32, '0'), own)).find(" 403 "), std::string::npos);
  EXPECT_NE(first_line(port, get("/?" + token, "evil.example:80")).find(" 403 "), std::string::npos) << "DNS rebinding";
  EXPECT_NE(first_line(port, get("/?" + token, "localhost:1'; script-src *")).find(" 403 "), std::string::npos);
  EXPECT_NE(first_line(port, get("/etc/passwd?" + token, own)).find(" 404 "), std::string::npos);
  const std::string socket = "/socket?" + token;
  EXPECT_NE(first_line(port, handshake(socket, own, "http://" + own)).find(" 101 "), std::string::npos);
  EXPECT_NE(first_line(port, handshake(socket, own, "http://evil.example")).find(" 403 "), std::string::npos);
  EXPECT_NE(first_line(port, handshake("/socket?token=x", own, "http://" + own)).find(" 403 "), std::string::npos);
  EXPECT_NE(first_line(port, handshake(socket, "evil.example", "http://evil.example")).find(" 403 "),
            std::string::npos);
}

TEST_F(LiveServing, APageIsSentTheSceneThenPosesAndWhatItAsksForHappens) {
  const Served served(*session_);
  auto thread = serve::make_client_thread();
  serve::WebSocketClient page(thread,
                              serve::parse_url("ws://127.0.0.1:" + std::to_string(served.server.port()) +
                                               "/socket?token=" + served.server.token()),
                              30);
  const auto kind_of = [](const std::string& bytes) {
    std::uint32_t kind = 0;
    std::memcpy(&kind, bytes.data(), 4);
    return kind;
  };
  EXPECT_EQ(kind_of(page.receive(30).bytes), 1u) << "the scene comes first";
  const auto state_where = [&](const auto& holds) {
    for (int i = 0; i < 2000; ++i) {
      const auto m = page.receive(30);
      if (!m.is_text) {
        page.send(R"({"do":"seen"})");
        continue;
      }
      const json j = parse_json<json>(m.bytes);
      if (j.at("kind") == "state" && holds(j)) return true;
    }
    return false;
  };
  EXPECT_TRUE(state_where([](const json& j) { return j.at("time").get<double>() > 0.1; })) << "it plays";
  page.send(R"({"do":"pause"})");
  EXPECT_TRUE(state_where([](const json& j) { return !j.at("playing").get<bool>(); }));
  page.send(R"({"do":"reset","seed":7})");
  EXPECT_TRUE(state_where([](const json& j) { return j.at("time").get<double>() == 0; }));
  page.send(R"({"do":"step"})");
  EXPECT_TRUE(
      state_where([&](const json& j) { return std::abs(j.at("time").get<double>() - session_->period()) < 1e-9; }));
  std::size_t joint = 0;
  while (scene_.info().joints[joint].type != sim::JointType::kHinge) ++joint;
  const int qpos = scene_.info().joints[joint].qpos;
  page.send(json_text(json{{"do", "joint"}, {"index", joint}, {"value", 0.125}}));
  EXPECT_TRUE(state_where([&](const json& j) {
    return std::abs(j.at("qpos")[static_cast<std::size_t>(qpos)].get<double>() - 0.125) < 1e-6;
  }));
}

TEST_F(LiveServing, TenThousandRandomMessagesEndNothing) {
  LiveServer server(*session_, {.playing = false});
  std::mt19937 random(3);
  const std::vector<std::string> words{"\"do\"",      "\"play\"",
                                       "\"reset\"",   "\"joint\"",
                                       "\"control\"", "\"speed\"",
                                       "\"env\"",     "\"actor\"",
                                       "\"index\"",   "\"value\"",
                                       "\"seed\"",    ":",
                                       ",",           "{",
                                       "}",           "[",
                                       "]",           "1e999",
                                       "-1",          "0",
                                       "3",           "99999999999999999999",
                                       "null",        "true",
                                       "\"\\ud800\"", "NaN"};
  const std::vector<std::string> deeds{"play",  "pause", "step", "reset",   "speed",   "actor", "env",     "contacts",
                                       "joint", "place", "grab", "control", "command", "seen",  "release", "none"};
  const std::vector<std::string> values{
      "0",     "1",   "2", "-1", "1e30", "1e999", "[1,2,3]", "[1,1e30,\"x\"]", "{}", "true", "18446744073709551615",
      "\"3\"", "null"};
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    const auto length = random() % 40;
    switch (random() % 3) {
      case 0:
        for (unsigned k = 0; k < length; ++k) text += static_cast<char>(random());
        break;
      case 1:
        for (unsigned k = 0; k < length; ++k) text += words[random() % words.size()];
        break;
      default:
        text = "{\"do\":\"" + deeds[random() % deeds.size()] + "\"";
        for (const char* name : {"index", "value", "seed", "env"})
          if (random() % 4 != 0) text += format(",\"{}\":{}", name, values[random() % values.size()]);
        text += "}";
    }
    server.apply(text);
  }
  EXPECT_NE(server.apply(std::string(5000, '[')).find("too long"), std::string::npos);
  EXPECT_NE(server.apply(std::string(4000, '[')).find("error"), std::string::npos);
  EXPECT_EQ(server.apply(R"({"do":"reset","seed":1})"), "");
  EXPECT_EQ(server.apply(R"({"do":"step"})"), "");
  for (const float q : scene_.get_qpos()) EXPECT_TRUE(std::isfinite(q));
}

TEST_F(LiveServing, AFloodOfMessagesEndsItsConnectionAndNoOther) {
  const Served served(*session_, {.playing = false});
  auto thread = serve::make_client_thread();
  const serve::ServerUrl url = serve::parse_url("ws://127.0.0.1:" + std::to_string(served.server.port()) +
                                                "/socket?token=" + served.server.token());
  serve::WebSocketClient quiet(thread, url, 30), loud(thread, url, 30);
  quiet.receive(30);
  for (int i = 0; i < 3000; ++i) loud.send(R"({"do":"speed","value":1})");
  const auto until_it_ends = [&] {
    for (int i = 0; i < 20'000; ++i) loud.receive(30);
  };
  EXPECT_THROW(until_it_ends(), Error);
  quiet.send(R"({"do":"nothing of the kind"})");
  for (int i = 0; i < 20'000; ++i) {
    const auto m = quiet.receive(30);
    if (m.is_text && m.bytes.find("cannot be done") != std::string::npos) return;
  }
  FAIL() << "the other page is not answered";
}

TEST(LiveTask, EpisodesFollowEachOtherAndAreCounted) {
  const auto task = tasks::make_task("reach", {.n_envs = 2});
  TaskSession session(*task, {{"random", tasks::make_random_actor(1)}}, 5);
  EXPECT_EQ(session.status(), "no episode has ended");
  for (std::int64_t i = 0; i < task->spec().horizon; ++i) session.step();
  EXPECT_NE(session.status().find("episodes succeeded"), std::string::npos) << session.status();
  EXPECT_EQ(session.curve_values(1).size(), session.curve_names().size());
}

/// Frames and states as a page gets them.
class Watching {
 public:
  explicit Watching(const LiveServer& server)
      : page_(serve::make_client_thread(),
              serve::parse_url("ws://127.0.0.1:" + std::to_string(server.port()) + "/socket?token=" + server.token()),
              30) {}
  void ask(const json& what) { page_.send(json_text(what)); }
  template <class Holds>
  bool state_where(const Holds& holds) {
    return text_where([&](const json& j) { return j.at("kind") == "state" && holds(j); });
  }
  template <class Holds>
  bool text_where(const Holds& holds) {
    for (int i = 0; i < 5000; ++i) {
      const auto m = page_.receive(30);
      if (m.is_text && holds(parse_json<json>(m.bytes))) return true;
      if (!m.is_text) page_.send(R"({"do":"seen"})");
    }
    return false;
  }
  /// Contacts of a frame that has some, 12 floats each.
  std::vector<float> contacts() {
    for (int i = 0; i < 5000; ++i) {
      const auto m = page_.receive(30);
      if (m.is_text) continue;
      page_.send(R"({"do":"seen"})");
      std::uint32_t kind = 0, count = 0;
      std::memcpy(&kind, m.bytes.data(), 4);
      if (kind != 2) continue;
      std::memcpy(&count, m.bytes.data() + 36, 4);
      if (count == 0) continue;
      std::vector<float> out(std::size_t{12} * count);
      std::memcpy(out.data(), m.bytes.data() + 40, out.size() * 4);
      return out;
    }
    return {};
  }

 private:
  serve::WebSocketClient page_;
};

TEST(LiveContacts, TheirForcesCarryWhatLiesOnTheFloor) {
  sim::Scene scene;
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><worldbody><geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="3"/></body></worldbody></mujoco>)"});
  scene.build(2);
  for (int i = 0; i < 500; ++i) scene.step();
  ModelSession session(scene, "zero", -1);
  const Served served(session, {.playing = false});
  Watching page(served.server);
  page.ask({{"do", "play"}});
  page.ask({{"do", "contacts"}, {"value", true}});
  EXPECT_TRUE(page.state_where([](const json& j) { return j.at("contacts").get<bool>() && j.at("time") > 0.5; }));
  const std::vector<float> rows = page.contacts();
  double up[2] = {0, 0};
  for (std::size_t i = 0; i < rows.size(); i += 12) {
    EXPECT_EQ(rows[i + 1] + rows[i + 2], 1) << "between the world and the box";
    up[static_cast<int>(rows[i])] += static_cast<double>(rows[i + 11]) * (rows[i + 2] == 1 ? 1 : -1);
  }
  for (const double newtons : up) EXPECT_NEAR(newtons, 3 * 9.81, 0.3);
}

TEST(LiveTask, ACommandIsHeldUntilItIsReleased) {
  const auto task = tasks::make_task("quadruped-velocity", {.n_envs = 2, .overrides = {"commands_by_hand=true"}});
  TaskSession session(*task, {{"zero", tasks::make_random_actor(1)}}, 5);
  ASSERT_EQ(session.commands().size(), 1u);
  EXPECT_EQ(session.commands()[0].parts.size(), 3u);
  const std::vector<float> drawn = session.command_values(1);
  session.set_command({1}, 0, 0.25f);
  for (int i = 0; i < 20; ++i) session.step();
  EXPECT_EQ(session.command_values(1), (std::vector<float>{0.25f, drawn[1], drawn[2]}));
  EXPECT_TRUE(session.is_commanded(1));
  EXPECT_FALSE(session.is_commanded(0)) << "nobody else is told";
  EXPECT_NE(session.command_values(0)[0], 0.25f);
  session.reset(5);
  EXPECT_EQ(session.command_values(1)[0], 0.25f) << "over a reset, too";
  session.set_command({1}, 0, 100);
  EXPECT_EQ(task->reward().shape[0], 2);
  session.step();
  EXPECT_EQ(session.command_values(1)[0], session.commands()[0].high[0]) << "within the task's range";
  session.release_commands({0, 1});
  session.reset(5);
  EXPECT_EQ(session.command_values(1)[0], drawn[0]) << "as its seed draws it";
  EXPECT_THROW(session.set_command({0}, 3, 0), Error);
}

TEST(LiveTask, HeldCommandsAreWhatATaskWithoutThemWouldDraw) {
  const auto plain = tasks::make_task("quadruped-velocity", {});
  const auto held = tasks::make_task("quadruped-velocity", {.overrides = {"commands_by_hand=true"}});
  const std::vector<float> actions(static_cast<std::size_t>(plain->spec().action.width()), 0.1f);
  const std::vector<std::int32_t> envs{0};
  const std::vector<std::uint64_t> seeds{3};
  for (tasks::Task* task : {plain.get(), held.get()}) {
    task->reset(envs, seeds);
    for (int i = 0; i < 50; ++i) task->step(make_view(const_cast<float*>(actions.data()), {1, std::ssize(actions)}));
  }
  for (std::size_t f = 0; f < plain->spec().observations.size(); ++f) {
    const auto a = plain->observation(f).span<float>(), b = held->observation(f).span<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << plain->spec().observations[f].name;
  }
}

TEST(LiveTask, ANewCheckpointIsToBeChosenAndTheNewestActs) {
  const auto task = tasks::make_task("reach", {.n_envs = 2});
  const std::shared_ptr<tasks::Actor> first = tasks::make_random_actor(1), second = tasks::make_random_actor(2);
  std::optional<std::vector<TaskSession::Named>> there;
  TaskSession session(*task, {{"newest", first}, {"checkpoint-1", first}}, 5, [&] { return std::exchange(there, {}); });
  for (std::int64_t i = 0; i < task->spec().horizon; ++i) session.step();
  EXPECT_FALSE(session.look_again());
  EXPECT_NE(session.status(), "no episode has ended");
  there = {{"newest", second}, {"checkpoint-2", second}, {"checkpoint-1", first}};
  const Served served(session, {.playing = false});
  Watching page(served.server);
  EXPECT_TRUE(page.text_where([](const json& j) {
    return j.at("kind") == "actors" && j.at("actors") == json{"newest", "checkpoint-2", "checkpoint-1"};
  }));
  EXPECT_TRUE(page.state_where([](const json& j) { return j.at("status") == "no episode has ended"; }))
      << "episodes are counted anew for another policy";
  page.ask({{"do", "actor"}, {"value", 2}});
  EXPECT_TRUE(page.state_where([](const json& j) { return j.at("actor") == 2; }));
}

}  // namespace
}  // namespace cohort::view
