#include "report/chart_ticks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/format.h"
#include "report/chart.h"

namespace cohort::report {
namespace {

constexpr double kThousandsFrom = 1e4;     // from here on "15k" instead of "15000"
constexpr double kScientificBelow = 1e-3;  // steps below this are written as powers of ten
constexpr double kScientificFrom = 1e10;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool empty() const { return low > high; }
};

Range range_of(std::span<const double> values, bool positive_only) {
  Range range;
  for (const double v : values) {
    if (!drawable(v) || (positive_only && v <= 0)) continue;
    range.low = std::min(range.low, v);
    range.high = std::max(range.high, v);
  }
  return range;
}

double nice_step(double span, int wanted) {
  const double rough = span / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.75) return factor * power;  // rather a tick too many than too few
  return 10 * power;
}

/// Removes what "%.{n}f" leaves behind: "0.50" -> "0.5", "15.0" -> "15".
std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

/// "2.0e-04" -> "2e-4".
std::string short_exponent(const std::string& text) {
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  return without_trailing_zeros(text.substr(0, e)) + (exponent == 0 ? "" : format("e{}", exponent));
}

int decimals_for(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
}

}  // namespace

std::string tick_label(double value, double step, double largest) {
  if (std::abs(value) < step * 1e-6) return "0";
  const double size = std::max({std::abs(value), step, largest});
  if (size >= kScientificFrom || step < kScientificBelow) {
    const double own = std::max(std::abs(value), step);
    const int digits = static_cast<int>(std::floor(std::log10(own)) - std::floor(std::log10(step) + 1e-9));
    return short_exponent(format("{:.{}e}", value, std::clamp(digits, 0, 12)));
  }
  if (size >= kThousandsFrom) {
    const bool millions = size >= 1e6;
    const double unit = millions ? 1e6 : 1e3;
    const int decimals = decimals_for(step / unit);
    if (decimals <= 3)
      return without_trailing_zeros(format("{:.{}f}", value / unit, decimals)) + (millions ? "M" : "k");
  }
  return without_trailing_zeros(format("{:.{}f}", value, decimals_for(step)));
}

Axis linear_axis(std::span<const double> values, double padding, int wanted) {
  Range range = range_of(values, false);
  if (range.empty()) range = {0, 1};
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  double span = range.high - range.low;
  if (span <= size * 1e-12 || span == 0) {  // one value: room around it
    span = size > 0 ? size * 0.2 : 1;
    range = {range.low - span / 2, range.high + span / 2};
  } else {
    range = {range.low - span * padding, range.high + span * padding};
  }
  Axis axis{range.low, range.high, {}};
  const double step = nice_step(range.high - range.low, wanted);
  const double first = std::ceil(range.low / step - 1e-9);
  const double last = std::floor(range.high / step + 1e-9);
  const double largest = std::max(std::abs(first), std::abs(last)) * step;
  for (double i = first; i <= last && axis.ticks.size() < 50; ++i)
    axis.ticks.push_back({i * step, tick_label(i * step, step, largest)});
  return axis;
}

Axis log_axis(std::span<const double> values, double padding) {
  Range range = range_of(values, true);
  if (range.empty()) range = {0.1, 1};
  double low = std::log10(range.low), high = std::log10(range.high);
  const double room = high - low < 1e-9 ? 0.5 : (high - low) * padding;
  low -= room;
  high += room;
  Axis axis{std::pow(10.0, low), std::pow(10.0, high), {}};
  const double decades = high - low;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / 8)));
  const auto add = [&](double value) {
    // A label of its own precision: 0.05, 2, 300, 1e-05.
    if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9))
      axis.ticks.push_back({value, tick_label(value, std::pow(10.0, std::floor(std::log10(value) + 1e-9)), value)});
  };
  for (int power = static_cast<int>(std::floor(low)); power <= static_cast<int>(std::ceil(high)); ++power) {
    if (decades > 3) {
      if (power % stride == 0) add(std::pow(10.0, power));
      continue;
    }
    for (const double factor : {1.0, 2.0, 5.0}) add(factor * std::pow(10.0, power));
  }
  if (axis.ticks.size() < 2) {  // less than a third of a decade: a linear axis' ticks tell more
    const Axis linear = linear_axis(std::vector<double>{axis.low, axis.high}, 0, 4);
    axis.ticks = linear.ticks;
  }
  return axis;
}

}  // namespace cohort::report
