/// What the tests of the rendezvous share: limits, a secret, and one agent's end of a conversation, by hand.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/json_text.h"
#include "launch/elastic_state.h"
#include "launch/signed_message.h"

namespace cohort::launch {

inline constexpr const char* kJobSecret = "0123456789abcdef-secret";

inline ElasticLimits limits_of(int least, int most, int restarts = 0) {
  return {.least = least, .most = most, .max_restarts = restarts, .last_call = 5, .patience = 60, .lost_after = 5};
}

/// For a server, whose clock is the machine's: nobody is lost because the machine is busy.
inline ElasticLimits patient_limits_of(int least, int most, int restarts = 0) {
  ElasticLimits limits = limits_of(least, most, restarts);
  limits.patience = limits.lost_after = 1e6;
  return limits;
}

/// One agent's end of a conversation, by hand.
class RendezvousClient {
 public:
  explicit RendezvousClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{.tv_sec = 240, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RendezvousClient() { ::close(fd_); }
  RendezvousClient(const RendezvousClient&) = delete;
  RendezvousClient& operator=(const RendezvousClient&) = delete;

  /// "" when the server has closed the connection.
  std::string frame_text() {
    for (;;) {
      if (auto payload = frames_.next()) return *payload;
      char bytes[4096];
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
      if (count <= 0) return "";
      frames_.add(bytes, static_cast<std::size_t>(count));
    }
  }
  void send_raw(const std::string& bytes) { (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void open(const std::string& secret) {
    const nlohmann::json hello = parse_json<nlohmann::json>(frame_text());
    signer_ = std::make_unique<Signer>(secret, hello.at("challenge").get<std::string>() + "abcdef", false);
  }
  void say(nlohmann::json message) {
    message["nonce"] = "abcdef";
    say_text(json_text(message));
  }
  /// Signed, whatever it is.
  void say_text(const std::string& text) { send_raw(signer_->sign(text)); }
  nlohmann::json hear() {
    for (;;) {
      const std::string payload = frame_text();
      if (payload.empty()) return nlohmann::json();
      nlohmann::json message = parse_json<nlohmann::json>(signer_->verify(payload));
      if (message["is"] != "beat") return message;
    }
  }
  void join(const std::string& node, const std::string& job = "job", const nlohmann::json& past = nlohmann::json()) {
    nlohmann::json message{{"do", "join"}, {"job", job}, {"node", node}, {"host", "h"}, {"ranks", 1}};
    if (!past.is_null()) message["past"] = past;
    say(message);
  }
  bool connected() const { return connected_; }

 private:
  int fd_;
  bool connected_ = false;
  FrameReader frames_;
  std::unique_ptr<Signer> signer_;
};

}  // namespace cohort::launch
