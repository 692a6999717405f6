/// Calendar features of a date, as Informer's temporal embeddings take them (utils/timefeatures.py of
/// github.com/zhouhaoyi/Informer2020).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::tables {

/// How often rows come: it decides which features tell them apart.
enum class Frequency : std::uint8_t {
  kYear,
  kQuarter,
  kMonth,
  kWeek,
  kDay,
  kBusinessDay,
  kHour,
  kMinute,
  kSecond,
};

/// Reads [multiple]unit in any case: y or a, q, m, w, d, b, h, t or min, s; e.g. h, 15min. The multiple has no effect,
/// as in the reference. Throws Error naming what is allowed.
Frequency parse_frequency(const std::string& text);

/// "h", "t", ...: the reference's letter.
const char* frequency_letter(Frequency frequency);

/// The frequency of which the median step between consecutive dates (seconds) is closest below: steps of 15 minutes
/// give kMinute, of an hour kHour. Throws Error for fewer than two dates.
Frequency infer_frequency(std::span<const double> dates);

/// Writes the features of one date after another.
class TimeFeatures {
 public:
  /// encoding `scaled` is the reference's timeenc=1 (--embed timeF): values from -0.5 to 0.5,
  ///   s: second, minute, hour, weekday, day, day of year; t: from minute on; h: from hour on; d, b: from weekday on;
  ///   w: day, ISO week; m, q: month; y: none.
  /// encoding `fields` is timeenc=0 (--embed fixed or learned): whole numbers,
  ///   t: month (1-12), day (1-31), weekday (0 = Monday), hour, quarter of the hour (0-3); h: up to hour; d, b: up to
  ///   weekday; w, m: month; y: none.
  /// Throws Error for another encoding, and for `fields` with s or q, which the reference lacks.
  TimeFeatures(Frequency frequency, const std::string& encoding);

  std::int64_t count() const { return static_cast<std::int64_t>(features_.size()); }
  /// "hour", "weekday", ...
  std::vector<std::string> names() const;
  /// `seconds` since 1970-01-01 UTC; `out` has count() elements. Throws Error for a date that is not finite.
  void encode(double seconds, std::span<float> out) const;

 private:
  enum class Feature : std::uint8_t {
    kSecond,
    kMinute,
    kQuarterOfHour,
    kHour,
    kWeekday,
    kDay,
    kDayOfYear,
    kWeek,
    kMonth,
  };
  std::vector<Feature> features_;
  bool scaled_ = true;
};

}  // namespace cohort::tables
