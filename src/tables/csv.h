/// Reading tables of text: RFC 4180 and what is found in the wild.
///
/// - Separators: comma, semicolon, tab, | (told apart by themselves), or any other ASCII character.
/// - Quotes: a field that starts with " ends with the next single "; inside, "" is a quote, and separators and line
///   ends are text. A quote elsewhere is an ordinary character.
/// - Lines end with LF or CRLF; the last one may lack it. Blank lines are skipped. A UTF-8 byte order mark and a first
///   line `sep=;` (spreadsheets write it) are understood.
/// - A column without a name that is empty in every row, as separators at the ends of the lines make it, is left out,
///   with a line of the log; the header may lack its separator.
/// - Names of columns are UTF-8; other texts are bytes.
/// - Numbers are read exactly rounded (number_text.h), with blanks around them; true and false (True, TRUE) are 1 and 0.
/// - Lines that are no rows (a title, units below the names, a sum at the end) are left out by their numbers, skip_lines.
/// - A missing value is an empty field or one of NA N/A n/a #N/A <NA> NaN nan -NaN -nan NULL null None, or a word of
///   `missing_values`. Filling with the mean is not offered: the mean of the whole column would leak the test part into
///   the training part.
///
/// The file is read in pieces, by several threads, and never held as a whole; the result does not depend on their
/// number.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tables/table.h"

namespace cohort::config {
class Fields;
}

namespace cohort::tables {

struct CsvSettings {
  std::string separator = "auto";  ///< auto, tab, or one ASCII character
  std::string header = "auto";     ///< auto: the first line is one unless all its fields are numbers or dates; yes; no
  std::string decimal = ".";       ///< decimal mark: . or ,
  std::string thousands = "none";  ///< what sets thousands apart: none, ., ,, space or apostrophe
  std::vector<std::string> units;  ///< what stands before or behind numbers and is no part of them, e.g. %, kW or $
  std::string comment;             ///< one character: a line that starts with it is skipped; empty = none
  std::vector<std::string> skip_lines;    ///< lines that are no rows, from 1: "2", "1-3"
  std::vector<std::string> columns;       ///< read only these, in this order; empty = all
  std::vector<std::string> skip_columns;  ///< leave these out
  std::vector<std::string> text_columns;  ///< kept as texts; every other column holds numbers or dates
  std::vector<std::string> date_columns;  ///< dates, beside those found by themselves
  bool detect_dates = true;               ///< a column whose first value is a date holds dates
  std::string date_order = "ymd";         ///< ymd, dmy or mdy
  std::string date_unit =
      "auto";                     ///< of dates that are numbers: s, ms, us, ns since 1970; excel: days since 1899-12-30
  std::string missing = "error";  ///< error; drop_row; forward_fill (the value above); keep (NaN)
  std::vector<std::string> missing_values;  ///< further ones, e.g. ? or -9999 (then -9999.0 as well)
  std::string precision = "float64";        ///< of the columns in memory: float64 or float32
  int threads = 0;                          ///< 0: as many as the process has cores
  std::int64_t chunk_bytes = 256 << 10;     ///< bytes per piece of work; not a setting for users
};

void describe(config::Fields& fields, CsvSettings& settings);

/// What reading found.
struct CsvReport {
  std::int64_t bytes = 0;
  std::int64_t rows = 0;
  char separator = ',';
  bool has_header = true;
  std::int64_t dropped_rows = 0;        ///< by missing = drop_row
  std::int64_t first_dropped_line = 0;  ///< 1 = the file's first line
  std::int64_t skipped_rows = 0;        ///< lines of skip_lines that could have been read as rows
  std::int64_t first_skipped_row = 0;   ///< line of the first of them
  std::int64_t missing_values = 0;      ///< filled or kept
};

/// Reads a file (or a pipe). A file without header has the columns column_0, column_1, ...; so does a column whose
/// header is empty. Dropped rows, filled values and columns that only count the rows are also told in a line of the
/// log. Throws Error that names file, line, column and the text at fault, and the remedy; the line counts from 1 at the
/// file's first line. Where several places are at fault it is the first one.
Table read_csv(const std::filesystem::path& path, const CsvSettings& settings = {}, CsvReport* report = nullptr);

/// The same for a text in memory; `name` stands in messages where the path would.
Table parse_csv(std::string_view text, const std::string& name, const CsvSettings& settings = {},
                CsvReport* report = nullptr);

}  // namespace cohort::tables
