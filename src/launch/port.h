/// The port of the job's store: chosen atomically, and kept for the life of the job.
#pragma once
#include <string>

#include "core/error.h"

namespace cohort::launch {

/// Where the store of a job on one node listens, whatever the name of the machine that the user gave: nobody outside
/// reaches it, and every rank, whose MASTER_ADDR this is, does.
inline constexpr const char* kLoopback = "127.0.0.1";

/// Who has to reach the store.
enum class StoreReach {
  kThisNode,  ///< it listens on kLoopback
  kAllNodes,  ///< it listens on the given address; on every one of this machine where a name leads to loopback only
              ///< here
};

/// Whether the address, a number or a name, leads to this machine.
bool is_own_address(const std::string& address);

/// Somebody else uses the port; says who, where that can be known, and another that is free.
class PortInUse : public Error {
 public:
  using Error::Error;
};

/// The name in Linux' abstract socket namespace under which an agent holds a port that the user gave.
std::string port_lock_name(int port);

/// Holds a port without listening on it, so that nobody else is given it, while rank 0 may still bind it: every socket
/// involved has SO_REUSEADDR, which lets several bind one port as long as none of them listens (Linux, socket(7));
/// c10d's stores set it.
class PortReservation {
 public:
  /// port 0: the system picks one that is free on every address. Another: throws PortInUse when
  /// somebody uses it, another `cohort launch` among them. Throws Error when `address` is none of this machine's.
  PortReservation(const std::string& address, int port, StoreReach reach = StoreReach::kThisNode);
  ~PortReservation();
  PortReservation(const PortReservation&) = delete;
  PortReservation& operator=(const PortReservation&) = delete;

  int port() const { return port_; }

  /// A new socket bound to the store's address and the port, not listening, close-on-exec; the caller closes it. Rank 0
  /// gets it as COHORT_STORE_FD and hands it to c10d::TCPStoreOptions::masterListenFd.
  int bind_store_socket() const;

 private:
  int port_ = 0;
  std::string host_;  ///< the numeric address on which the store listens; "": all of this machine
  int socket_ = -1;   ///< bound to the port on every address
  int lock_ = -1;     ///< tells other agents on this machine that a port given by the user is taken
};

}  // namespace cohort::launch
