/// Nothing outlives the agent: when it dies without a word (SIGKILL, the out-of-memory killer), its ranks and all their
/// children are killed.
#pragma once
#include <sys/types.h>

namespace cohort::launch {

/// What the guard is told through its socket; so short that it is sent as a whole or not at all.
struct GuardMessage {
  char what;  ///< 'g' watch a process group, 'p' watch a process, 'r' forget it, 'q' quit
  pid_t pid;
};

/// False where it could not be sent. True also where there is no guard any more: then nobody watches.
bool send_to_guard(int descriptor, const GuardMessage& message);

/// A small process in a session of its own that waits for the agent's end of a pair of sockets to close. PR_SET_PDEATHSIG (see
/// spawn) ends the ranks themselves; the guard ends their process groups, which hold the loader processes and shells
/// they started.
class OrphanGuard {
 public:
  OrphanGuard();
  /// Tells the guard that nothing is left to do and waits for it.
  ~OrphanGuard();
  OrphanGuard(const OrphanGuard&) = delete;
  OrphanGuard& operator=(const OrphanGuard&) = delete;

  /// Where a rank writes its own GuardMessage before it becomes its program (SpawnRequest::guard): were it the agent's
  /// task, an agent killed between the start and the message would leave the rank's children behind.
  int descriptor() const { return socket_; }
  /// Forgets it; to be called before its number may be used again.
  void remove(pid_t pid);

 private:
  void tell(char what, pid_t pid);
  int socket_ = -1;
  pid_t guard_ = -1;
};

}  // namespace cohort::launch
