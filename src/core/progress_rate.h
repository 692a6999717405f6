/// How fast something goes, smoothed; the basis of "time left".
#pragma once

namespace cohort {

/// Items per second over a sliding, exponentially weighted window. Time is handed in (seconds, any origin, never
/// decreasing).
///
/// The interval from the start to the first count is left out: it holds the warm-up (allocations, first kernels,
/// threads that start) and would make every estimate too slow.
class RateEstimate {
 public:
  /// time_constant: s, how far back the window reaches; stretched to `share_of_elapsed` of the observed time where that
  /// is longer, so that pauses that come back (validation, checkpoints) even out in a long run.
  RateEstimate(double time_constant, double share_of_elapsed)
      : time_constant_(time_constant), share_of_elapsed_(share_of_elapsed) {}

  /// `done` items were complete at time `now`.
  void add(double now, double done);

  /// The time between pause and resume does not count (another bar's work).
  void pause(double now);
  void resume(double now);

  /// Items per second; NaN before the second count.
  double per_second() const;

  /// Seconds that the counts span, without the first interval.
  double observed() const { return observed_; }

 private:
  double time_constant_;
  double share_of_elapsed_;
  bool started_ = false;
  double last_time_ = 0;
  double last_done_ = 0;
  double paused_at_ = 0;
  double observed_ = 0;
  double weighted_items_ = 0;
  double weighted_time_ = 0;
};

}  // namespace cohort
