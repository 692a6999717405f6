#include "tables/date_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "core/error.h"
#include "tables/number_text.h"

namespace cohort::tables {
namespace {

constexpr double kSecondsPerDay = 86400;

std::int64_t days_since_epoch(int year, int month, int day) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(month)) /
                  std::chrono::day(static_cast<unsigned>(day)))
      .time_since_epoch()
      .count();
}

/// Reads from the front of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Digits, at most `most`, as a number; their count, 0 where there are none.
  int digits(int most, int& value) {
    int count = 0;
    value = 0;
    while (count < most && count < static_cast<int>(rest_.size()) && rest_[static_cast<std::size_t>(count)] >= '0' &&
           rest_[static_cast<std::size_t>(count)] <= '9') {
      value = value * 10 + (rest_[static_cast<std::size_t>(count)] - '0');
      ++count;
    }
    rest_.remove_prefix(static_cast<std::size_t>(count));
    return count;
  }
  void skip_blanks() {
    while (peek() == ' ') rest_.remove_prefix(1);
  }
  bool take_text(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool take_word(std::string_view lower) {
    if (rest_.size() < lower.size()) return false;
    for (std::size_t i = 0; i < lower.size(); ++i)
      if ((rest_[i] | 0x20) != lower[i]) return false;
    rest_.remove_prefix(lower.size());
    return true;
  }

 private:
  std::string_view rest_;
};

struct DateParts {
  int year = 0, month = 0, day = 0;
};

/// "Mar", "march", "Sept." and the like, as 1 to 12; 0 where no month's name stands there.
int take_month_name(Cursor& cursor) {
  constexpr const char* kMonths[] = {"january", "february", "march",     "april",   "may",      "june",
                                     "july",    "august",   "september", "october", "november", "december"};
  for (int month = 0; month < 12; ++month) {
    const std::string_view whole = kMonths[month];
    const std::size_t shorter = month == 8 ? 4 : 3;  // Sept
    for (const std::size_t letters : {whole.size(), shorter, std::size_t{3}}) {
      if (!cursor.take_word(whole.substr(0, letters))) continue;
      cursor.take('.');
      return month + 1;
    }
  }
  return 0;
}

/// A date whose month is a name: 01-Mar-2024, 1 March 2024, 2024-Mar-01, Mar 1, 2024. The name tells the order. False
/// where none stands there.
bool read_named_month(Cursor& cursor, DateParts& parts) {
  Cursor front = cursor;
  const auto skip_mark = [&front] {
    while (front.take('-') || front.take('/') || front.take('.') || front.take(',') || front.take(' ')) {
    }
  };
  int first = 0, second = 0;
  const int width = front.digits(4, first);
  skip_mark();
  const int month = take_month_name(front);
  if (month == 0) return false;
  skip_mark();
  const int second_width = front.digits(4, second);
  if (front.at_end() && width == 0 && second_width == 4) {  // Mar 2024
    parts = {second, month, 1};
  } else if (front.at_end() && width == 4 && second_width == 0) {  // 2024-Mar
    parts = {first, month, 1};
  } else if (width == 0) {
    int year = 0;
    skip_mark();
    if (second_width == 0 || second_width > 2 || front.digits(4, year) != 4) return false;
    parts = {year, month, second};
  } else if (width == 4 && (second_width == 1 || second_width == 2)) {
    parts = {first, month, second};
  } else if (width <= 2 && second_width == 4) {
    parts = {second, month, first};
  } else {
    return false;
  }
  front.take(',');
  cursor = front;
  return true;
}

/// 2024年3月1日, 2024年3月. False where it is no such date.
bool read_chinese_day(Cursor& cursor, DateParts& parts) {
  Cursor front = cursor;
  if (front.digits(4, parts.year) != 4 || !front.take_text("年") || front.digits(2, parts.month) == 0 ||
      !front.take_text("月"))
    return false;
  parts.day = 1;
  if (!front.at_end() && (front.digits(2, parts.day) == 0 || !front.take_text("日"))) return false;
  cursor = front;
  return true;
}

/// 13时, 13时05分, 13时05分06秒. False where no such time stands there.
bool read_chinese_time(Cursor& cursor, double& seconds) {
  Cursor front = cursor;
  int hour = 0, minute = 0, second = 0;
  if (front.digits(2, hour) == 0 || !(front.take_text("时") || front.take_text("時") || front.take_text("点")))
    return false;
  if (front.digits(2, minute) > 0 && !front.take_text("分")) return false;
  if (front.digits(2, second) > 0 && !front.take_text("秒")) return false;
  if (hour > 23 || minute > 59 || second > 59) return false;
  seconds = hour * 3600.0 + minute * 60.0 + second;
  cursor = front;
  return true;
}

/// What computers count: seconds, milliseconds, microseconds or nanoseconds since 1970 (10, 13, 16 or 19 digits, seconds
/// with a fraction, too), YYYYMMDDHHMM[SS], and a year. False where the text is neither.
bool read_digits_only(std::string_view text, DateOrder order, double& seconds) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool whole = digits == text.size();
  double value = 0;
  if (digits == 10 && parse_number(text, '.', value)) {
    seconds = value;
    return true;
  }
  if (whole && (digits == 13 || digits == 16 || digits == 19) && parse_number(text, '.', value)) {
    seconds = value / (digits == 13 ? 1e3 : digits == 16 ? 1e6 : 1e9);
    return true;
  }
  if (whole && digits == 4 && order == DateOrder::kYearMonthDay && text.front() != '0') {
    seconds = static_cast<double>(days_since_epoch(std::stoi(std::string(text)), 1, 1)) * kSecondsPerDay;
    return true;
  }
  if (!whole || (digits != 12 && digits != 14) || order != DateOrder::kYearMonthDay) return false;
  std::string spaced = format("{} {}:{}", text.substr(0, 8), text.substr(8, 2), text.substr(10, 2));
  if (digits == 14) spaced += format(":{}", text.substr(12, 2));
  return parse_date(spaced, order, seconds) == nullptr;
}

/// What tables by the month, the quarter or the week have: 2024-03, 2024/3; 2024Q1, 2024-Q1, Q1 2024; 2024-W05, the first
/// day of which is meant. False where the text is none of them.
bool read_period(std::string_view text, double& seconds) {
  const auto letter = [](Cursor& cursor, char lower) {
    return cursor.take(lower) || cursor.take(static_cast<char>(lower - 32));
  };
  const auto mark = [](Cursor& cursor) { return cursor.take('-') || cursor.take(' ') || cursor.take('/'); };
  int year = 0, number = 0;
  Cursor cursor(text);
  bool quarter = letter(cursor, 'q'), week = false;
  if (quarter) {
    if (cursor.digits(1, number) != 1) return false;
    mark(cursor);
    if (cursor.digits(4, year) != 4) return false;
  } else {
    if (cursor.digits(4, year) != 4) return false;
    const bool marked = mark(cursor);
    quarter = letter(cursor, 'q');
    week = !quarter && letter(cursor, 'w');
    if (!quarter && !week && !marked) return false;
    if (cursor.digits(2, number) == 0) return false;
  }
  if (!cursor.at_end() || year < 1) return false;
  if (week) {
    if (number < 1 || number > 53) return false;
    // The week of January 4 is the first.
    const std::int64_t fourth = days_since_epoch(year, 1, 4);
    const std::int64_t monday = fourth - ((fourth + 3) % 7 + 7) % 7;
    const std::int64_t day = monday + (number - 1) * 7;
    // The last week has its Thursday in the year.
    if (number == 53 && day + 3 >= days_since_epoch(year + 1, 1, 1)) return false;
    seconds = static_cast<double>(day) * kSecondsPerDay;
    return true;
  }
  if (number < 1 || number > (quarter ? 4 : 12)) return false;
  seconds = static_cast<double>(days_since_epoch(year, quarter ? number * 3 - 2 : number, 1)) * kSecondsPerDay;
  return true;
}

const char* read_day(Cursor& cursor, DateOrder order, DateParts& parts) {
  if (read_named_month(cursor, parts) || read_chinese_day(cursor, parts)) return nullptr;
  int number[3];
  int width[3];
  width[0] = cursor.digits(8, number[0]);
  if (width[0] == 0) return "it does not start with a number";
  if (width[0] == 8) {
    parts = {number[0] / 10000, number[0] / 100 % 100, number[0] % 100};
    if (order != DateOrder::kYearMonthDay) return "eight digits in a row are read as YYYYMMDD only";
    return nullptr;
  }
  const char mark = cursor.peek();
  if (mark != '-' && mark != '/' && mark != '.') return "the date has no -, / or . between its numbers";
  for (int i = 1; i < 3; ++i) {
    if (!cursor.take(mark)) return "a date is three numbers with the same mark between them";
    width[i] = cursor.digits(4, number[i]);
    if (width[i] == 0) return "a date is three numbers";
  }
  int year = 0, month = 1, day = 2;
  if (order == DateOrder::kDayMonthYear) day = 0, month = 1, year = 2;
  if (order == DateOrder::kMonthDayYear) month = 0, day = 1, year = 2;
  if (width[year] != 4)
    return order == DateOrder::kYearMonthDay && width[2] == 4
               ? "the year stands last: set data.csv.date_order=dmy or mdy"
               : "the year does not have four digits where data.csv.date_order puts it";
  if (width[month] > 2 || width[day] > 2) return "month and day have at most two digits";
  parts = {number[year], number[month], number[day]};
  return nullptr;
}

const char* read_time(Cursor& cursor, double& seconds) {
  int hour = 0, minute = 0, second = 0;
  double fraction = 0;
  if (cursor.digits(2, hour) == 0) return "the time of day does not start with an hour";
  if (cursor.take(':')) {
    if (cursor.digits(2, minute) != 2) return "minutes have two digits";
    if (cursor.take(':')) {
      if (cursor.digits(2, second) != 2) return "seconds have two digits";
      if (cursor.take('.') || cursor.take(',')) {
        double unit = 0.1;
        int digit = 0;
        if (cursor.digits(1, digit) == 0) return "a fraction of a second has digits";
        std::int64_t value = digit, scale = 10;
        while (cursor.digits(1, digit) == 1) {
          if (scale < 1000000000) {
            value = value * 10 + digit;
            scale *= 10;
          }
        }
        unit = static_cast<double>(scale);
        fraction = static_cast<double>(value) / unit;
      }
    }
  }
  cursor.skip_blanks();
  const bool am = cursor.take_word("am");
  const bool pm = !am && cursor.take_word("pm");
  if (am || pm) {
    if (hour < 1 || hour > 12) return "an hour with AM or PM is 1 to 12";
    hour = hour % 12 + (pm ? 12 : 0);
  }
  if (hour > 23) return "the hour is above 23";
  if (minute > 59) return "the minute is above 59";
  if (second > 59) return "the second is above 59";
  seconds = hour * 3600.0 + minute * 60.0 + second + fraction;
  return nullptr;
}

const char* read_zone(Cursor& cursor, double& offset) {
  offset = 0;
  if (cursor.take('Z') || cursor.take('z')) return nullptr;
  const bool minus = cursor.peek() == '-';
  if (!minus && cursor.peek() != '+') return nullptr;
  cursor.take(minus ? '-' : '+');
  int hours = 0, minutes = 0;
  if (cursor.digits(2, hours) != 2) return "a zone is Z or +HH:MM";
  cursor.take(':');
  if (!cursor.at_end() && cursor.digits(2, minutes) != 2) return "a zone is Z or +HH:MM";
  if (hours > 14 || minutes > 59) return "the zone is more than 14 hours from UTC";
  offset = (hours * 60 + minutes) * (minus ? -60.0 : 60.0);
  return nullptr;
}

}  // namespace

DateOrder parse_date_order(const std::string& text) {
  if (text == "ymd") return DateOrder::kYearMonthDay;
  if (text == "dmy") return DateOrder::kDayMonthYear;
  if (text == "mdy") return DateOrder::kMonthDayYear;
  throw Error(format("data.csv.date_order={}: write ymd, dmy or mdy", text));
}

const char* parse_date(std::string_view text, DateOrder order, double& seconds) {
  if (read_digits_only(text, order, seconds) || read_period(text, seconds)) return nullptr;
  Cursor cursor(text);
  DateParts date;
  if (const char* wrong = read_day(cursor, order, date)) return wrong;
  if (date.month < 1 || date.month > 12) return "there is no such month";
  if (date.day < 1 || date.day > days_in_month(date.year, date.month)) return "the month has no such day";
  double time = 0, offset = 0;
  const bool t = cursor.take('T') || cursor.take('t');
  if (!t && cursor.peek() == ' ') cursor.skip_blanks();
  if (!t && read_chinese_time(cursor, time)) {
    cursor.skip_blanks();
  } else if (t || !cursor.at_end()) {
    if (const char* wrong = read_time(cursor, time)) return wrong;
    cursor.skip_blanks();
    if (const char* wrong = read_zone(cursor, offset)) return wrong;
  }
  cursor.skip_blanks();
  if (!cursor.at_end()) return "there is text after it";
  seconds = static_cast<double>(days_since_epoch(date.year, date.month, date.day)) * kSecondsPerDay + time - offset;
  return nullptr;
}

const char* parse_time_of_day(std::string_view text, double& seconds) {
  Cursor cursor(text);
  if (text.find(':') == std::string_view::npos) return "a time of day has a colon";
  if (const char* wrong = read_time(cursor, seconds)) return wrong;
  return cursor.at_end() ? nullptr : "there is text after it";
}

bool looks_like_date(std::string_view text) {
  double ignored = 0;
  constexpr std::size_t kShortest = 6;  // 2024Q1
  if (text.size() < kShortest || parse_number(text, '.', ignored) || parse_number(text, ',', ignored)) return false;
  for (const DateOrder order : {DateOrder::kYearMonthDay, DateOrder::kDayMonthYear, DateOrder::kMonthDayYear})
    if (parse_date(text, order, ignored) == nullptr) return true;
  return false;
}

int days_in_month(int year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[month - 1];
}

CalendarFields calendar_fields(double seconds) {
  constexpr double kLargest = 30000.0 * 365 * kSecondsPerDay;  // std::chrono::year ends at 32767
  COHORT_THROW_UNLESS(std::abs(seconds) < kLargest, "{} s since 1970 is no date of the calendar", seconds);
  const double whole_days = std::floor(seconds / kSecondsPerDay);
  const auto day_number = static_cast<std::int64_t>(whole_days);
  const auto in_day = static_cast<int>(std::floor(seconds - whole_days * kSecondsPerDay));
  const std::chrono::sys_days day{std::chrono::days(day_number)};
  const std::chrono::year_month_day date(day);
  CalendarFields f;
  f.year = static_cast<int>(date.year());
  f.month = static_cast<int>(static_cast<unsigned>(date.month()));
  f.day = static_cast<int>(static_cast<unsigned>(date.day()));
  f.hour = in_day / 3600;
  f.minute = in_day / 60 % 60;
  f.second = in_day % 60;
  f.weekday = static_cast<int>(((day_number + 3) % 7 + 7) % 7);  // 1970-01-01 was a Thursday
  f.day_of_year = static_cast<int>(day_number - days_since_epoch(f.year, 1, 1)) + 1;
  // The week belongs to the year of its Thursday.
  const std::int64_t thursday = day_number - f.weekday + 3;
  const std::chrono::year_month_day of_thursday(std::chrono::sys_days{std::chrono::days(thursday)});
  f.iso_week = static_cast<int>((thursday - days_since_epoch(static_cast<int>(of_thursday.year()), 1, 1)) / 7) + 1;
  return f;
}

double seconds_since_epoch(int year, int month, int day, int hour, int minute, int second) {
  return static_cast<double>(days_since_epoch(year, month, day)) * kSecondsPerDay + hour * 3600.0 + minute * 60.0 +
         second;
}

std::string format_date(double seconds) {
  const CalendarFields f = calendar_fields(seconds);
  std::string text = format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", f.year, f.month, f.day, f.hour, f.minute, f.second);
  const double fraction = seconds - std::floor(seconds);
  if (fraction > 0) {
    std::string digits = format("{:.6f}", fraction);
    if (digits.front() == '0') text += digits.substr(1);
  }
  return text;
}

}  // namespace cohort::tables
