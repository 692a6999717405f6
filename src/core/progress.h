/// Progress on standard error: a bar that is redrawn in place on a terminal, a plain line now and then elsewhere.
///
///   Progress progress(steps, {.label = "train", .samples_per_unit = batch});
///   for (std::int64_t step = 1; step <= steps; ++step) {
///     ...
///     if (progress.due(step))
///       progress.update(step, {{"loss", format("{:.4f}", loss)}, {"lr", format("{:.2e}", rate)}});
///     else
///       progress.update(step);
///   }
///   progress.finish();
///
/// Log lines (core/log.h) and the bar do not disturb each other. A Progress made while another is alive (validation
/// inside training) takes its place until it is gone. Thread-safe. Never throws after construction: a closed terminal
/// costs the display, not the work.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/progress_line.h"

namespace cohort {

struct ProgressSettings {
  std::string label;             ///< stands first, e.g. "train"
  std::string unit = "it";       ///< what is counted: "it", "epoch", "file"
  double samples_per_unit = 0;   ///< > 0: samples/s is shown, units/s times this (the effective batch)
  std::int64_t initial = 0;      ///< done before this run (resumed); does not count into the rate
  bool silent = false;           ///< no output at all: ranks other than 0
  bool ticks = false;            ///< a thread shows the time that passes while nothing is counted
  bool keep = true;              ///< false: nothing remains when it ends (a bar inside another's work)
  double redraw_interval = 0.1;  ///< s between redraws on a terminal
  double plain_interval = 30;    ///< s after which a plain line is due
  double plain_first = 2;        ///< s after the start, where nothing with fields has come: the first plain line
  double plain_share = 0.05;     ///< share of the total after which a plain line is due ...
  double plain_shortest = 2;     ///< ... but not sooner than this many seconds after the last
  int fd = 2;  ///< where it is written; a terminal is recognised by isatty and TERM, or is that of `cohort launch`
  std::function<double()> now;  ///< s, never decreasing; empty: the steady clock
};

/// Whether `fd` is a terminal that a bar can be drawn on: its own, or that of `cohort launch`.
bool is_terminal(int fd);

class Progress {
 public:
  /// total: units to do, `initial` included; at most 0 when unknown (then there is neither bar nor time left).
  explicit Progress(std::int64_t total, ProgressSettings settings = {});

  /// Without finish() before it, says where the work stopped (an exception, an interrupt).
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` units are complete. Fields stay until the next call that hands some over.
  void update(std::int64_t done, std::vector<ProgressField> fields = {});

  /// Whether update(done) comes at a time to show something, so that fields are worth formatting. The next update goes
  /// by this answer.
  bool due(std::int64_t done);

  /// Shows the final state ("took 03:46") and ends the line. Only the first call does something.
  void finish();

  /// True when a bar is drawn (a terminal, not silent).
  bool on_terminal() const;

  class Display;
  class Ticker;

 private:
  std::unique_ptr<Display> display_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace cohort
