/// Recovery without the disk: a rank that has died is replaced by a new process, while the others keep theirs with all
/// that it holds.
///
/// A rank whose group breaks leaves it and waits (rank::Page::wait_for_generation); a new rank waits there too once it
/// has read its data and built its model. When all ranks wait, the agent calls them: they connect again, whoever has
/// made most steps gives its state to those that lack it, and they go on (train/memory_recovery.h). Another death
/// meanwhile begins the same again.
///
/// Ranks of several nodes do so together: each agent replaces its own ranks and says when all of them wait, and the
/// rendezvous calls (elastic_state.h). There, too, ranks that wait for one whose machine is silent are set free
/// (rank::Page::break_groups). When the nodes themselves are about to change, ranks park their state in their pages, for
/// the processes of the next round.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "launch/console.h"
#include "launch/oom.h"
#include "launch/rendezvous.h"
#include "launch/worker_group.h"

namespace cohort::launch {

class Recovery {
 public:
  /// `used`: restarts and recoveries of the job so far, of which LaunchSettings::max_restarts are allowed; counted up
  /// here. All outlive this.
  Recovery(WorkerGroup& group, Console& console, const LaunchSettings& settings, Rendezvous& rendezvous,
           const Meeting& meeting, int& used);

  /// Deals with ranks that have failed. True: they have been replaced; false: recovery cannot help, and the ranks are
  /// told not to wait for it. To be called while any has failed.
  bool replace_failed();
  /// Calls the ranks when all of them wait, on all nodes. To be called often; cheap.
  void call_when_all_wait();
  /// The nodes are about to change: has ranks that have a state park it and end, and asks the others to stop. Returns
  /// whether there is one that has.
  bool park_or_stop();
  /// Ranks are being waited for, so that call_when_all_wait() should be called every few milliseconds.
  bool under_way() const { return began_.has_value(); }

 private:
  bool asked_for_restart() const;
  bool all_wait() const;
  void follow_calls();
  void call(std::uint32_t generation);
  /// Why memory cannot help; "": it can.
  std::string obstacle() const;
  std::string describe(const Worker& worker, const OomCounts& now) const;

  WorkerGroup& group_;
  Console& console_;
  const LaunchSettings& settings_;
  Rendezvous& rendezvous_;
  int& used_;
  OomCounts oom_before_;
  std::uint32_t generation_ = 0;
  std::optional<std::chrono::steady_clock::time_point> began_;
  std::int64_t step_of_own_failure_ = -1;  ///< of the last rank that ended with an exit code
  bool refused_ = false;
  const int world_size_;
  int number_;         ///< the last recovery of all nodes
  bool told_ = false;  ///< the other nodes, that all ranks of this one wait
};

}  // namespace cohort::launch
