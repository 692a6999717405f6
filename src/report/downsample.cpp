#include "report/downsample.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "report/chart.h"

namespace cohort::report {
namespace {

/// Points [begin, end) of one bucket: its extremes in their order, and one gap where it holds any.
void add_bucket(const std::vector<double>& xs, const std::vector<double>& ys, std::size_t begin, std::size_t end,
                Points& out) {
  std::size_t smallest = end, largest = end, gap = end;
  for (std::size_t i = begin; i < end; ++i) {
    if (!drawable(ys[i])) {
      gap = i;
      continue;
    }
    if (smallest == end || ys[i] < ys[smallest]) smallest = i;
    if (largest == end || ys[i] > ys[largest]) largest = i;
  }
  std::vector<std::size_t> kept;
  for (const std::size_t i : {smallest, largest, gap})
    if (i != end && std::find(kept.begin(), kept.end(), i) == kept.end()) kept.push_back(i);
  std::sort(kept.begin(), kept.end());
  for (const std::size_t i : kept) {
    out.xs.push_back(xs[i]);
    out.ys.push_back(drawable(ys[i]) ? ys[i] : std::numeric_limits<double>::quiet_NaN());
  }
}

}  // namespace

Points thin_line(const std::vector<double>& xs, const std::vector<double>& ys, std::size_t buckets) {
  COHORT_CHECK(xs.size() == ys.size() && buckets > 0, "{} xs, {} ys, {} buckets", xs.size(), ys.size(), buckets);
  const std::size_t n = xs.size();
  Points out;
  if (n <= 2 * buckets + 2) {
    for (std::size_t i = 0; i < n; ++i) {
      out.xs.push_back(xs[i]);
      out.ys.push_back(drawable(ys[i]) ? ys[i] : std::numeric_limits<double>::quiet_NaN());
    }
    return out;
  }
  const double first = xs.front(), width = (xs.back() - first) / static_cast<double>(buckets);
  add_bucket(xs, ys, 0, 1, out);
  std::size_t begin = 1;
  for (std::size_t b = 0; b < buckets && begin < n - 1; ++b) {
    const double until =
        b + 1 == buckets ? std::numeric_limits<double>::infinity() : first + width * static_cast<double>(b + 1);
    std::size_t end = begin;
    while (end < n - 1 && xs[end] < until) ++end;
    add_bucket(xs, ys, begin, end, out);
    begin = end;
  }
  add_bucket(xs, ys, n - 1, n, out);
  return out;
}

Points thin_cloud(const std::vector<double>& xs, const std::vector<double>& ys, std::size_t most) {
  COHORT_CHECK(xs.size() == ys.size() && most > 0, "{} xs, {} ys, at most {}", xs.size(), ys.size(), most);
  Points finite;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (drawable(xs[i]) && drawable(ys[i])) {
      finite.xs.push_back(xs[i]);
      finite.ys.push_back(ys[i]);
    }
  const auto extent = [](const std::vector<double>& v) {
    const auto [low, high] = std::minmax_element(v.begin(), v.end());
    return std::pair(*low, std::max(*high - *low, std::numeric_limits<double>::min()));
  };
  for (double cells = 512; finite.xs.size() > most; cells /= 1.5) {
    const auto [x_low, x_span] = extent(finite.xs);
    const auto [y_low, y_span] = extent(finite.ys);
    std::unordered_set<std::uint64_t> taken;
    Points thinned;
    for (std::size_t i = 0; i < finite.xs.size(); ++i) {
      const auto column = static_cast<std::uint64_t>((finite.xs[i] - x_low) / x_span * cells);
      const auto row = static_cast<std::uint64_t>((finite.ys[i] - y_low) / y_span * cells);
      if (!taken.insert(column << 32 | row).second) continue;
      thinned.xs.push_back(finite.xs[i]);
      thinned.ys.push_back(finite.ys[i]);
    }
    finite = std::move(thinned);
  }
  return finite;
}

}  // namespace cohort::report
