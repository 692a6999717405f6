/// A policy in another process or on another machine: openpi's own server, `cohort serve`, a model server of vla-eval, and
/// what else speaks their protocols (serve/client_protocol.h).
///
///   PolicyClient policy(thread, "ws://10.0.0.7:8000", {});
///   policy.begin("close the drawer", /*seed=*/7);
///   policy.ask({{"observation/state", {state}}}, "close the drawer");
///   const Chunk chunk = policy.answer(7);                       // throws where an action has another width
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serve/client_protocol.h"
#include "serve/observation.h"
#include "serve/value.h"
#include "serve/websocket_client.h"

namespace cohort::serve {

struct ClientSettings {
  double connect_timeout = 120;  ///< s that are waited for a server which loads its policy
  double answer_timeout = 120;   ///< s for an answer; the first ones of a server that compiles take long
};

/// Actions, the next one first.
struct Chunk {
  std::int64_t rows = 0;
  std::vector<float> actions;  ///< (rows, width)
};

class PolicyClient {
 public:
  /// Connects, and reads what the server says of itself. While nobody listens it is tried again, with a line in the log.
  /// Throws Error naming the server and the remedy.
  PolicyClient(const std::shared_ptr<ClientThread>& thread, const std::string& url, const ClientSettings& settings);

  const ServerInfo& info() const { return info_; }

  /// A connection holds one episode only.
  bool one_episode() const { return protocol_->one_episode(); }
  void begin(const std::string& instruction, std::uint64_t seed);
  void ask(Map observation, const std::string& instruction);
  /// Of the last ask(): {"actions": (rows, width)} or one row (width), OmniGibson's "action", or RoboArena's bare array.
  /// Throws Error naming the server: its own error, none within the time, the end of the connection, actions of another
  /// width or that are not finite.
  Chunk answer(std::int64_t width);

 private:
  std::string url_;
  ClientSettings settings_;
  ServerInfo info_;
  std::unique_ptr<WebSocketClient> client_;
  std::unique_ptr<ClientProtocol> protocol_;
};

}  // namespace cohort::serve
