/// An agent's part in an elastic job: nodes come and go between MIN and MAX, and every change begins a new round.
///
/// With further endpoints, each hosted by the agent on whose machine it is, the job survives the loss of the host: the
/// others meet at the next one. Where the host was silent rather than dead, more than half of the nodes must come there,
/// and it goes on itself only with at least half, so that a job that was cut in two goes on once.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/elastic_link.h"
#include "launch/elastic_server.h"
#include "launch/rendezvous.h"

namespace cohort::launch {

class ElasticRendezvous final : public Rendezvous {
 public:
  /// Hosts the rendezvous where an endpoint is this machine's and nobody does yet, and joins the one where the job
  /// meets. Throws Error when it is not there within ElasticLimits::patience, refuses this node, or does not know the
  /// secret.
  explicit ElasticRendezvous(const LaunchSettings& settings);
  ~ElasticRendezvous() override;

  /// Waits for a round; `attempt` is not asked for: the nodes count together. Throws JobEnded, Error where the
  /// rendezvous has gone and there is no other, or StopAsked.
  Meeting meet(int attempt) override;
  int bind_store_socket() const override;
  /// The number of the round that meet() returned.
  int attempt(int /*asked*/) const override;
  Interruption interruption() override;
  bool shares_failures() const override { return true; }
  void failed(int code, const std::string& what, bool again) override;
  void finished() override;
  bool shares_recovery() const override { return true; }
  void lost(int code, const std::string& what) override;
  void waits(int number) override;
  void cannot(const std::string& why) override;
  std::optional<RecoveryCall> recovery_call() override;
  void interrupt_on(SignalPipe* signals) override { signals_ = signals; }

 private:
  void host();
  bool join(std::size_t endpoint, std::string& reason);
  void move_on();
  void stop_where_asked();

  const LaunchSettings settings_;
  std::vector<ElasticEndpoint> endpoints_;
  std::string secret_;
  std::optional<std::size_t> own_;         ///< the endpoint that this agent hosts
  std::unique_ptr<PortReservation> port_;  ///< there, for the ranks' store
  std::unique_ptr<ElasticServer> server_;
  std::unique_ptr<ElasticLink> link_;
  std::size_t at_ = 0;  ///< the endpoint of link_
  SignalPipe* signals_ = nullptr;
  int round_ = -1;
  ElasticState::Past past_;
};

}  // namespace cohort::launch
