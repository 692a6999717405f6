/// The rendezvous of an elastic job: one of its agents hosts it on the endpoint that all are given, in a thread. It
/// moves an ElasticState along and tells every agent what that means for it.
///
/// Conversation (signed_message.h): the server says {"hello": "cohort-rendezvous 1", "challenge": digits}, unsigned.
/// The client answers {"do": "join", "job": ..., "node": ..., "host": ..., "ranks": ..., "nonce": digits}, then
/// {"do": "beat" | "ready" | "leave" | "state"}, {"do": "finished", "round": n} or {"do": "failed" | "lost", "round": n,
/// "code": ..., "what": ...} (of "failed" also "again": whether it may help to start again), {"do": "waits", "round": n, "recovery": k} or {"do": "cannot", "round": n, "what": ...}.
/// The server says {"is": "beat"} every second, {"is": "round", "round": n, "node_rank": ..., "nodes": ...,
/// "first_rank": ..., "world_size": ..., "store_address": ..., "store_port": ..., "restarts": ..., "recovery": ...},
/// {"is": "recover", "number": k, "why": ...}, {"is": "go", "number": k}, {"is": "gather", "why": ...},
/// {"is": "end", "code": ..., "why": ...}, {"is": "refused", "why": ...} or {"is": "state", "state": {...}}.
///
/// A job may have several endpoints, each with a server. Nodes meet at one that is active: the first of them, until its
/// host is lost. Others answer a join with {"is": "standby"}, until somebody comes who was at the one that was lost, and
/// says so: "past": {"round": ..., "nodes": ..., "restarts": ..., "recovery": ..., "certain": ...}. A join with
/// "ack": true is answered with {"is": "joined"}.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "launch/elastic_state.h"

namespace cohort::launch {

struct ElasticEndpoint {
  std::string host;  ///< name or number, as all nodes reach it
  int port = 29400;
};

class ElasticServer {
 public:
  /// Null where the endpoint is another machine's, or another agent of this one hosts it already. Throws Error where
  /// the port cannot be had for another reason. `store_port`: of the job's ranks, on the same address.
  static std::unique_ptr<ElasticServer> host(const ElasticEndpoint& endpoint, const ElasticLimits& limits,
                                             const std::string& job, const std::string& secret, int store_port,
                                             bool active = true);
  ~ElasticServer();
  /// Nodes may meet here.
  void activate();
  ElasticServer(const ElasticServer&) = delete;
  ElasticServer& operator=(const ElasticServer&) = delete;

 private:
  ElasticServer(int socket, const ElasticEndpoint& endpoint, const ElasticLimits& limits, std::string job,
                std::string secret, int store_port, bool active);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::launch
