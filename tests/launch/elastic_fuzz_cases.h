/// Hostile messages for the tests of the rendezvous: every kind that there is, as it is or damaged, and a server that
/// says them.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/json_text.h"
#include "core/philox.h"
#include "launch/elastic_client.h"
#include "launch/signed_message.h"

namespace cohort::launch {

using FuzzJson = nlohmann::json;

inline constexpr std::uint64_t kFuzzSeed = 20261126;

/// Numbers of one case.
class FuzzDraws {
 public:
  explicit FuzzDraws(std::uint64_t number) : stream_(kFuzzSeed, RandomPurpose::kTest, number, 0) {}
  std::size_t below(std::size_t n) { return stream_.below(next_++, static_cast<std::uint32_t>(n)); }
  bool once_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// Calls it with 0, 1, ... as often as asked, or for COHORT_FUZZ_SECONDS.
inline void for_many(std::uint64_t count, const std::function<void(std::uint64_t)>& body) {
  const char* seconds = std::getenv("COHORT_FUZZ_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 0);
  std::uint64_t i = 0;
  while (seconds ? std::chrono::steady_clock::now() < end : i < count) body(i++);
  if (seconds) std::printf("%llu cases\n", static_cast<unsigned long long>(i));
}

/// One of every kind that an agent says; the first three are joins.
inline const std::vector<FuzzJson>& said_by_agents() {
  static const FuzzJson join{{"do", "join"}, {"job", "job"}, {"node", "n"},      {"host", "h"},
                             {"ranks", 2},   {"ack", true},  {"nonce", "abcdef"}};
  static const std::vector<FuzzJson> all = [] {
    FuzzJson numbered = join, moved = join;
    numbered["number"] = 3;
    moved["past"] = {{"round", 2}, {"nodes", 2}, {"restarts", 1}, {"recovery", 1}, {"certain", false}};
    return std::vector<FuzzJson>{
        join,
        numbered,
        moved,
        {{"do", "beat"}},
        {{"do", "ready"}},
        {{"do", "state"}},
        {{"do", "leave"}},
        {{"do", "finished"}, {"round", 0}},
        {{"do", "failed"}, {"round", 0}, {"code", 3}, {"what", "exit code 3"}, {"again", true}},
        {{"do", "lost"}, {"round", 0}, {"code", 137}, {"what", "SIGKILL\n  why  x"}},
        {{"do", "waits"}, {"round", 0}, {"recovery", 0}},
        {{"do", "waits"}, {"round", 0}, {"recovery", 1}},
        {{"do", "cannot"}, {"round", 0}, {"what", "rank 1 has finished"}}};
  }();
  return all;
}

inline const std::vector<FuzzJson>& said_by_servers() {
  static const std::vector<FuzzJson> all{{{"is", "beat"}},
                                         {{"is", "joined"}},
                                         {{"is", "standby"}},
                                         {{"is", "refused"}, {"why", "the job has all of its 2 nodes"}},
                                         {{"is", "round"},
                                          {"round", 1},
                                          {"node_rank", 1},
                                          {"nodes", 2},
                                          {"first_rank", 2},
                                          {"world_size", 4},
                                          {"store_address", "127.0.0.1"},
                                          {"store_port", 29500},
                                          {"restarts", 0},
                                          {"recovery", 0}},
                                         {{"is", "recover"}, {"number", 1}, {"why", "a rank died"}, {"restarts", 1}},
                                         {{"is", "go"}, {"number", 1}},
                                         {{"is", "gather"}, {"why", "node b has joined"}},
                                         {{"is", "end"}, {"code", 3}, {"why", "no restart is left"}},
                                         {{"is", "state"}, {"state", {{"phase", "running"}}}}};
  return all;
}

inline FuzzJson hostile_value(FuzzDraws& draw) {
  FuzzJson deep = FuzzJson::array();
  for (int i = 0; i < 50; ++i) deep = FuzzJson::array({deep});
  static const std::vector<FuzzJson> plain{nullptr,
                                           true,
                                           -1,
                                           0,
                                           1 << 30,
                                           (1 << 30) + 1,
                                           INT64_MIN,
                                           INT64_MAX,
                                           UINT64_MAX,
                                           UINT64_MAX - 41,
                                           1.5,
                                           1e308,
                                           "",
                                           "\x1b[2J\x1b]0;evil\x07",
                                           std::string("a\0b", 3),
                                           "a\nb\r\x7f",
                                           FuzzJson::object(),
                                           FuzzJson::array(),
                                           {{"round", 1}},
                                           std::string(5000, 'x'),
                                           std::string(60000, 'y')};
  return draw.once_in(20) ? deep : draw.of(plain);
}

/// A message of these kinds, as it is or not.
inline std::string hostile(FuzzDraws& draw, const std::vector<FuzzJson>& kinds) {
  FuzzJson message = draw.of(kinds);
  const auto some_key = [&] {
    auto at = message.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(draw.below(message.size())));
    return at.key();
  };
  for (std::size_t changes = draw.below(3); changes > 0; --changes) {
    const std::string key = some_key();
    switch (draw.below(4)) {
      case 0:
        if (message.size() > 1) message.erase(key);
        break;
      case 1:
        message[key] = draw.of(kinds).begin().value();
        break;
      case 2:
        if (message[key].is_object() && !message[key].empty()) {
          message[key][message[key].begin().key()] = hostile_value(draw);
          break;
        }
        [[fallthrough]];
      default:
        message[key] = hostile_value(draw);
    }
  }
  std::string text = json_text(message, -1, BadUtf8::kReplaced);
  switch (draw.below(8)) {
    case 0:
      text[draw.below(text.size())] = static_cast<char>(draw.below(256));
      break;
    case 1:
      text.erase(draw.below(text.size()));
      break;
    case 2:
      text.insert(1, draw.once_in(2) ? R"("do":"leave","is":"end",)" : R"("round":9,"round":[],)");
      break;
    case 3:
      if (draw.once_in(20)) text = std::string(30000, '[');
      break;
    default:
      break;
  }
  if (text.size() + 64 > kMostBytes) text.resize(kMostBytes - 64);
  return text;
}

/// A server by hand, for one connection: says hello, hears the join, and says what it is given, signed.
class HandServer {
 public:
  HandServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    ::listen(socket_, 4);
    port = ntohs(address.sin_port);
  }
  ~HandServer() {
    ::shutdown(socket_, SHUT_RDWR);  // where nobody has come
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  void serve(std::string hello, std::vector<std::string> texts) {
    thread_ = std::thread([this, hello = std::move(hello), texts = std::move(texts)] {
      const int fd = ::accept(socket_, nullptr, nullptr);
      const auto send = [&](const std::string& bytes) { (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL); };
      send(frame(hello));
      FrameReader frames;
      std::optional<std::string> join;
      char bytes[4096];
      while (!join) {
        const ssize_t count = ::recv(fd, bytes, sizeof bytes, 0);
        if (count <= 0) break;
        frames.add(bytes, static_cast<std::size_t>(count));
        join = frames.next();
      }
      if (join) {
        const auto nonce = parse_json<FuzzJson>(join->substr(64))["nonce"].get<std::string>();
        Signer signer(kJobSecret, "challenge" + nonce, true);
        for (const std::string& text : texts) send(signer.sign(text));
      }
      ::shutdown(fd, SHUT_RDWR);
      ::close(fd);
    });
  }

  int port = 0;

 private:
  int socket_;
  std::thread thread_;
};

inline const std::string kHello = R"({"hello":"cohort-rendezvous 1","challenge":"challenge"})";

}  // namespace cohort::launch
