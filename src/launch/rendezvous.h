/// How the agents of a job agree on who is who: which ranks a node runs, and where the job's store is.
///
///   const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(settings);
///   const Meeting meeting = rendezvous->meet(attempt);
///   const int rank = meeting.first_rank + local_rank;
///   const int socket = rank == 0 ? rendezvous->bind_store_socket() : -1;
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "launch/port.h"
#include "launch/settings.h"

namespace cohort::launch {

/// What is agreed on for one attempt.
struct Meeting {
  int node_rank = 0;          ///< this node's number: GROUP_RANK
  int nodes = 1;              ///< GROUP_WORLD_SIZE
  int first_rank = 0;         ///< the rank of this node's local rank 0
  int world_size = 1;         ///< ranks on all nodes
  std::string store_address;  ///< MASTER_ADDR of every rank
  int store_port = 0;         ///< MASTER_PORT
  int recovery = 0;           ///< the last one (RecoveryCall) before it
};

class SignalPipe;

/// Thrown while an agent waits for the others: the job has ended.
struct JobEnded {
  int code = 0;
  std::string why;
};
/// Likewise: a signal asks this agent to stop.
struct StopAsked {
  int signal = 0;
};

/// Why an attempt must end before its ranks do.
struct Interruption {
  std::string why;    ///< "": it need not
  bool ends = false;  ///< the job does; else there will be another attempt, perhaps with other nodes
};

/// What the nodes have decided about a recovery from memory (recovery.h).
struct RecoveryCall {
  int number = 0;   ///< counted over the whole job; the generation of the group that the ranks connect in
  bool go = false;  ///< all ranks of all nodes wait: they are to connect. false: they are to leave their group
  std::string why;
};

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Called before each attempt (0, 1, ...). Throws Error when the nodes cannot meet.
  virtual Meeting meet(int attempt) = 0;

  /// A new socket bound to the store's address and port, not listening, close-on-exec; the caller closes it. Only
  /// where the job's rank 0 runs, which gets it as COHORT_STORE_FD. Throws Error.
  virtual int bind_store_socket() const = 0;

  // What only a rendezvous has whose nodes come and go (elastic_rendezvous.h).

  /// The number of the attempt that meet() returned: all nodes count together.
  virtual int attempt(int asked) const { return asked; }
  virtual Interruption interruption() { return {}; }
  /// The nodes decide together what follows an attempt: failed() or finished(), then meet().
  virtual bool shares_failures() const { return false; }
  /// `again`: it may help to start again.
  virtual void failed(int /*code*/, const std::string& /*what*/, bool /*again*/) {}
  virtual void finished() {}
  /// Ranks of several nodes recover from memory together. lost(): one of this node's has died and is being replaced;
  /// own_step: the step at which it ended by itself, -1 where a signal ended it or it had been replaced already.
  /// waits(): all of this node's wait for recovery `number`, or, where that is the last one that was called, for a
  /// reason that nobody has told yet. cannot(): this node's ranks have to start again.
  virtual bool shares_recovery() const { return false; }
  virtual void lost(int /*code*/, const std::string& /*what*/, std::int64_t /*own_step*/) {}
  virtual void waits(int /*number*/) {}
  virtual void cannot(const std::string& /*why*/) {}
  /// The next of the calls, in their order.
  virtual std::optional<RecoveryCall> recovery_call() { return std::nullopt; }
  /// Signals that meet() looks at while it waits.
  virtual void interrupt_on(SignalPipe* /*signals*/) {}
};

/// One node: the store is on loopback, at a port that is kept for the life of the job.
class StandaloneRendezvous final : public Rendezvous {
 public:
  /// Throws Error as PortReservation does.
  explicit StandaloneRendezvous(const LaunchSettings& settings);
  Meeting meet(int attempt) override;
  int bind_store_socket() const override { return port_.bind_store_socket(); }

 private:
  int ranks_;
  PortReservation port_;
};

/// Several nodes whose numbers, and the store's address and port, the user gives, as torchrun's `static`: nothing is
/// exchanged, so that every agent must be started with the same number of nodes and of ranks on each. Node 0 holds the
/// port. A job of this kind has one attempt: nobody tells the other agents of a second one.
class StaticRendezvous final : public Rendezvous {
 public:
  /// Throws Error for a node's number out of range, and on node 0 as PortReservation does.
  explicit StaticRendezvous(const LaunchSettings& settings);
  Meeting meet(int attempt) override;
  int bind_store_socket() const override;

 private:
  Meeting meeting_;
  std::unique_ptr<PortReservation> port_;  ///< node 0
};

/// The one that the settings ask for.
std::unique_ptr<Rendezvous> make_rendezvous(const LaunchSettings& settings);

/// MASTER_ADDR of the ranks: loopback for one node, else LaunchSettings::master_addr.
std::string store_address(const LaunchSettings& settings);

/// This machine's name, as users and other nodes are told it.
std::string own_host_name();

}  // namespace cohort::launch
