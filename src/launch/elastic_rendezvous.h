/// An agent's part in an elastic job: nodes come and go between MIN and MAX, and every change begins a new round.
///
/// With further endpoints, each hosted by the agent on whose machine it is, the job survives the loss of the host: the
/// others meet at the next one. Where the host was silent rather than dead, more than half of the nodes must come there,
/// and it goes on itself only with at least half, so that a job that was cut in two goes on once. With a file that all
/// nodes share (term_file.h), that decides instead, for any number of nodes, and any of them may become the host.
///
/// Nodes whose numbers the user gives (LaunchSettings::numbered_nodes) meet on node 0, and one that is lost is waited
/// for.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/elastic_link.h"
#include "launch/elastic_server.h"
#include "launch/rendezvous.h"
#include "launch/term_file.h"

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
  void lost(int code, const std::string& what, std::int64_t own_step) override;
  void waits(int number) override;
  void cannot(const std::string& why) override;
  std::optional<RecoveryCall> recovery_call() override;
  void interrupt_on(SignalPipe* signals) override { signals_ = signals; }

 private:
  using Clock = std::chrono::steady_clock;
  void host();
  bool host_at(const ElasticEndpoint& endpoint, std::unique_ptr<PortReservation> port);
  bool may_begin_here(const ElasticLink::Absence& of_newest);
  bool join(std::size_t endpoint, ElasticLink::Absence& absence);
  bool join_newest(int after, ElasticLink::Absence& absence);
  std::size_t index_of(const ElasticEndpoint& endpoint);
  void move_on();
  void move_to_next(const std::string& gone);
  void move_by_terms(const std::string& gone, const std::string& own_address, Clock::time_point claim_at);
  bool claim_and_host(const std::string& own_address);
  void tell_the_end(int code);
  void stop_where_asked();

  const LaunchSettings settings_;
  std::vector<ElasticEndpoint> endpoints_;
  std::string secret_;
  std::optional<std::size_t> own_;         ///< the endpoint that this agent hosts
  std::unique_ptr<PortReservation> port_;  ///< there, for the ranks' store
  std::string port_in_use_;  ///< why this agent, on an endpoint's machine, hosts nothing; "": it is not so
  std::unique_ptr<ElasticServer> server_;
  std::unique_ptr<ElasticLink> link_;
  std::size_t at_ = 0;  ///< the endpoint of link_
  std::shared_ptr<const TermFile> terms_;
  int term_ = 0;  ///< in which this node's rendezvous was claimed last
  SignalPipe* signals_ = nullptr;
  int round_ = -1;
  ElasticState::Past past_;
};

}  // namespace cohort::launch
