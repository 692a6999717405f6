/// What a chart shows, without a word on how it is drawn (charts.h draws).
#pragma once
#include <cmath>
#include <string>
#include <vector>

namespace cohort::report {

/// Whether a value has a place in a chart: a number, and one whose square does not overflow.
inline bool drawable(double value) {
  return std::abs(value) < 1e150;
}

enum class SeriesStyle {
  kLine,
  kFaintLine,  ///< thin and pale: every value behind a smoothed line, or one run behind a mean
  kPoints,
  kBand,       ///< the area between ys and ys_high
  kHistogram,  ///< of ys; xs stays empty; bins are chosen (Freedman and Diaconis 1981)
  kReference,  ///< dashed and grey: an identity line, a zero line, a start of something
};

/// xs and ys have the same length. Values that are not drawable (and, on a logarithmic axis, not positive) are skipped:
/// a line has a gap there.
struct Series {
  std::string name;  ///< in the legend; empty: not there
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<double> ys_high;  ///< kBand only
  SeriesStyle style = SeriesStyle::kLine;
  int color = -1;  ///< place in the palette; -1: the next one that no series of the chart names
};

struct Chart {
  std::string title;
  std::string x_label;  ///< with unit: "time (s)"
  std::string y_label;
  std::vector<Series> series;
  bool log_x = false;
  bool log_y = false;
  bool share = false;      ///< of values that are shares (success): the y axis goes from 0 to 1
  bool same_axes = false;  ///< both axes get the same range (prediction against truth)
};

/// One picture: panels in rows of `columns`.
struct Figure {
  std::string name;     ///< of the files: lower-case letters, digits, '_' and '-'
  std::string caption;  ///< a sentence for the report and for screen readers
  std::vector<Chart> panels;
  int columns = 1;
  bool shared_legend = false;  ///< the first panel's legend, once above all panels, which show the same series
};

}  // namespace cohort::report
