/// Serves any policy (policy/policy.h) over a WebSocket with msgpack and NumPy arrays, by openpi's protocol or another one
/// (serve/server_protocol.h).
///
///   PolicyServer server(std::move(replicas), {.network = {.host = "0.0.0.0", .port = 8000}});
///   while (...) log::info("{}", server.rates());      // it serves in threads of its own
///   server.stop();
///
/// Observations of N robots with one more dimension in front are answered by actions with one more, (N, chunk, width), where
/// the policy looks at one moment and remembers nothing.
///
/// By openpi's, the client gets the metadata (serve/observation.h) on connection, whoever else is being answered, then for each
/// of its messages {"actions": (chunk, width) float32, "server_timing": {"infer_ms", "prev_total_ms"}}. What is wrong with a
/// message is told as the protocol tells it. Each connection has a session of its own: frames and memory of one client are
/// never those of another. Its episodes are numbered 0, 1, ..., and the number keys what is drawn at random, unless it says
/// "seed".
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "serve/websocket_server.h"

namespace cohort::serve {

struct PolicyServerSettings {
  WebSocketServerSettings network;
  std::string protocol = "openpi";  ///< openpi, omnigibson or vla-eval
  double control_period = 0;  ///< s between the actions that are executed, for policies that must know it; 0: not known
};

class PolicyServer {
 public:
  /// `replicas`: the same policy on each of the devices; connections go round them, and each answers in a thread of its
  /// own. Throws Error where host or port cannot be had, and what Policy::session() throws.
  PolicyServer(std::vector<std::unique_ptr<policy::Policy>> replicas, const PolicyServerSettings& settings);
  ~PolicyServer();
  PolicyServer(const PolicyServer&) = delete;
  PolicyServer& operator=(const PolicyServer&) = delete;

  int port() const;
  /// "3 connections, 41.3 requests/s, 18.2 ms of inference" since the last call; empty where nothing was asked.
  std::string rates();
  /// Ends every connection; what is being computed is finished.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::serve
