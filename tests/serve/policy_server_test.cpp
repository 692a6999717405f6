// A policy behind a port of this machine: what clients get, and what nobody can do to it.
#include "serve/policy_server.h"

#include <algorithm>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "serve/msgpack.h"
#include "serve/observation.h"
#include "serve/sum_policy.h"
#include "serve/websocket_client.h"
#include "support/process.h"

namespace cohort::serve {
namespace {

using cohort::testing::SumPolicy;
using cohort::testing::SumPolicySettings;

constexpr double kLong = cohort::testing::kPatience;  // s

/// A server of sums on a free port, and clients of it.
class PolicyServerTest : public ::testing::Test {
 protected:
  void serve(const SumPolicySettings& sums = {}, PolicyServerSettings settings = {}, int replicas = 1) {
    settings.network.port = 0;
    std::vector<std::unique_ptr<policy::Policy>> policies;
    for (int i = 0; i < replicas; ++i) policies.push_back(std::make_unique<SumPolicy>(sums));
    server_ = std::make_unique<PolicyServer>(std::move(policies), settings);
  }
  ServerUrl url() const { return parse_url("ws://127.0.0.1:" + std::to_string(server_->port())); }

  /// A connection whose metadata have been read.
  std::unique_ptr<WebSocketClient> client() const {
    auto made = std::make_unique<WebSocketClient>(thread_, url(), kLong);
    EXPECT_TRUE(server_info(unpack(made->receive(kLong).bytes)).cohort);
    return made;
  }
  static Value ask(WebSocketClient& client, const Map& message) {
    client.send(pack({message}));
    const WebSocketClient::Message answer = client.receive(kLong);
    return answer.is_text ? Value{answer.bytes} : unpack(answer.bytes);
  }
  static Map x(float value) { return {{"observation/x", {float_array({1}, std::span(&value, 1))}}}; }
  static std::vector<float> actions(const Value& answer) {
    const Value* found = find(answer, "actions");
    return found != nullptr ? to_floats(std::get<NumpyArray>(found->of)) : std::vector<float>{};
  }
  static std::string text(const Value& answer) {
    const std::string* said = std::get_if<std::string>(&answer.of);
    return said != nullptr ? *said : describe(answer);
  }

  /// What a socket that sends these bytes gets back until the server ends the connection.
  /// `then` is sent behind the answer to `bytes`.
  std::string raw(const std::string& bytes, const std::string& then = "") const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
    std::string got;
    char buffer[4096];
    if (!then.empty()) {
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      got.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      ::send(fd, then.data(), then.size(), MSG_NOSIGNAL);
    }
    ::shutdown(fd, SHUT_WR);
    for (ssize_t n = 0; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;)
      got.append(buffer, static_cast<std::size_t>(n));
    ::close(fd);
    return got;
  }

  std::shared_ptr<ClientThread> thread_ = make_client_thread();
  std::unique_ptr<PolicyServer> server_;
};

TEST_F(PolicyServerTest, RobotsThatAreStackedAreAnsweredOneByOne) {
  serve({.chunk = 2});
  const auto robots = client();
  const float two[] = {1, 5};
  const Value answer = ask(*robots, {{"observation.x", {float_array({2, 1}, two)}}});
  const Value* found = find(answer, "actions");
  ASSERT_NE(found, nullptr) << text(answer);
  EXPECT_EQ(std::get<NumpyArray>(found->of).shape, (std::vector<std::int64_t>{2, 2, 1})) << "robots, chunk, width";
  EXPECT_EQ(actions(answer), (std::vector<float>{-1, -0.999f, -5, -4.999f}));
}

/// It answers when it is let.
class Waiting final : public policy::Policy {
 public:
  Waiting() { spec_.observations = {{.name = "x", .shape = {1}}}, spec_.action_width = 1; }
  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings&) override {
    return std::make_unique<Waits>(*this);
  }
  void let() { may_.count_down(); }
  void until_asked() { asked_.wait(); }

 private:
  struct Waits final : policy::Session {
    explicit Waits(Waiting& policy) : of(policy) {}
    void begin(std::span<const std::int32_t>, std::span<const std::uint64_t>, const std::string&) override {}
    void see(std::span<const std::int32_t>, const policy::Frame&) override {}
    std::vector<std::vector<float>> act(std::span<const std::int32_t>, const policy::Frame&) override {
      of.asked_.count_down();
      of.may_.wait();
      return {{1}};
    }
    Waiting& of;
  };
  policy::Spec spec_;
  std::latch may_{1}, asked_{1};
};

TEST_F(PolicyServerTest, WhoConnectsIsGreetedWhileAnotherIsBeingAnswered) {
  auto one = std::make_unique<Waiting>();
  Waiting& waiting = *one;
  std::vector<std::unique_ptr<policy::Policy>> policies;
  policies.push_back(std::move(one));
  server_ = std::make_unique<PolicyServer>(std::move(policies), PolicyServerSettings{.network = {.port = 0}});
  const auto first = client();
  const float x = 1;
  first->send(pack({Map{{"x", {float_array({1}, std::span(&x, 1))}}}}));
  waiting.until_asked();
  const auto second = client();  // reads the metadata; the policy is still at work
  waiting.let();
  EXPECT_FALSE(first->receive(kLong).is_text);
  EXPECT_EQ(actions(ask(*second, {{"observation/x", {float_array({1}, std::span(&x, 1))}}})), std::vector<float>{1});
}

TEST_F(PolicyServerTest, AnswersWithAChunkAndItsTime) {
  serve();
  const auto one = client();
  const Value answer = ask(*one, x(0.5f));
  EXPECT_EQ(actions(answer), (std::vector<float>{-0.5f, -0.5f + 0.001f, -0.5f + 0.002f}));
  EXPECT_EQ(std::get<NumpyArray>(find(answer, "actions")->of).shape, (std::vector<std::int64_t>{3, 1}));
  const Value* timing = find(answer, "server_timing");
  ASSERT_NE(timing, nullptr);
  EXPECT_GE(std::get<double>(find(*timing, "infer_ms")->of), 0);
  EXPECT_EQ(find(*timing, "prev_total_ms"), nullptr);
  EXPECT_NE(find(*find(ask(*one, x(0)), "server_timing"), "prev_total_ms"), nullptr);
  EXPECT_NE(server_->rates().find("1 connections"), std::string::npos);
  EXPECT_EQ(server_->rates(), "") << "nothing since";
}

TEST_F(PolicyServerTest, ClientsDoNotSeeEachOthersHistories) {
  serve({}, {}, /*replicas=*/2);
  const auto a = client(), b = client(), c = client();
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(actions(ask(*a, x(1)))[0], static_cast<float>(-i));
    EXPECT_EQ(actions(ask(*b, x(10)))[0], static_cast<float>(-10 * i));
    EXPECT_EQ(actions(ask(*c, x(100)))[0], static_cast<float>(-100 * i));
  }
  EXPECT_EQ(actions(ask(*client(), x(1)))[0], -1.0f) << "a new connection begins anew";
}

TEST_F(PolicyServerTest, AnEpisodeBeginsWithAReset) {
  serve({.chunk = 1});
  const auto one = client();
  EXPECT_EQ(actions(ask(*one, x(1)))[0], -1.0f);
  EXPECT_EQ(actions(ask(*one, x(1)))[0], -2.0f);
  EXPECT_TRUE(std::get<bool>(find(ask(*one, {{"reset", {true}}}), "reset")->of));
  EXPECT_EQ(actions(ask(*one, x(1)))[0], -1.0f + 1e-6f) << "the second episode of this connection";
  Map again = x(1);
  again.push_back({"reset", {true}});
  again.push_back({"seed", {std::int64_t{1000}}});
  EXPECT_EQ(actions(ask(*one, again))[0], -1.0f + 1e-3f);
}

TEST_F(PolicyServerTest, RoboArenasAndOmnigibsonsClientsAreAnsweredInTheirForms) {
  serve({.chunk = 2});
  const auto arena = client();
  Map infer = x(1);
  infer.push_back({"endpoint", {std::string("infer")}});
  const Value bare = ask(*arena, infer);
  ASSERT_TRUE(std::holds_alternative<NumpyArray>(bare.of));
  EXPECT_EQ(to_floats(std::get<NumpyArray>(bare.of))[1], -1.0f + 0.001f);
  EXPECT_EQ(text(ask(*arena, {{"endpoint", {std::string("reset")}}})), "reset successful");

  serve({.chunk = 2}, {.network = {}, .protocol = "omnigibson"});
  const auto one = client();
  one->send(pack({Map{{"reset", {true}}}}));  // is not answered
  const auto action = [&] { return to_floats(std::get<NumpyArray>(find(ask(*one, x(1)), "action")->of)); };
  EXPECT_EQ(action(), (std::vector<float>{-1.0f + 1e-6f}));
  EXPECT_EQ(action(), (std::vector<float>{-1.0f + 0.001f + 1e-6f})) << "the second of the chunk";
  EXPECT_EQ(action(), (std::vector<float>{-2.0f + 1e-6f})) << "of the next, which looks at its own moment";
}

TEST_F(PolicyServerTest, ErrorsAreToldInATextAndEndThatConnectionAlone) {
  serve({.picture = true, .prompt = true});
  const auto other = client();
  const std::uint8_t rgb[8 * 8 * 3] = {};
  const Map good{{"x", {1.0}}, {"top", {byte_array({8, 8, 3}, rgb)}}, {"prompt", {std::string("go")}}};
  const auto refused = [&](const Map& message, const std::string& part) {
    const auto one = client();
    const std::string said = text(ask(*one, message));
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(message_of([&] { one->receive(kLong); }).find("closed the connection"), std::string::npos);
  };
  refused({}, "lacks the observation 'observation/x'");
  refused({good[0], good[1]}, "the message lacks 'prompt': the policy must be told");
  for (const char* blank : {"", " \t\r\n"})
    refused({good[0], good[1], {"prompt", {std::string(blank)}}}, "'prompt' holds no word: the policy must be told");
  refused({good[0], good[1], {"prompt", {std::string("fail")}}}, "the sums have failed");
  const auto noise = client();
  noise->send("\xc1");
  EXPECT_NE(noise->receive(kLong).bytes.find("no msgpack message"), std::string::npos);
  EXPECT_EQ(actions(ask(*other, good)).size(), 3u);
}

TEST_F(PolicyServerTest, AnInstructionToAPolicyThatTakesNoneIsSaidOnce) {
  for (const bool instructed : {false, true}) {
    ::testing::internal::CaptureStderr();
    serve({.prompt = instructed});
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(actions(ask(*client(), {{"x", {1.0}}, {"prompt", {std::string("go")}}})).size(), 3u);
    const std::string log = ::testing::internal::GetCapturedStderr();
    const std::size_t said = log.find("it sends an instruction, but the policy takes none");
    EXPECT_EQ(said != std::string::npos, !instructed) << log;
    if (said != std::string::npos) EXPECT_EQ(log.find("it sends an instruction", said + 1), std::string::npos) << log;
  }
}

TEST_F(PolicyServerTest, APictureThatThePolicyDoesNotLookAtIsSaidOnceForAClient) {
  ::testing::internal::CaptureStderr();
  serve({.picture = true});
  const std::uint8_t rgb[8 * 8 * 3] = {};
  Map seen{{"x", {1.0}}, {"top", {byte_array({8, 8, 3}, rgb)}}, {"side", {byte_array({8, 8, 3}, rgb)}}};
  const auto one = client();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(actions(ask(*one, seen)).size(), 3u);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::size_t said = log.find("it sends the picture 'side', which the policy does not look at");
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("it sends the picture", said + 1), std::string::npos) << log;
}

TEST_F(PolicyServerTest, SpeaksHttpToWhoeverLooksAndNothingToWebPages) {
  serve();
  const std::string end = " HTTP/1.1\r\nHost: a\r\n";
  EXPECT_TRUE(raw("GET /healthz" + end + "\r\n").starts_with("HTTP/1.1 200 OK"));
  EXPECT_NE(raw("GET /health" + end + "\r\n").find(R"({"status": "ok"})"), std::string::npos) << "vla-eval's";
  EXPECT_NE(raw("GET /" + end + "\r\n").find("426"), std::string::npos);
  const std::string upgrade =
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  EXPECT_NE(raw("GET /" + end + upgrade + "Origin: http://evil\r\n\r\n").find("403"), std::string::npos);
  // The accept key of RFC 6455, section 1.3, then the metadata.
  const std::string greeted = raw("GET /" + end + upgrade + "\r\n");
  EXPECT_NE(greeted.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), std::string::npos);
  EXPECT_NE(raw("GET /" + end + upgrade + "\r\n\x82").find("400"), std::string::npos) << "a frame before the answer";
}

TEST_F(PolicyServerTest, LimitsHold) {
  PolicyServerSettings settings;
  settings.network.max_connections = 2;
  settings.network.max_message = 1000;
  serve({}, settings);
  const auto a = client();
  auto b = client();
  EXPECT_NE(message_of([&] { client(); }).find("takes no more clients"), std::string::npos);
  b->send(std::string(2000, 'x'));
  EXPECT_NE(message_of([&] { b->receive(kLong); }), "");
  b.reset();
  EXPECT_TRUE(cohort::testing::eventually([&] {
    try {
      return client() != nullptr;
    } catch (const Error&) {
      return false;
    }
  })) << "its place is free again";
  EXPECT_EQ(actions(ask(*a, x(1)))[0], -1.0f);
}

TEST_F(PolicyServerTest, APortThatIsUsedIsRefusedWithTheRemedy) {
  serve();
  PolicyServerSettings settings;
  settings.network.port = server_->port();
  std::vector<std::unique_ptr<policy::Policy>> policies;
  policies.push_back(std::make_unique<SumPolicy>());
  const std::string said = message_of([&] { PolicyServer(std::move(policies), settings); });
  EXPECT_NE(said.find("another program uses the port; choose another with --port"), std::string::npos) << said;
  WebSocketServerSettings elsewhere;
  elsewhere.host = "no.such.host.invalid";
  policies.clear();
  policies.push_back(std::make_unique<SumPolicy>());
  EXPECT_NE(message_of([&] { PolicyServer(std::move(policies), {.network = elsewhere}); }).find("--host"),
            std::string::npos);
}

TEST_F(PolicyServerTest, RandomBytesAndFramesNeverEndTheServer) {
  serve();
  const std::string handshake =
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  for (std::uint64_t i = 0; i < 150; ++i) {
    const RandomStream draw(11, RandomPurpose::kTest, i, 0);
    std::string noise(static_cast<std::size_t>(1 + draw.uniform(0) * 300), '\0');
    for (std::size_t k = 0; k < noise.size(); ++k)
      noise[k] = static_cast<char>(static_cast<int>(draw.uniform(k + 1) * 256));
    if (i % 3 == 0) raw(noise);
    if (i % 3 == 1) raw(handshake, noise);  // frames of noise
    if (i % 3 == 2) raw(handshake.substr(0, noise.size() % handshake.size()) + noise);
  }
  EXPECT_EQ(actions(ask(*client(), x(1)))[0], -1.0f);
}

TEST_F(PolicyServerTest, TheEndIsToldToEveryClient) {
  serve();
  const auto one = client();
  ask(*one, x(1));
  server_->stop();
  EXPECT_NE(message_of([&] { one->receive(kLong); }).find("the server ends"), std::string::npos);
  server_.reset();
}

}  // namespace
}  // namespace cohort::serve
