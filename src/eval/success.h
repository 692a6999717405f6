/// How sure a success rate is.
#pragma once
#include <cstdint>

namespace cohort::eval {

struct Interval {
  double low = 0, high = 1;
};

/// The 95 % score interval of a proportion (Wilson, "Probable inference, the law of succession, and statistical
/// inference", 1927): it stays within [0, 1] and holds for few trials, too. Throws Error without trials.
Interval wilson_interval(std::int64_t successes, std::int64_t trials);

}  // namespace cohort::eval
