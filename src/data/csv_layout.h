/// What a CSV file looks like, found out from its first lines: separator, header, and what each column holds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv.h"
#include "data/csv_source.h"
#include "data/date_text.h"

namespace cohort::data {

enum class FieldUse : std::uint8_t { kNumber, kDate, kText, kSkip };

struct CsvColumn {
  std::string name;
  FieldUse use = FieldUse::kNumber;
};

struct CsvLayout {
  char separator = ',';
  char decimal = '.';
  char comment = '\0';  ///< '\0': none
  DateOrder date_order = DateOrder::kYearMonthDay;
  bool has_header = true;
  std::vector<CsvColumn> columns;  ///< one per field of a record
  std::int64_t data_begin = 0;     ///< offset of the first record
  std::int64_t data_line = 1;      ///< the line on which it starts, from 1
};

/// Reads as much of the file's front as is needed. Throws Error for what is no table of text (an archive, UTF-16, bytes
/// that no text holds), a header without rows, a column twice, an unknown column in the settings.
CsvLayout find_layout(const CsvSource& source, const CsvSettings& settings);

/// True for the texts that stand for a missing value; `more` adds to the built-in ones.
bool is_missing_text(std::string_view text, const std::vector<std::string>& more);

/// `text` without blanks and tabs at its ends.
std::string_view trim_blanks(std::string_view text);

/// `text` in quotes for a message: shortened, with unprintable bytes written as \xNN.
std::string shown(std::string_view text);

}  // namespace cohort::data
