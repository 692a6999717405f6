/// Numbers that stand for missing values: -9999, -999, 1e20, -1 and the like. What gives them away is that the same number
/// comes again and again at an extreme, far from all others.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::data {

struct Sentinel {
  double value = 0;
  std::int64_t count = 0;
  double low = 0, high = 0;  ///< what all other values lie between
};

/// A least or greatest value is one where it stands at least three times, or once where it is a usual one (nines only, of
/// three digits or more; an end of 16 or 32 bits; beyond 1e20), and is farther from the next value than all others are
/// from each other (a usual one: than a quarter of that). None where the others are fewer than 10, or fewer than 5
/// different ones: they may be classes. Numbers that are not finite are left out.
std::vector<Sentinel> find_sentinels(std::span<const double> values);
std::vector<Sentinel> find_sentinels(std::span<const float> values);

/// "-9999": as find_sentinels' float or double is written in a file.
std::string sentinel_text(double value, bool is_float32);

}  // namespace cohort::data
