#include "tables/csv_field.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/utf8.h"
#include "tables/csv_layout.h"
#include "tables/grouped_number.h"
#include "tables/number_text.h"

namespace cohort::tables {
namespace {

constexpr std::string_view kMinus = "\xe2\x88\x92";  // U+2212

bool parse_plain(std::string_view text, const CsvSettings& settings, double& value) {
  const char decimal = settings.decimal.front();
  return settings.thousands == "none" ? parse_number(text, decimal, value)
                                      : parse_grouped_number(text, decimal, settings.thousands, value);
}

/// Of a number with something before or behind it, that something; "" where it is another text, or more than a unit.
std::string unit_around(std::string_view text, const CsvSettings& settings) {
  constexpr std::size_t kLongest = 12;  // bytes
  double ignored = 0;
  const auto is_unit = [](std::string_view unit) {
    return !unit.empty() && unit.size() <= kLongest && unit.find_first_of("0123456789()<>=~:/") == unit.npos;
  };
  for (std::size_t end = text.size(); end-- > 1;) {
    const std::string_view unit = trim_blanks(text.substr(end));
    if (is_unit(unit) && parse_plain(trim_blanks(text.substr(0, end)), settings, ignored)) return std::string(unit);
  }
  for (std::size_t begin = 1; begin < text.size(); ++begin) {
    const std::string_view unit = trim_blanks(text.substr(0, begin));
    if (is_unit(unit) && parse_plain(trim_blanks(text.substr(begin)), settings, ignored)) return std::string(unit);
  }
  return "";
}

}  // namespace

std::vector<LineRange> parse_lines(const std::vector<std::string>& texts) {
  std::vector<LineRange> ranges;
  for (const std::string& text : texts) {
    LineRange range;
    const char* const end = text.data() + text.size();
    auto read = std::from_chars(text.data(), end, range.first);
    range.last = range.first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, range.last);
    COHORT_THROW_UNLESS(read.ec == std::errc() && read.ptr == end && range.first >= 1 && range.last >= range.first,
                        "data.csv.skip_lines={}: write numbers of lines, from 1, and ranges: 2, or 1-3,402",
                        quoted_bytes(text));
    ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end(), [](const LineRange& a, const LineRange& b) { return a.first < b.first; });
  return ranges;
}

bool holds_line(const std::vector<LineRange>& ranges, std::int64_t line) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const LineRange& range) { return line >= range.first && line <= range.last; });
}

bool parse_field(std::string_view text, const CsvSettings& settings, double& value) {
  if (parse_plain(text, settings, value)) return true;
  for (const std::string_view word : {"true", "True", "TRUE", "false", "False", "FALSE"})
    if (text == word) {
      value = word.size() == 4 ? 1 : 0;
      return true;
    }
  if (text.starts_with(kMinus)) return parse_field("-" + std::string(text.substr(kMinus.size())), settings, value);
  for (const std::string& unit : settings.units) {
    if (unit.empty()) continue;
    if (text.ends_with(unit) && parse_plain(trim_blanks(text.substr(0, text.size() - unit.size())), settings, value))
      return true;
    if (text.starts_with(unit) && parse_plain(trim_blanks(text.substr(unit.size())), settings, value)) return true;
  }
  return false;
}

const char* parse_date_field(std::string_view text, DateOrder order, const CsvSettings& settings, double& seconds) {
  double number = 0;
  const std::string& unit = settings.date_unit;
  if (unit != "auto" && parse_number(text, settings.decimal.front(), number)) {
    constexpr double kSecondsOfDay = 86400, kDaysTo1970 = 25569;  // since 1899-12-30
    seconds = unit == "s"    ? number
              : unit == "ms" ? number / 1e3
              : unit == "us" ? number / 1e6
              : unit == "ns" ? number / 1e9
                             : std::round((number - kDaysTo1970) * kSecondsOfDay);
    return nullptr;
  }
  const char* wrong = parse_date(text, order, seconds);
  if (wrong != nullptr && parse_number(text, settings.decimal.front(), number))
    return "it is a number: say with data.csv.date_unit what it counts, s, ms, us or ns (since 1970, or from the "
           "start), or "
           "excel (days, as spreadsheets do)";
  return wrong;
}

std::string what_may_be_meant(std::string_view text, const CsvSettings& settings) {
  const char decimal = settings.decimal.front();
  const char other = decimal == '.' ? ',' : '.';
  double ignored = 0;
  std::string said;
  if (parse_number(text, other, ignored))
    said = format("; is the decimal mark '{0}'? Then set data.csv.decimal={0}", other);
  for (const std::string_view thousands : kThousands) {
    const std::string apart = format("thousands set apart{} Then set data.csv.thousands={}",
                                     thousands.size() == 1 ? format(" by '{}'?", thousands) : "?", thousands);
    if (parse_grouped_number(text, decimal, thousands, ignored))
      return said.empty() ? format("; are {}", apart) : format("{}, or are {}", said, apart);
    if (said.empty() && parse_grouped_number(text, other, thousands, ignored))
      return format("; is the decimal mark '{0}' and are {1} data.csv.decimal={0}", other, apart);
  }
  if (!said.empty()) return said;
  if (text.starts_with('(') && text.ends_with(')') &&
      parse_plain(trim_blanks(text.substr(1, text.size() - 2)), settings, ignored))
    return format("; if brackets stand for a minus, write -{}", trim_blanks(text.substr(1, text.size() - 2)));
  if (const std::string unit = unit_around(text, settings); !unit.empty())
    return format("; is {} a unit, the same one in the whole column? Then set {}", quoted_bytes(unit),
                  longer_list("data.csv.units", settings.units, {unit}));
  return "";
}

std::string longer_list(std::string_view setting, const std::vector<std::string>& now,
                        const std::vector<std::string>& more) {
  std::vector<std::string> all = now;
  for (const std::string& item : more)
    if (std::find(all.begin(), all.end(), item) == all.end()) all.push_back(item);
  return column_setting(setting, all);
}

}  // namespace cohort::tables
