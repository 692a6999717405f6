/// Ranks that hang: silent for longer than their steps take, while nothing explains it.
///
/// A rank beats in every step (rank/page.h). One that is silent for longer than max(least, 5 median steps) is looked
/// at:
/// - it waits for others in a collective, or is in the backward pass that exchanges gradients: it is not the one that
///   hangs, unless it is stopped;
/// - its threads have run, or have waited for a processor, for a good part of the silence: it is slow, or the machine
/// is
///   overloaded, and it gets ten times as long;
/// - otherwise it hangs. So does one whose process is stopped, whatever it was doing.
/// Outside steps (validation, checkpoint, waiting for data), and before the first steps have told how long they
/// take, `elsewhere` is the limit. A program that never beats is not watched.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "launch/worker_group.h"

namespace cohort::launch {

struct HangLimits {
  double least = 10;                         ///< s of silence within steps; 0: nobody is watched
  double elsewhere = 600;                    ///< s of silence outside steps; at least `least`
  static constexpr double kSteps = 5;        ///< median steps of silence
  static constexpr double kBusyFactor = 10;  ///< a rank that works, or wants to, gets so many times as long
  static constexpr double kBusyShare = 0.3;  ///< of the silence that its threads ran or waited for a processor
};

/// What is looked at in one rank at one moment. Times are seconds on one clock.
struct RankGlance {
  std::uint64_t beats = 0;
  std::int64_t step = 0;
  rank::Phase phase = rank::Phase::kSilent;
  bool waits_for_others = false;
  double silent = 0;  ///< since the last beat
  double worked = 0;  ///< so far, by all its threads: on a processor, or waiting for one
};

/// One rank's history.
class RankPulse {
 public:
  /// Whether the rank hangs, as far as it alone tells.
  bool hangs(const RankGlance& glance, double now, const HangLimits& limits);
  /// Of the last steps, s; nothing where there are too few.
  std::optional<double> median_step() const;

 private:
  void learn(const RankGlance& glance, double now);
  std::uint64_t beats_ = 0;
  std::int64_t step_ = -1;
  double step_at_ = 0;
  double worked_at_beat_ = 0;
  std::deque<double> steps_;
};

class HangWatch {
 public:
  explicit HangWatch(const HangLimits& limits) : limits_(limits) {}

  /// Looks at all ranks, at most every quarter of a second, and has those that hang say their stack and be killed
  /// (Worker::killed_for says why). True when there was one.
  bool look(WorkerGroup& group, Console& console);
  /// To be called when a rank has been replaced, or a group begun.
  void forget();

 private:
  HangLimits limits_;
  std::vector<RankPulse> pulses_;
  std::chrono::steady_clock::time_point next_{};
};

/// s that the threads of a process have been on a processor or waited for one; 0 where /proc does not tell.
double worked_seconds(pid_t pid);
/// R, S, D, T, Z: the state of the process in /proc/PID/stat; '?' where there is none.
char process_state(pid_t pid);

}  // namespace cohort::launch
