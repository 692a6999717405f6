/// The rendezvous of an elastic job: one of its agents hosts it on the endpoint that all are given, in a thread. It
/// moves an ElasticState along and tells every agent what that means for it. The messages are those of elastic_messages.h.
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
  /// Where it listens: that of the endpoint, or, where that is 0, one that was free.
  int port() const;
  ElasticServer(const ElasticServer&) = delete;
  ElasticServer& operator=(const ElasticServer&) = delete;

 private:
  ElasticServer(int socket, const ElasticEndpoint& endpoint, const ElasticLimits& limits, std::string job,
                std::string secret, int store_port, bool active);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::launch
