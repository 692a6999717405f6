/// Watches one attempt at a job from its start to its end: output and signals are moved along, ranks that die are
/// replaced where memory can help, those that hang are found, and what the other nodes decide is followed.
///
///   group.start();
///   const AttemptOutcome outcome = AttemptWatch(group, signals, console, settings, rendezvous, meeting, used).run();
#pragma once
#include <chrono>

#include "launch/hang_watch.h"
#include "launch/recovery.h"
#include "launch/signals.h"

namespace cohort::launch {

struct AttemptOutcome {
  bool interrupted = false;  ///< by the other nodes
  int stop_signal = 0;       ///< what stopped the job; 0: nothing, or a rank had failed by itself before
  bool failed = false;
};

class AttemptWatch {
 public:
  /// `restarts_used`: as Recovery has it. All outlive this.
  AttemptWatch(WorkerGroup& group, SignalPipe& signals, Console& console, const LaunchSettings& settings,
               Rendezvous& rendezvous, const Meeting& meeting, int& restarts_used);
  /// Returns when all ranks have ended and have been reaped.
  AttemptOutcome run();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point settled_at();
  bool may_be_recovered(bool settled) const;
  bool output_is_stopped() const;
  std::chrono::milliseconds time_to_wait();
  void interrupt(const Interruption& other);
  void set_deadline();
  void stop(int signal, const std::string& words);
  void kill();
  void handle(int signal);
  void handle_stop(int signal);
  bool failed_before(int signal) const;
  /// True when ranks have ended, but none otherwise than a notice that was passed on makes them end.
  bool ended_by_notice() const { return notice_ != 0 && !failed_before(notice_); }

  WorkerGroup& group_;
  Rendezvous& rendezvous_;
  SignalPipe& signals_;
  Console& console_;
  const LaunchSettings& settings_;
  Recovery recovery_;
  HangWatch hangs_;
  AttemptOutcome outcome_;
  const bool writes_directly_;  ///< a rank does
  bool stopping_ = false;
  int notice_ = 0;      ///< the first one that was passed on
  bool asked_ = false;  ///< by a signal
  bool killed_ = false;
  Clock::time_point failed_at_{};
  Clock::time_point deadline_{};
};

}  // namespace cohort::launch
