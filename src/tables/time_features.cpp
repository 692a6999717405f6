#include "tables/time_features.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"
#include "tables/date_text.h"

namespace cohort::tables {

Frequency parse_frequency(const std::string& text) {
  std::string unit = text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  struct Name {
    const char* name;
    Frequency frequency;
  };
  // The one-letter names of the reference, and how pandas spells them.
  static constexpr Name kNames[] = {
      {"y", Frequency::kYear},        {"a", Frequency::kYear},     {"ye", Frequency::kYear},
      {"q", Frequency::kQuarter},     {"qe", Frequency::kQuarter}, {"m", Frequency::kMonth},
      {"me", Frequency::kMonth},      {"w", Frequency::kWeek},     {"d", Frequency::kDay},
      {"b", Frequency::kBusinessDay}, {"h", Frequency::kHour},     {"t", Frequency::kMinute},
      {"min", Frequency::kMinute},    {"s", Frequency::kSecond},
  };
  for (const Name& n : kNames)
    if (unit == n.name) return n.frequency;
  throw Error(
      format("data.windows.freq '{}' is not known; use s, t (or min), h, d, b (business days), w, m, q or y, with a "
             "number before "
             "it if you like: 15min",
             text));
}

const char* frequency_letter(Frequency frequency) {
  constexpr const char* kLetters[] = {"y", "q", "m", "w", "d", "b", "h", "t", "s"};
  return kLetters[static_cast<std::size_t>(frequency)];
}

Frequency infer_frequency(std::span<const double> dates) {
  COHORT_THROW_UNLESS(dates.size() >= 2,
                      "the frequency of {} date cannot be told; set data.windows.freq (h, t, d, ...)", dates.size());
  std::vector<double> steps(dates.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = std::abs(dates[i + 1] - dates[i]);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  const double step = *middle;
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  // Months have 28 days at least, quarters 90, years 365.
  if (step >= 365 * kDay) return Frequency::kYear;
  if (step >= 90 * kDay) return Frequency::kQuarter;
  if (step >= 28 * kDay) return Frequency::kMonth;
  if (step >= 7 * kDay) return Frequency::kWeek;
  if (step >= kDay) return Frequency::kDay;
  if (step >= kHour) return Frequency::kHour;
  if (step >= kMinute) return Frequency::kMinute;
  return Frequency::kSecond;
}

TimeFeatures::TimeFeatures(Frequency frequency, const std::string& encoding) : scaled_(encoding == "scaled") {
  COHORT_THROW_UNLESS(scaled_ || encoding == "fields", "time encoding '{}' is not one of scaled, fields", encoding);
  if (scaled_) {
    switch (frequency) {
      case Frequency::kYear:
        break;
      case Frequency::kQuarter:
      case Frequency::kMonth:
        features_ = {Feature::kMonth};
        break;
      case Frequency::kWeek:
        features_ = {Feature::kDay, Feature::kWeek};
        break;
      case Frequency::kSecond:
        features_ = {Feature::kSecond};
        [[fallthrough]];
      case Frequency::kMinute:
        features_.push_back(Feature::kMinute);
        [[fallthrough]];
      case Frequency::kHour:
        features_.push_back(Feature::kHour);
        [[fallthrough]];
      case Frequency::kDay:
      case Frequency::kBusinessDay:
        features_.insert(features_.end(), {Feature::kWeekday, Feature::kDay, Feature::kDayOfYear});
        break;
    }
    return;
  }
  COHORT_THROW_UNLESS(frequency != Frequency::kSecond && frequency != Frequency::kQuarter,
                      "there are no time features of encoding 'fields' for freq {}; use encoding 'scaled', or freq {}",
                      frequency_letter(frequency), frequency == Frequency::kSecond ? "t" : "m");
  if (frequency == Frequency::kYear) return;
  features_ = {Feature::kMonth};
  if (frequency == Frequency::kMonth || frequency == Frequency::kWeek) return;
  features_.insert(features_.end(), {Feature::kDay, Feature::kWeekday});
  if (frequency == Frequency::kHour || frequency == Frequency::kMinute) features_.push_back(Feature::kHour);
  if (frequency == Frequency::kMinute) features_.push_back(Feature::kQuarterOfHour);
}

std::vector<std::string> TimeFeatures::names() const {
  constexpr const char* kNames[] = {"second", "minute", "quarter_of_hour", "hour", "weekday", "day", "day_of_year",
                                    "week",   "month"};
  std::vector<std::string> names;
  for (Feature f : features_) names.emplace_back(kNames[static_cast<std::size_t>(f)]);
  return names;
}

void TimeFeatures::encode(double seconds, std::span<float> out) const {
  COHORT_CHECK(out.size() == features_.size(), "{} elements for {} time features", out.size(), features_.size());
  COHORT_THROW_UNLESS(std::isfinite(seconds), "a date is missing, so it has no time features");
  const CalendarFields date = calendar_fields(seconds);
  for (std::size_t i = 0; i < out.size(); ++i) {
    int value = 0, first = 0;  // first: the smallest value the field takes
    double span = 1;           // from the smallest to the largest
    switch (features_[i]) {
      case Feature::kSecond:
        value = date.second, span = 59;
        break;
      case Feature::kMinute:
        value = date.minute, span = 59;
        break;
      case Feature::kQuarterOfHour:
        value = date.minute / 15, span = 3;
        break;
      case Feature::kHour:
        value = date.hour, span = 23;
        break;
      case Feature::kWeekday:
        value = date.weekday, span = 6;
        break;
      case Feature::kDay:
        value = date.day, first = 1, span = 30;
        break;
      case Feature::kDayOfYear:
        value = date.day_of_year, first = 1, span = 365;
        break;
      case Feature::kWeek:
        value = date.iso_week, first = 1, span = 52;
        break;
      case Feature::kMonth:
        value = date.month, first = 1, span = 11;
        break;
    }
    out[i] = scaled_ ? static_cast<float>((value - first) / span - 0.5) : static_cast<float>(value);
  }
}

}  // namespace cohort::tables
