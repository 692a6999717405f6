#include "report/histogram.h"

#include <algorithm>
#include <cmath>

#include "report/chart.h"

namespace cohort::report {
namespace {

constexpr double kFewestBins = 8;
constexpr double kMostBins = 80;
constexpr double kTail = 0.001;  // share of the values on either side that may be taken into the end bins
constexpr double kSqueezed = 2;  // tails are cut when they take more than half of the axis

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

}  // namespace

Histogram make_histogram(std::span<const double> values) {
  std::vector<double> sorted;
  for (const double v : values)
    if (drawable(v)) sorted.push_back(v);
  Histogram histogram;
  if (sorted.empty()) return histogram;
  std::sort(sorted.begin(), sorted.end());
  double low = sorted.front(), high = sorted.back();
  const double inner_low = quantile(sorted, kTail), inner_high = quantile(sorted, 1 - kTail);
  if (inner_high > inner_low && high - low > kSqueezed * (inner_high - inner_low)) {
    low = inner_low;
    high = inner_high;
  }
  if (!(high - low > std::abs(high) * 1e-12)) {  // one value
    const double room = high != 0 ? std::abs(high) * 0.1 : 0.5;
    low -= room;
    high += room;
  }
  const double spread = quantile(sorted, 0.75) - quantile(sorted, 0.25);
  const double ideal = 2 * spread / std::cbrt(static_cast<double>(sorted.size()));
  const double bins = std::clamp(ideal > 0 ? std::ceil((high - low) / ideal) : kMostBins, kFewestBins, kMostBins);
  histogram.low = low;
  histogram.width = (high - low) / bins;
  histogram.counts.assign(static_cast<std::size_t>(bins), 0.0);
  for (const double v : sorted) {
    const double bin = std::clamp(std::floor((v - low) / histogram.width), 0.0, bins - 1);
    ++histogram.counts[static_cast<std::size_t>(bin)];
  }
  return histogram;
}

}  // namespace cohort::report
