/// Says once, early, how long the whole will take: "about 5.2 s a step; the 998 that are left take 1.4 hours".
///
///   Pace pace(total_steps, "step", resumed_step, now());
///   if (const auto line = pace.made(step, now())) log::info("{}", *line);
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace cohort {

class Pace {
 public:
  /// `initial`: done before this run; `now`: seconds, never decreasing.
  Pace(std::int64_t total, std::string unit, std::int64_t initial, double now);

  /// `done` are complete. The line comes after the second one, but no sooner than two seconds after the beginning, and
  /// only where so much is left that it is worth knowing. The first, in which memory is taken, does not count.
  std::optional<std::string> made(std::int64_t done, double now);

 private:
  std::int64_t total_, initial_;
  std::string unit_;
  double begin_;
  std::int64_t first_ = -1;  ///< where the counting begins
  double first_at_ = 0;
  bool said_ = false;
};

/// "40 s", "18 min", "7.5 hours", "3.2 days".
std::string rough_duration(double seconds);

}  // namespace cohort
