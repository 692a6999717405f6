/// An agent's part in an elastic job: nodes come and go between MIN and MAX, and every change begins a new round.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "launch/elastic_server.h"
#include "launch/rendezvous.h"

namespace cohort::launch {

class ElasticRendezvous final : public Rendezvous {
 public:
  /// Hosts the rendezvous where the endpoint is this machine's and nobody does yet, and joins it. Throws Error when it
  /// is not there within `patience`, refuses this node, or does not know the secret.
  explicit ElasticRendezvous(const LaunchSettings& settings);
  ~ElasticRendezvous() override;

  /// Waits for a round; `attempt` is not asked for: the nodes count together. Throws JobEnded, Error where the
  /// rendezvous has gone, or StopAsked.
  Meeting meet(int attempt) override;
  int bind_store_socket() const override;
  /// The number of the round that meet() returned.
  int attempt(int /*asked*/) const override;
  std::string interruption() override;
  bool shares_failures() const override { return true; }
  void failed(int code, const std::string& what) override;
  void finished() override;
  void interrupt_on(SignalPipe* signals) override { signals_ = signals; }

 private:
  struct Link;
  const LaunchSettings settings_;
  std::unique_ptr<PortReservation> port_;  ///< on the host
  std::unique_ptr<ElasticServer> server_;
  std::unique_ptr<Link> link_;
  SignalPipe* signals_ = nullptr;
  int round_ = -1;
};

}  // namespace cohort::launch
