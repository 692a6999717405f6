/// Where an axis begins and ends, and what stands beside it.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace cohort::report {

struct Tick {
  double value;
  std::string label;
};

struct Axis {
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks;
};

/// An axis over the finite values. Steps are 1, 2 or 5 times a power of ten, about `wanted` of them.
/// padding: share of the span added on both sides. A single value gets room on both sides; no value at all gives 0
/// to 1.
Axis linear_axis(std::span<const double> values, double padding, int wanted);

/// A logarithmic axis over the positive finite values: ticks at powers of ten, and at 2 and 5 times these where there
/// are few.
Axis log_axis(std::span<const double> values, double padding);

/// "0", "0.25", "15k", "2M", "3e-5": as many digits as `step` needs to tell neighbours apart. `largest` is the size of
/// the axis' largest tick, so that all of them are written in the same unit.
std::string tick_label(double value, double step, double largest);

}  // namespace cohort::report
