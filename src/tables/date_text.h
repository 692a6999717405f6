/// Dates and times as texts, as seconds since 1970-01-01 00:00:00 UTC, and as calendar fields (proleptic Gregorian).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::tables {

/// Which of the three numbers of a date is which.
enum class DateOrder : std::uint8_t { kYearMonthDay, kDayMonthYear, kMonthDayYear };

/// "ymd", "dmy", "mdy"; throws Error on anything else.
DateOrder parse_date_order(const std::string& text);

/// Reads a date with an optional time of day:
///   2016-07-01   2016/7/1   2016.07.01   20160701   (with kDayMonthYear 1.7.2016, with kMonthDayYear 7/1/2016)
///   01-Jul-2016   1 July 2016   Jul 1, 2016   2016-Jul-01   2016年7月1日   (in any order)
///   then, after a blank or a T:  H   H:MM   H:MM:SS   H:MM:SS.fraction (. or ,), with AM or PM;   10时   10时05分06秒
///   then Z, +HH, +HH:MM or +HHMM.
///   2016-07   2016/7   Jul 2016   2016年7月   2016Q3   Q3 2016   2016-W27   2016   (in any order, the last one with
///   kYearMonthDay): the first day of the month, the quarter, the week (ISO 8601) or the year.
///   201607010000   20160701000000   (with kYearMonthDay), and what computers count since 1970: 10 digits are seconds
///   (a fraction may follow), 13 milliseconds, 16 microseconds, 19 nanoseconds.
/// Years have four digits. A text without a zone is taken as UTC; one with a zone is converted to UTC. Fractions are
/// kept to about a microsecond (float64 seconds). Returns nullptr and sets `seconds`, or returns what is wrong, as a
/// phrase.
const char* parse_date(std::string_view text, DateOrder order, double& seconds);

/// Reads a time of day alone, "17:24", "17:24:00", "5:24 PM", as seconds since midnight; a colon must be in it. Returns as
/// parse_date() does.
const char* parse_time_of_day(std::string_view text, double& seconds);

/// True for a text that parse_date reads in some order and that is not also a plain number: how a column of dates is
/// told from one of numbers.
bool looks_like_date(std::string_view text);

struct CalendarFields {
  int year = 1970;
  int month = 1;        ///< 1 to 12
  int day = 1;          ///< 1 to 31
  int hour = 0;         ///< 0 to 23
  int minute = 0;       ///< 0 to 59
  int second = 0;       ///< 0 to 59, rounded down
  int weekday = 3;      ///< 0 = Monday to 6 = Sunday
  int day_of_year = 1;  ///< 1 to 366
  int iso_week = 1;     ///< 1 to 53, ISO 8601: weeks start on Monday, week 1 holds the year's first Thursday
};

/// `seconds` must be finite and of a year from -30000 to 30000; throws Error otherwise.
CalendarFields calendar_fields(double seconds);

/// The inverse for the fields year to second; they must be in range.
double seconds_since_epoch(int year, int month, int day, int hour = 0, int minute = 0, int second = 0);

/// Days in a month of the Gregorian calendar.
int days_in_month(int year, int month);

/// "2016-07-01 00:00:00", with a fraction where there is one.
std::string format_date(double seconds);

}  // namespace cohort::tables
