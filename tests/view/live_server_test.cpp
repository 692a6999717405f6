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
      const json j = json::parse(m.bytes);
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
  page.send(json{{"do", "joint"}, {"index", joint}, {"value", 0.125}}.dump());
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
        text = "{\"do\":" + words[1 + random() % 7] + ",\"index\":" + words[17 + random() % 9] +
               ",\"value\":" + words[17 + random() % 9] + ",\"seed\":" + words[17 + random() % 9] + "}";
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
  const auto actor = tasks::make_random_actor(1);
  TaskSession session(*task, {{"random", actor.get()}}, 5);
  EXPECT_EQ(session.status(), "no episode has ended");
  for (std::int64_t i = 0; i < task->spec().horizon; ++i) session.step();
  EXPECT_NE(session.status().find("episodes succeeded"), std::string::npos) << session.status();
  EXPECT_EQ(session.curve_values(1).size(), session.curve_names().size());
}

}  // namespace
}  // namespace cohort::view
