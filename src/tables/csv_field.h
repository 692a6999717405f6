/// One field of a CSV file: what it is read as, and what to say where it cannot be.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/csv.h"
#include "tables/date_text.h"

namespace cohort::tables {

/// A range of lines, from 1, both of it.
struct LineRange {
  std::int64_t first = 0, last = 0;
};

/// "3", "1-2": what data.csv.skip_lines names, in ascending order. Throws Error for another text.
std::vector<LineRange> parse_lines(const std::vector<std::string>& texts);
bool holds_line(const std::vector<LineRange>& ranges, std::int64_t line);

/// The number of a field without blanks around it: with `settings`' decimal mark and thousands, without its units, with
/// the minus of typesetting (U+2212), and true and false as 1 and 0. False where it is none.
bool parse_field(std::string_view text, const CsvSettings& settings, double& value);

/// The date of a field of a column of dates: a number in data.csv.date_unit, or a date as parse_date() reads it. What is
/// wrong with it, or nullptr.
const char* parse_date_field(std::string_view text, DateOrder order, const CsvSettings& settings, double& seconds);

/// Behind "... is no number": what may be meant, and how to say so, as in "; is the decimal mark ','? Then set ...". ""
/// where the text is like no number.
std::string what_may_be_meant(std::string_view text, const CsvSettings& settings);

/// "data.csv.skip_columns=name,load": the setting that has `more` besides what it has now. A list that is typed replaces
/// the one before, so that a remedy that named `more` alone would undo the last one.
std::string longer_list(std::string_view setting, const std::vector<std::string>& now,
                        const std::vector<std::string>& more);

}  // namespace cohort::tables
