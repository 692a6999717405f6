#include "tables/future_dates.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tables/date_text.h"

namespace cohort::tables {
namespace {

constexpr double kDay = 86400;                // s
constexpr double kMeanMonth = 365.2425 / 12;  // days

double median_step(std::span<const double> dates) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < dates.size(); ++i) steps.push_back(dates[i] - dates[i - 1]);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

/// `months` after `last`, at the same time of day.
double months_after(const CalendarFields& last, int months) {
  const int month = last.month - 1 + months;
  const int year = last.year + month / 12;
  const int days = days_in_month(year, month % 12 + 1);
  const bool at_end = last.day == days_in_month(last.year, last.month);
  return seconds_since_epoch(year, month % 12 + 1, at_end ? days : std::min(last.day, days), last.hour, last.minute,
                             last.second);
}

}  // namespace

std::vector<double> dates_after(std::span<const double> dates, Frequency frequency, std::int64_t count) {
  COHORT_THROW_UNLESS(dates.size() >= 2, "{} date(s) do not tell when the next one is; two are needed", dates.size());
  const double step = median_step(dates);
  COHORT_THROW_UNLESS(step > 0, "the dates do not rise: the step between them is {} s", step);
  const CalendarFields last = calendar_fields(dates.back());
  const bool by_months =
      frequency == Frequency::kMonth || frequency == Frequency::kQuarter || frequency == Frequency::kYear;
  const int months = std::max(1, static_cast<int>(std::lround(step / kDay / kMeanMonth)));
  std::vector<double> after;
  double now = dates.back();
  for (std::int64_t i = 1; i <= count; ++i) {
    if (by_months) {
      now = months_after(last, static_cast<int>(i) * months);
    } else {
      now += step;
      if (frequency == Frequency::kBusinessDay)
        while (calendar_fields(now).weekday > 4) now += kDay;
    }
    after.push_back(now);
  }
  return after;
}

}  // namespace cohort::tables
