/// Where the time of PPO's iterations went, for metrics and report, and the rank's beats meanwhile.
///
///   RunWatch watch(ranks, device, {.samples = 24 * 1024, .total = 300}, run.beats());
///   watch.begin(runner.iteration());
///   while (...) {
///     const Iteration figures = runner.iterate();
///     const IterationTimes times = watch.iterated(figures.number);
///     { const auto saving = watch.saving(); save(); }
///   }
///   watch.end();
#pragma once
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include "rank/beat.h"
#include "rl/ranks.h"

namespace cohort::rl {

/// From the end of the iteration before to the end of this one, s.
struct IterationTimes {
  int ranks = 1;
  double whole = 0;          ///< everything: collecting, learning, checkpoints, metrics; the slowest rank's
  double exchange = 0;       ///< Ranks::exchange_seconds, mean over the ranks
  double checkpoint = 0;     ///< for checkpoints, without what ranks exchange for them; the slowest rank's
  double compute = 0;        ///< the rest, the slowest rank's ...
  double least_compute = 0;  ///< ... and the fastest one's
  double memory = 0;         ///< bytes: resident or allocated on the device, of the rank that has most
};

class RunWatch {
 public:
  struct Settings {
    std::int64_t samples = 0;  ///< control steps of this rank in an iteration
    std::int64_t total = 0;    ///< iterations
  };
  RunWatch(Ranks& ranks, c10::Device device, Settings settings, rank::BeatObserver beats)
      : ranks_(ranks), device_(device), settings_(settings), observe_(std::move(beats)) {}

  /// The next iteration starts now, behind `iteration`.
  void begin(std::int64_t iteration);
  /// An iteration has ended, the next one starts. Collective; the same figures on all ranks.
  IterationTimes iterated(std::int64_t iteration);

  /// While it lives, the rank saves.
  class Saving {
   public:
    explicit Saving(RunWatch& watch);
    ~Saving();
    Saving(const Saving&) = delete;
    Saving& operator=(const Saving&) = delete;

   private:
    RunWatch& watch_;
    std::chrono::steady_clock::time_point begin_;
    double exchanged_;
  };
  Saving saving() { return Saving(*this); }

  /// Of every rank, in their order. Collective.
  std::vector<rank::Totals> of_all_ranks();
  /// No iteration follows.
  void end();

 private:
  void beat(rank::Phase phase);
  rank::Totals totals() const;

  Ranks& ranks_;
  c10::Device device_;
  Settings settings_;
  rank::BeatObserver observe_;
  std::int64_t first_ = 0, iteration_ = 0;
  std::chrono::steady_clock::time_point began_, interval_began_;
  double exchange_before_ = 0, exchange_before_interval_ = 0;
  double checkpoint_s_ = 0, checkpoint_before_interval_ = 0;
};

}  // namespace cohort::rl
