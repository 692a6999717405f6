#include "data/sentinels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/format.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kFewest = 3;          // times that a value stands in the column, unless it is a usual one
constexpr std::int64_t kFewestOthers = 10;   // values: of fewer nothing can be said
constexpr std::size_t kFewestDifferent = 5;  // among them: fewer may be classes
constexpr double kUsualGap = 0.25;           // of what the others span
constexpr int kMostKinds = 4;                // different sentinels of a column

bool is_usual(double value) {
  const double size = std::abs(value);
  if (size >= 1e20) return true;
  for (const double limit : {32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0, 4294967295.0})
    if (size == limit) return true;
  const std::string text = format("{:g}", size);  // 999, 9999.9
  const auto nines = std::count(text.begin(), text.end(), '9'), points = std::count(text.begin(), text.end(), '.');
  return nines >= 3 && nines + points == std::ssize(text) && points <= 1;
}

/// The least or greatest value, how often it stands there, and the next one.
struct Extreme {
  double value = 0, next = 0;
  std::int64_t count = 0;

  void add(double v, double sign) {
    const double most = sign * value;
    if (count == 0 || sign * v > most) {
      next = count > 0 ? value : -sign * std::numeric_limits<double>::infinity();
      value = v;
      count = 1;
    } else if (v == value) {
      ++count;
    } else if (sign * v > sign * next) {
      next = v;
    }
  }
  bool stands_out() const { return count >= kFewest || is_usual(value); }
};

template <class T>
bool varied(std::span<const T> values, double low, double high) {
  std::int64_t others = 0;
  std::vector<T> different;
  for (const T v : values) {
    const auto value = static_cast<double>(v);
    if (!(value >= low && value <= high)) continue;
    ++others;
    if (different.size() < kFewestDifferent && std::find(different.begin(), different.end(), v) == different.end())
      different.push_back(v);
    if (others >= kFewestOthers && different.size() >= kFewestDifferent) return true;
  }
  return false;
}

template <class T>
std::vector<Sentinel> sentinels_of(std::span<const T> values) {
  std::vector<Sentinel> found;
  double from = std::numeric_limits<double>::lowest(), to = std::numeric_limits<double>::max();
  while (found.size() < kMostKinds) {
    Extreme least, greatest;
    for (const T v : values) {
      const auto value = static_cast<double>(v);
      if (!(value >= from && value <= to)) continue;  // not finite, or found before
      least.add(value, -1);
      greatest.add(value, 1);
    }
    if (least.count == 0 || least.value == greatest.value) break;
    // What is left when those at both ends that may be sentinels are taken away.
    const double low = least.stands_out() ? least.next : least.value,
                 high = greatest.stands_out() ? greatest.next : greatest.value;
    if (!(low < high) || !varied(values, low, high)) break;
    const auto is_far = [&](const Extreme& extreme, double gap) {
      return extreme.stands_out() && gap > (is_usual(extreme.value) ? kUsualGap : 1.0) * (high - low);
    };
    const bool below = is_far(least, low - least.value), above = is_far(greatest, greatest.value - high);
    if (!below && !above) break;
    if (below) found.push_back({least.value, least.count});
    if (above) found.push_back({greatest.value, greatest.count});
    from = below ? low : least.value;
    to = above ? high : greatest.value;
    for (Sentinel& sentinel : found) {
      sentinel.low = from;
      sentinel.high = to;
    }
  }
  return found;
}

}  // namespace

std::vector<Sentinel> find_sentinels(std::span<const double> values) {
  return sentinels_of(values);
}

std::vector<Sentinel> find_sentinels(std::span<const float> values) {
  return sentinels_of(values);
}

std::string sentinel_text(double value, bool is_float32) {
  return is_float32 ? format("{}", static_cast<float>(value)) : format("{}", value);
}

}  // namespace cohort::data
