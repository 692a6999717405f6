#include "tables/date_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/format.h"
#include "tables/date_text.h"

namespace cohort::tables {
namespace {

constexpr double kOneDay = 86400;  // s

/// "47 min", "40 days": in the largest unit that is not below 1.
std::string duration_text(double seconds) {
  const auto in = [&](double unit, const char* name) { return format("{:.4g} {}", seconds / unit, name); };
  if (seconds >= 2 * kOneDay) return in(kOneDay, "days");
  if (seconds >= kOneDay) return seconds == kOneDay ? "1 day" : in(3600, "h");
  if (seconds >= 3600) return in(3600, "h");
  if (seconds >= 60) return in(60, "min");
  return in(1, "s");
}

/// Steps within it are as usual.
struct StepRange {
  double low, high;
};

StepRange usual_range(double usual) {
  constexpr StepRange kCalendar[] = {
      {28 * kOneDay, 31 * kOneDay}, {90 * kOneDay, 92 * kOneDay}, {365 * kOneDay, 366 * kOneDay}};
  for (const StepRange& range : kCalendar)
    if (usual >= range.low && usual <= range.high) return range;
  constexpr double kTolerance = 0.01;
  return {usual * (1 - kTolerance), usual * (1 + kTolerance)};
}

struct Finding {
  std::int64_t count = 0;
  std::size_t first = 0;  // row, from 0
  void add(std::size_t row) {
    if (count++ == 0) first = row;
  }
};

/// What steps between dates are, beside the usual one.
struct Steps {
  Finding backwards, repeated, gaps, others;
  double longest = 0;    // s, of the gaps
  bool stacked = false;  // each time that dates run back, more than half of what was before it comes again
};

Steps count_steps(std::span<const double> dates, double usual) {
  const StepRange range = usual_range(usual);
  const bool skips_weekends = usual == kOneDay && std::none_of(dates.begin(), dates.end(), [](double date) {
                                return calendar_fields(date).weekday >= 5;
                              });
  constexpr double kGap = 1.5;            // times the longest usual step: less than that, nothing is missing between
  constexpr std::size_t kFewestRows = 3;  // of one of several series
  Steps found;
  std::size_t begin = 0;
  bool anew = true;
  for (std::size_t row = 1; row < dates.size(); ++row) {
    const double step = dates[row] - dates[row - 1];
    if (step < 0) {
      found.backwards.add(row);
      anew = anew && row - begin >= kFewestRows && dates[row] <= (dates[begin] + dates[row - 1]) / 2;
      begin = row;
    } else if (step == 0) {
      found.repeated.add(row);
    } else if (step > kGap * range.high) {
      if (skips_weekends && step == 3 * kOneDay && calendar_fields(dates[row]).weekday == 0) continue;
      found.gaps.add(row);
      found.longest = std::max(found.longest, step);
    } else if (step < range.low || step > range.high) {
      found.others.add(row);
    }
  }
  found.stacked = found.backwards.count > 0 && anew && dates.size() - begin >= kFewestRows;
  return found;
}

}  // namespace

std::vector<std::string> uneven_dates(std::span<const double> dates) {
  std::vector<double> steps;
  for (std::size_t row = 1; row < dates.size(); ++row)
    if (dates[row] > dates[row - 1]) steps.push_back(dates[row] - dates[row - 1]);
  double usual = 0;
  if (!steps.empty()) {
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    usual = *middle;
  }
  auto [backwards, repeated, gaps, others, longest, stacked] = count_steps(dates, usual);

  std::vector<std::string> findings;
  const auto between = [&](std::size_t row) {
    return format("(from {} to {})", format_date(dates[row - 1]), format_date(dates[row]));
  };
  // Many dates stand several times.
  const std::int64_t rows = std::ssize(dates);
  constexpr std::int64_t kOneIn = 3;
  const bool side_by_side = repeated.count * kOneIn >= rows && rows > 0;
  constexpr const char* kApart =
      "which windows would go across: make a column of each (pandas: pivot), or a file of each";
  if (stacked)
    findings.push_back(
        format("begin anew {} {}, first at row {} {}: the file seems to hold {} series one below the other, {}",
               backwards.count, backwards.count == 1 ? "time" : "times", backwards.first + 1, between(backwards.first),
               backwards.count + 1, kApart));
  else if (backwards.count > 0)
    findings.push_back(format(
        "run backwards {} times, first at row {} {}; windows take rows in the order of the file: sort it by date "
        "if that is not meant",
        backwards.count, backwards.first + 1, between(backwards.first)));
  if (side_by_side)
    findings.push_back(format(
        "are repeated {} times in {} rows, first at row {} ({}): the file seems to hold several series, a row of each "
        "in turn, {}",
        repeated.count, rows, repeated.first + 1, format_date(dates[repeated.first]), kApart));
  else if (repeated.count > 0)
    findings.push_back(format(
        "are repeated {} times, first at row {} ({}); windows take each of these rows for a step in time: keep one "
        "of them if that is not meant",
        repeated.count, repeated.first + 1, format_date(dates[repeated.first])));
  constexpr std::int64_t kMany = 10;  // one in so many
  if (gaps.count * kMany > static_cast<std::int64_t>(steps.size())) {
    others.first = others.count > 0 ? std::min(others.first, gaps.first) : gaps.first;
    others.count += gaps.count;
  } else if (gaps.count > 0) {
    findings.push_back(format(
        "have {} {}, {} row {} {}{}; windows take rows as {} apart and reach across: fill in the missing rows if "
        "that is not meant",
        gaps.count, gaps.count == 1 ? "gap" : "gaps", gaps.count == 1 ? "at" : "first at", gaps.first + 1,
        between(gaps.first), gaps.count == 1 ? "" : format(", the longest of {}", duration_text(longest)),
        duration_text(usual)));
  }
  if (others.count > 0)
    findings.push_back(format(
        "are uneven: {} of {} steps are not the usual {}, first at row {} {}; windows take rows as evenly spaced: "
        "bring the table to even steps if that is not meant",
        others.count, steps.size(), duration_text(usual), others.first + 1, between(others.first)));
  return findings;
}

}  // namespace cohort::tables
