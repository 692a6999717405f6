#include "core/pace.h"

#include <utility>

#include "core/format.h"

namespace cohort {
namespace {

constexpr double kNoSooner = 2;     // s after the beginning
constexpr double kWorthSaying = 5;  // s that are left

}  // namespace

std::string rough_duration(double seconds) {
  if (seconds < 100) return format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return format("{:.1f} hours", seconds / 3600);
  return format("{:.1f} days", seconds / (24 * 3600));
}

Pace::Pace(std::int64_t total, std::string unit, std::int64_t initial, double now)
    : total_(total), initial_(initial), unit_(std::move(unit)), begin_(now) {}

std::optional<std::string> Pace::made(std::int64_t done, double now) {
  if (said_ || done <= initial_) return std::nullopt;
  if (first_ < 0) {
    first_ = done;
    first_at_ = now;
    return std::nullopt;
  }
  if (done <= first_ || now - begin_ < kNoSooner) return std::nullopt;
  said_ = true;
  const double each = (now - first_at_) / static_cast<double>(done - first_);
  const double left = each * static_cast<double>(total_ - done);
  if (left < kWorthSaying) return std::nullopt;
  return format("about {:.{}f} s {} {}; the {} that are left take about {}", each, each < 1 ? 3 : 1,
                unit_.starts_with("i") ? "an" : "a", unit_, total_ - done, rough_duration(left));
}

}  // namespace cohort
