/// Recovery without the disk: a rank that has died is replaced by a new process, while the others keep theirs with all
/// that it holds.
///
/// A rank whose group breaks leaves it and waits (RankPage::wait_for_generation); a new rank waits there too once it
/// has read its data and built its model. When all ranks wait, the agent calls them: they connect again, whoever has
/// made most steps gives its state to those that lack it, and they go on (train/loop_recovery.cpp). Another death
/// meanwhile begins the same again.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "launch/console.h"
#include "launch/oom.h"
#include "launch/worker_group.h"

namespace cohort::launch {

class Recovery {
 public:
  /// `used`: restarts and recoveries of the job so far, of which LaunchSettings::max_restarts are allowed; counted up
  /// here. All outlive this.
  Recovery(WorkerGroup& group, Console& console, const LaunchSettings& settings, int& used);

  /// Deals with ranks that have failed. True: they have been replaced; false: recovery cannot help, and the ranks are
  /// told not to wait for it. To be called while any has failed.
  bool replace_failed();
  /// Calls the ranks when all of them wait. To be called often; cheap.
  void call_when_all_wait();
  /// Ranks are being waited for, so that call_when_all_wait() should be called every few milliseconds.
  bool under_way() const { return began_.has_value(); }

 private:
  bool asked_for_restart() const;
  /// Why memory cannot help; "": it can.
  std::string obstacle() const;
  std::string describe(const Worker& worker, const OomCounts& now) const;

  WorkerGroup& group_;
  Console& console_;
  const LaunchSettings& settings_;
  int& used_;
  OomCounts oom_before_;
  std::uint32_t generation_ = 0;
  std::optional<std::chrono::steady_clock::time_point> began_;
  std::int64_t step_of_own_failure_ = -1;  ///< of the last rank that ended with an exit code
  bool refused_ = false;
};

}  // namespace cohort::launch
