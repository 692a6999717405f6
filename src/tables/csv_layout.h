/// What a CSV file looks like, found out from its first lines: separator, header, and what each column holds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tables/csv.h"
#include "tables/csv_field.h"
#include "tables/csv_source.h"

namespace cohort::tables {

/// kEmpty: left out, and every field of it must be empty. kTime: times of day that belong to the dates in the column
/// before.
enum class FieldUse : std::uint8_t { kNumber, kDate, kTime, kText, kSkip, kEmpty };

struct CsvColumn {
  std::string name;
  FieldUse use = FieldUse::kNumber;
  bool is_named = false;   ///< by the header
  bool no_value = false;   ///< none of the first `sampled` records has one
  bool no_number = false;  ///< none of their values is a number
};

struct CsvLayout {
  char separator = ',';
  char decimal = '.';
  char comment = '\0';  ///< '\0': none
  DateOrder date_order = DateOrder::kYearMonthDay;
  bool has_header = true;
  std::vector<CsvColumn> columns;  ///< one per field of a record
  std::size_t header_fields = 0;   ///< of them that stand in the header, or in the first line
  std::size_t sampled = 0;         ///< records that were looked at
  std::vector<LineRange> skip_lines;
  std::int64_t names_line =
      0;  ///< where the names of the columns seem to stand, if below a title; 0: in the first line
  std::int64_t data_begin = 0;  ///< offset of the first record
  std::int64_t data_line = 1;   ///< the line on which it starts, from 1
};

/// Reads as much of the file's front as is needed. Throws Error for what is no table of text (an archive, UTF-16, bytes
/// that no text holds), names that are no UTF-8, a header without rows, a column twice, an unknown column in the
/// settings.
CsvLayout find_layout(const CsvSource& source, const CsvSettings& settings);

/// "data.csv.skip_columns=load", ready to be pasted into a shell whatever the name is.
std::string column_setting(std::string_view setting, const std::vector<std::string>& names);

/// True for the texts that stand for a missing value; `more` adds to the built-in ones.
bool is_missing_text(std::string_view text, const std::vector<std::string>& more);

/// `text` without blanks and tabs at its ends.
std::string_view trim_blanks(std::string_view text);

}  // namespace cohort::tables
