#include "eval/success.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cohort::eval {

Interval wilson_interval(std::int64_t successes, std::int64_t trials) {
  COHORT_THROW_UNLESS(trials > 0 && successes >= 0 && successes <= trials, "{} successes of {} trials", successes,
                      trials);
  constexpr double kZ = 1.959963984540054;  // the normal distribution's 97.5 % quantile
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n, z2 = kZ * kZ / n;
  const double middle = (p + z2 / 2) / (1 + z2);
  const double half = kZ / (1 + z2) * std::sqrt(p * (1 - p) / n + z2 / (4 * n));
  return {successes == 0 ? 0.0 : std::max(0.0, middle - half),
          successes == trials ? 1.0 : std::min(1.0, middle + half)};
}

}  // namespace cohort::eval
