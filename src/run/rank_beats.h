/// Writes what this rank is doing into the run's folder, for `cohort top` and `cohort doctor`: at most once a second,
/// and whenever it goes over to something else.
///
///   RankBeats beats(folder.path(), status);     // status: who this rank is
///   training.beat = beats.observer();
///   ...
///   beats.end("finished");
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>

#include "monitor/rank_status.h"
#include "run/beat.h"

namespace cohort::run {

class RankBeats {
 public:
  /// `who`: rank, world_size, job, device, batch_size. Nothing is written before the first beat.
  RankBeats(std::filesystem::path run, monitor::RankStatus who);
  /// Without end() before it, the rank failed.
  ~RankBeats();
  RankBeats(const RankBeats&) = delete;
  RankBeats& operator=(const RankBeats&) = delete;

  /// This object outlives it.
  BeatObserver observer();
  /// finished or stopped.
  void end(const char* state);

 private:
  void observe(const Beat& beat, const std::function<RankTotals()>& totals);
  void open();

  std::filesystem::path run_;
  monitor::RankStatus status_;
  std::optional<monitor::RankStatusFile> file_;
  RankTotals before_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace cohort::run
