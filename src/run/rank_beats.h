/// Writes what this rank is doing into the run's folder, for `cohort top` and `cohort doctor`: at most once a second,
/// and whenever it goes over to something else.
///
///   RankBeats beats(folder.path(), status);     // status: who this rank is
///   training.beat = beats.observer();
///   ...
///   beats.end(rank::Phase::kFinished);
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>

#include "rank/beat.h"
#include "rank/status.h"

namespace cohort::run {

class RankBeats {
 public:
  /// `who`: rank, world_size, job, device, batch_size. Nothing is written before the first beat.
  RankBeats(std::filesystem::path run, rank::Status who);
  /// Without end() before it, the rank failed.
  ~RankBeats();
  RankBeats(const RankBeats&) = delete;
  RankBeats& operator=(const RankBeats&) = delete;

  /// This object outlives it.
  rank::BeatObserver observer();
  /// `phase`: kFinished or kStopped.
  void end(rank::Phase phase);

 private:
  void observe(const rank::Beat& beat, const std::function<rank::Totals()>& totals);
  void open();

  const std::filesystem::path run_;
  rank::Status status_;
  std::optional<rank::StatusFile> file_;
  std::int64_t first_step_ = 0;
  rank::Totals before_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace cohort::run
