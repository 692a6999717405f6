/// The dates that follow a series: when the rows of a forecast are.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tables/time_features.h"

namespace cohort::tables {

/// The `count` dates behind the last of `dates` (s since 1970-01-01 UTC, rising, at least two). Of months, quarters and
/// years: the same day so many months on, the month's last day where the series ends on one; of business days: Monday
/// to Friday; of all others: the median step on.
std::vector<double> dates_after(std::span<const double> dates, Frequency frequency, std::int64_t count);

}  // namespace cohort::tables
