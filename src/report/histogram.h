/// Counts of values in bins of equal width.
#pragma once
#include <span>
#include <vector>

namespace cohort::report {

struct Histogram {
  double low = 0;    ///< left edge of the first bin
  double width = 1;  ///< of every bin
  std::vector<double> counts;
};

/// Bins of width 2 IQR / cbrt(n) (Freedman and Diaconis 1981), but between 8 and 80 of them. What cannot be drawn (see
/// drawable() in chart.h) is left out. The outermost 0.1 % on either side are added to the end bins when they would
/// squeeze the rest together. Without values: no bins.
Histogram make_histogram(std::span<const double> values);

}  // namespace cohort::report
