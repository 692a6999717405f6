/// Nothing outlives the agent: when it dies without a word (SIGKILL, the out-of-memory killer), its ranks and all their
/// children are killed.
#pragma once
#include <sys/types.h>

namespace cohort::launch {

/// A small process in a session of its own that waits for the agent's end of a pipe to close. PR_SET_PDEATHSIG (see
/// spawn) ends the ranks themselves; the guard ends their process groups, which hold the loader processes and shells
/// they started.
class OrphanGuard {
 public:
  OrphanGuard();
  /// Tells the guard that nothing is left to do and waits for it.
  ~OrphanGuard();
  OrphanGuard(const OrphanGuard&) = delete;
  OrphanGuard& operator=(const OrphanGuard&) = delete;

  /// Watches a rank: group is true when it leads a process group.
  void add(pid_t pid, bool group);
  /// Forgets it; to be called before its number may be used again.
  void remove(pid_t pid);

 private:
  void tell(char what, pid_t pid);
  int pipe_ = -1;
  pid_t guard_ = -1;
};

}  // namespace cohort::launch
