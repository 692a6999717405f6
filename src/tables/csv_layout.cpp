#include "tables/csv_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "core/config.h"
#include "core/error.h"
#include "core/utf8.h"
#include "tables/csv_front.h"
#include "tables/grouped_number.h"
#include "tables/number_text.h"

namespace cohort::tables {
namespace {

constexpr std::int64_t kFirstSample = 64 << 10;  // bytes
constexpr std::int64_t kLargestSample = 256 << 20;
constexpr std::array kSeparators{',', ';', '\t', '|'};  // that are found by themselves
constexpr int kSampleRecords = 100;                     // records that decide on separator and dates

struct SampleRecord {
  std::vector<std::string> fields;
  std::int64_t begin = 0;  // offset in the file
  std::int64_t line = 1;
};

struct Sample {
  std::string text;
  bool whole = false;  // it reaches the end of the file
};

/// Reads records out of a sample by the rules of csv.h. Slow and simple: csv_records.cpp is the fast one.
class SampleReader {
 public:
  SampleReader(const Sample& sample, char separator, char comment, const std::vector<LineRange>& skip_lines,
               std::int64_t begin, std::int64_t line)
      : skip_lines_(skip_lines),
        text_(sample.text),
        whole_(sample.whole),
        separator_(separator),
        comment_(comment),
        position_(static_cast<std::size_t>(begin)),
        line_(line) {}

  /// nullopt at the end of what the sample holds completely.
  std::optional<SampleRecord> next() {
    while (position_ < text_.size() && skips_line()) {
      const std::size_t end = text_.find('\n', position_);
      if (end == std::string_view::npos) return std::nullopt;
      position_ = end + 1;
      ++line_;
    }
    SampleRecord record;
    record.begin = static_cast<std::int64_t>(position_);
    record.line = line_;
    if (position_ >= text_.size()) return std::nullopt;
    std::size_t p = position_;
    for (;;) {
      std::string field;
      if (p < text_.size() && text_[p] == '"') {
        for (++p;; ++p) {
          if (p >= text_.size()) {
            open_quote_line_ = record.line;
            return std::nullopt;
          }
          if (text_[p] == '\n') ++line_;
          if (text_[p] == '"') {
            if (p + 1 < text_.size() && text_[p + 1] == '"')
              ++p;
            else
              break;
          }
          field += text_[p];
        }
        ++p;
      }
      while (p < text_.size() && text_[p] != separator_ && text_[p] != '\n') field += text_[p++];
      if (p >= text_.size() && !whole_) return std::nullopt;
      const bool last = p >= text_.size() || text_[p] == '\n';
      if (last && !field.empty() && field.back() == '\r') field.pop_back();
      record.fields.push_back(std::move(field));
      ++p;
      if (last) break;
    }
    ++line_;
    position_ = std::min(p, text_.size());
    return record;
  }
  std::int64_t position() const { return static_cast<std::int64_t>(position_); }
  std::int64_t line() const { return line_; }
  /// The line of a record whose quote the sample does not close, or 0.
  std::int64_t open_quote_line() const { return open_quote_line_; }

 private:
  bool skips_line() const {
    std::size_t p = position_;
    if (holds_line(skip_lines_, line_)) return true;
    if (comment_ != '\0' && text_[p] == comment_) return true;
    while (p < text_.size() && (text_[p] == ' ' || text_[p] == '\t') && text_[p] != separator_) ++p;
    if (p < text_.size() && text_[p] == '\r' && p + 1 < text_.size() && text_[p + 1] == '\n') return true;
    return p < text_.size() ? text_[p] == '\n' : whole_;
  }

  const std::vector<LineRange>& skip_lines_;
  std::string_view text_;
  bool whole_;
  char separator_, comment_;
  std::size_t position_;
  std::int64_t line_;
  std::int64_t open_quote_line_ = 0;
};

bool starts_with(const std::string& text, std::string_view front) {
  return std::string_view(text).substr(0, front.size()) == front;
}

void refuse_what_is_no_text(const std::string& name, const Sample& sample) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, const char*> kinds[] = {
      {"\x1f\x8b"sv, "compressed with gzip; unpack it first (gunzip)"},
      {"PK\x03\x04"sv, "a ZIP archive or a spreadsheet (xlsx); save it as CSV first"},
      {"PAR1"sv, "a Parquet file; write it as CSV first"},
      {"\x89HDF"sv, "an HDF5 file; write it as CSV first"},
      {"BZh"sv, "compressed with bzip2; unpack it first (bunzip2)"},
      {"\xfd"sv
       "7zXZ"sv,
       "compressed with xz; unpack it first (unxz)"},
      {"\x28\xb5\x2f\xfd"sv, "compressed with zstd; unpack it first (unzstd)"},
      {"\xff\xfe"sv, "text in UTF-16; save it as UTF-8 first (iconv -f UTF-16 -t UTF-8)"},
      {"\xfe\xff"sv, "text in UTF-16; save it as UTF-8 first (iconv -f UTF-16 -t UTF-8)"},
  };
  for (const auto& [front, what] : kinds)
    COHORT_THROW_UNLESS(!starts_with(sample.text, front), "{} is no CSV file but {}", name, what);
  const std::size_t zero = sample.text.find('\0');
  // Every other byte of Western text in UTF-16 is zero.
  COHORT_THROW_UNLESS(
      zero > 1 || sample.text.size() < 4 || sample.text[zero + 2] != '\0' || sample.text[zero + 1] == '\0',
      "{} is no CSV file but text in UTF-16 without a mark of its byte order; write it as UTF-8 first "
      "(iconv -f UTF-16{} -t UTF-8)",
      name, zero == 1 ? "LE" : "BE");
  COHORT_THROW_UNLESS(zero == std::string::npos, "{} is no CSV file: byte {} is zero, which no text holds", name, zero);
  COHORT_THROW_UNLESS(sample.text.find('\n') != std::string::npos || sample.text.find('\r') == std::string::npos ||
                          sample.text.find('\r') + 1 == sample.text.size(),
                      "{} has line ends of CR only (old Mac); convert it first: tr '\\r' '\\n'", name);
}

bool is_number_in_any_notation(std::string_view text) {
  double ignored = 0;
  const auto is = [&](char decimal) {
    return parse_number(text, decimal, ignored) || std::ranges::any_of(kThousands, [&](std::string_view thousands) {
             return parse_grouped_number(text, decimal, thousands, ignored);
           });
  };
  return is('.') || is(',');
}

/// How well a separator explains the sample; the better one compares greater.
struct Fit {
  bool equal_counts = false;  // all records have as many fields as the first, and more than one
  double recognised = 0;      // share of fields that are numbers, dates or missing
  std::size_t fields = 0;     // of the first record
  auto key() const { return std::tuple(equal_counts, recognised, fields); }
};

Fit fit_separator(const Sample& sample, const CsvSettings& settings, const CsvLayout& layout, char separator,
                  std::int64_t begin, std::int64_t line) {
  SampleReader reader(sample, separator, layout.comment, layout.skip_lines, begin, line);
  Fit fit;
  bool equal = true;
  std::size_t recognised = 0, total = 0;
  for (int i = 0; i < kSampleRecords; ++i) {
    const auto record = reader.next();
    if (!record) break;
    if (i == 0) {
      fit.fields = record->fields.size();
      continue;
    }
    equal = equal && record->fields.size() == fit.fields;
    for (const std::string& field : record->fields) {
      const std::string_view text = trim_blanks(field);
      ++total;
      if (is_missing_text(text, settings.missing_values) || is_number_in_any_notation(text) || looks_like_date(text))
        ++recognised;
    }
  }
  fit.equal_counts = equal && fit.fields > 1;
  if (fit.equal_counts && total > 0) fit.recognised = static_cast<double>(recognised) / static_cast<double>(total);
  return fit;
}

char find_separator(const Sample& sample, const CsvSettings& settings, const CsvLayout& layout, std::int64_t begin,
                    std::int64_t line) {
  char best = ',';
  Fit best_fit;
  for (const char candidate : kSeparators) {
    if (settings.decimal.front() == candidate) continue;
    const Fit fit = fit_separator(sample, settings, layout, candidate, begin, line);
    if (fit.key() > best_fit.key()) {
      best_fit = fit;
      best = candidate;
    }
  }
  return best;
}

/// Where the names of the columns stand, if a title stands above them; 0: nothing tells that. A title hides the separator.
std::int64_t find_names(const Sample& sample, const CsvSettings& settings, const CsvLayout& layout, std::int64_t begin,
                        std::int64_t line) {
  std::string candidates(1, layout.separator);
  std::int64_t first = 0;
  if (settings.separator == "auto") candidates.append(kSeparators.begin(), kSeparators.end());
  for (const char candidate : candidates) {
    constexpr std::size_t kRecords = 20;
    SampleReader reader(sample, candidate, layout.comment, layout.skip_lines, begin, line);
    std::vector<FrontRecord> records;
    for (std::optional<SampleRecord> record; records.size() < kRecords && (record = reader.next());)
      records.push_back({std::move(record->fields), record->line});
    // Of two, the one with fewer lines above: decimal commas are no separators.
    if (const std::int64_t names = line_of_names(records); names > 0 && (first == 0 || names < first)) first = names;
  }
  return first;
}

char parse_separator(const CsvSettings& settings) {
  const std::string& text = settings.separator;
  if (text == "auto") return '\0';
  if (text == "tab" || text == "\\t") return '\t';
  constexpr std::string_view kPartsOfNumbersAndLines = "\"\n\r+-0123456789";
  const bool possible = text.size() == 1 && static_cast<unsigned char>(text[0]) < 128 && text[0] != '\0' &&
                        kPartsOfNumbersAndLines.find(text[0]) == std::string_view::npos &&
                        !(text[0] >= 'a' && text[0] <= 'z') && !(text[0] >= 'A' && text[0] <= 'Z');
  COHORT_THROW_UNLESS(
      possible, "data.csv.separator={} is neither auto, tab, nor one character that numbers and lines do not hold",
      quoted_bytes(text));
  COHORT_THROW_UNLESS(text != settings.decimal, "data.csv.separator and data.csv.decimal are both {}",
                      quoted_bytes(text));
  return text[0];
}

bool is_header(const std::vector<std::string>& fields, const CsvSettings& settings) {
  if (settings.header != "auto") return settings.header == "yes";
  bool counts_up = fields.size() > 1;  // 0,1,2,...: the names that pandas gives columns without names
  for (std::size_t i = 0; i < fields.size(); ++i) counts_up = counts_up && fields[i] == std::to_string(i);
  if (counts_up) return true;
  for (const std::string& field : fields) {
    const std::string_view text = trim_blanks(field);
    if (!is_missing_text(text, settings.missing_values) && !is_number_in_any_notation(text) && !looks_like_date(text))
      return true;
  }
  return false;
}

std::string names_of(const std::vector<CsvColumn>& columns) {
  std::string list;
  for (const CsvColumn& column : columns) list += (list.empty() ? "" : ", ") + column.name;
  return list;
}

void require_known(const std::string& source, const std::vector<CsvColumn>& columns,
                   const std::vector<std::string>& names, const char* setting) {
  std::vector<std::string> known;
  for (const CsvColumn& column : columns) known.push_back(column.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = config::nearest(name, known);
    throw Error(format("{}: {} names the column '{}', which the file does not have{}; it has: {}", source, setting,
                       name, near.empty() ? std::string() : format(" (did you mean '{}'?)", near), names_of(columns)));
  }
}

bool holds_dates(const std::vector<SampleRecord>& records, std::size_t c, const CsvSettings& settings) {
  for (const SampleRecord& record : records) {
    if (c >= record.fields.size()) continue;
    const std::string_view text = trim_blanks(record.fields[c]);
    if (!is_missing_text(text, settings.missing_values)) return looks_like_date(text);
  }
  return false;
}

/// Whether column c holds times of day, and the one before it days without a time: one date in two columns.
bool holds_times_of_dates(const std::vector<SampleRecord>& records, std::size_t c, const CsvSettings& settings) {
  for (const SampleRecord& record : records) {
    if (c >= record.fields.size()) continue;
    const std::string_view date = trim_blanks(record.fields[c - 1]), time = trim_blanks(record.fields[c]);
    if (is_missing_text(date, settings.missing_values) || is_missing_text(time, settings.missing_values)) continue;
    double seconds = 0;
    return date.find(':') == std::string_view::npos && parse_time_of_day(time, seconds) == nullptr;
  }
  return false;
}

void choose_uses(const std::string& source, const CsvSettings& settings, const std::vector<SampleRecord>& records,
                 std::vector<CsvColumn>& columns) {
  require_known(source, columns, settings.columns, "data.csv.columns");
  require_known(source, columns, settings.skip_columns, "data.csv.skip_columns");
  require_known(source, columns, settings.date_columns, "data.csv.date_columns");
  require_known(source, columns, settings.text_columns, "data.csv.text_columns");
  const auto names = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : settings.skip_columns)
    COHORT_THROW_UNLESS(!names(settings.columns, name), "data.csv.columns and data.csv.skip_columns both name '{}'",
                        name);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string& name = columns[c].name;
    const bool asked_for =
        names(settings.columns, name) || names(settings.text_columns, name) || names(settings.date_columns, name);
    bool empty = true;
    columns[c].no_value = columns[c].no_number = true;
    for (const SampleRecord& record : records) {
      if (c >= record.fields.size()) continue;
      const std::string_view text = trim_blanks(record.fields[c]);
      empty = empty && text.empty();
      const bool missing = is_missing_text(text, settings.missing_values);
      double ignored = 0;
      columns[c].no_value = columns[c].no_value && missing;
      columns[c].no_number = columns[c].no_number && (missing || !parse_field(text, settings, ignored));
    }
    if ((!settings.columns.empty() && !names(settings.columns, name)) || names(settings.skip_columns, name))
      columns[c].use = FieldUse::kSkip;
    else if (!columns[c].is_named && empty && !asked_for)
      columns[c].use = FieldUse::kEmpty;
    else if (names(settings.text_columns, name))
      columns[c].use = FieldUse::kText;
    else if (names(settings.date_columns, name) || (settings.detect_dates && holds_dates(records, c, settings)))
      columns[c].use = FieldUse::kDate;
    else if (settings.columns.empty() && settings.detect_dates && c > 0 && columns[c - 1].use == FieldUse::kDate &&
             holds_times_of_dates(records, c, settings))
      columns[c].use = FieldUse::kTime;
  }
}

void refuse_duplicates(const std::string& source, const CsvLayout& layout) {
  for (std::size_t i = 0; i < layout.columns.size(); ++i) {
    const auto is_left_out = [&](std::size_t c) {
      return layout.columns[c].use == FieldUse::kSkip || layout.columns[c].use == FieldUse::kEmpty;
    };
    if (is_left_out(i)) continue;
    for (std::size_t j = i + 1; j < layout.columns.size(); ++j)
      COHORT_THROW_UNLESS(layout.columns[j].name != layout.columns[i].name || is_left_out(j),
                          "{}: the header names the column '{}' twice, as field {} and field {}; rename one{}", source,
                          layout.columns[i].name, i + 1, j + 1,
                          layout.columns[0].name.starts_with("#")
                              ? "; or are lines that begin with # comments? Then set data.csv.comment=#"
                              : "; or, where the names stand in a line below, leave this one out with "
                                "data.csv.skip_lines=1");
  }
}

/// JSON and reports take names in UTF-8 only. `end`: behind the header, which begins in line `line`.
void check_names_utf8(const std::string& source, const Sample& sample, std::int64_t end, std::int64_t line) {
  const std::string_view front = std::string_view(sample.text).substr(0, static_cast<std::size_t>(end));
  const std::size_t at = find_not_utf8(front);
  COHORT_THROW_UNLESS(at == std::string_view::npos,
                      "{}: the names of the columns are not UTF-8 at byte {} (line {}, {}); {}", source, at, line,
                      at == std::string_view::npos ? "" : quoted_bytes(front.substr(at, 1)), utf8_remedy(source));
}

/// What the settings say of a layout.
CsvLayout asked_layout(const CsvSettings& settings) {
  CsvLayout layout;
  COHORT_THROW_UNLESS(settings.decimal == "." || settings.decimal == ",", "data.csv.decimal={} is neither . nor ,",
                      quoted_bytes(settings.decimal));
  const bool known =
      settings.thousands == "none" || std::ranges::find(kThousands, settings.thousands) != kThousands.end();
  COHORT_THROW_UNLESS(known, "data.csv.thousands={} is neither none, ., ,, space nor apostrophe",
                      quoted_bytes(settings.thousands));
  COHORT_THROW_UNLESS(settings.thousands != settings.decimal, "data.csv.thousands and data.csv.decimal are both {}",
                      quoted_bytes(settings.decimal));
  COHORT_THROW_UNLESS(settings.comment.size() <= 1, "data.csv.comment={} is longer than one character",
                      quoted_bytes(settings.comment));
  layout.decimal = settings.decimal.front();
  layout.comment = settings.comment.empty() ? '\0' : settings.comment.front();
  layout.date_order = parse_date_order(settings.date_order);
  layout.skip_lines = parse_lines(settings.skip_lines);
  return layout;
}

}  // namespace

std::string column_setting(std::string_view setting, const std::vector<std::string>& names) {
  const auto is_plain = [](const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
             c == '-' || c == '/' || c == '%';
    });
  };
  std::string list;
  if (std::all_of(names.begin(), names.end(), is_plain)) {
    for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
    return format("{}={}", setting, list);
  }
  // A JSON list in the shell's single quotes.
  for (const std::string& name : names) {
    list += list.empty() ? "[\"" : ",\"";
    for (const char c : name) {
      if (c == '"' || c == '\\') list += '\\';
      list += c == '\'' ? "'\\''" : std::string(1, c);
    }
    list += '"';
  }
  return format("'{}={}]'", setting, list);
}

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_missing_text(std::string_view text, const std::vector<std::string>& more) {
  using namespace std::string_view_literals;
  constexpr std::array kWords = {""sv,    "NA"sv,   "N/A"sv,  "n/a"sv,  "#N/A"sv, "<NA>"sv, "NaN"sv,
                                 "nan"sv, "-NaN"sv, "-nan"sv, "NULL"sv, "null"sv, "None"sv};
  if (std::find(kWords.begin(), kWords.end(), text) != kWords.end()) return true;
  return std::find(more.begin(), more.end(), text) != more.end();
}

CsvLayout find_layout(const CsvSource& source, const CsvSettings& settings) {
  CsvLayout layout = asked_layout(settings);
  const char asked_separator = parse_separator(settings);

  for (std::int64_t length = kFirstSample;; length *= 4) {
    COHORT_THROW_UNLESS(length <= kLargestSample,
                        "{}: the first record does not end within {}; is a quote that opens in it never closed?",
                        source.name(), format_bytes(static_cast<double>(length) / 4));
    Sample sample;
    sample.whole = length >= source.size();
    sample.text.resize(static_cast<std::size_t>(std::min(length, source.size())));
    source.read(0, static_cast<std::int64_t>(sample.text.size()), sample.text.data());
    refuse_what_is_no_text(source.name(), sample);

    std::int64_t begin = starts_with(sample.text, "\xef\xbb\xbf") ? 3 : 0;
    std::int64_t line = 1;
    layout.separator = asked_separator;
    // The line with which spreadsheets declare their separator.
    const std::string_view front = std::string_view(sample.text).substr(static_cast<std::size_t>(begin));
    if (front.size() > 5 && front.substr(0, 4) == "sep=" && (front[5] == '\n' || front.substr(5, 2) == "\r\n")) {
      if (layout.separator == '\0') layout.separator = front[4];
      begin += front[5] == '\n' ? 6 : 7;
      line = 2;
    }
    if (layout.separator == '\0') layout.separator = find_separator(sample, settings, layout, begin, line);
    layout.names_line = settings.header == "no" ? 0 : find_names(sample, settings, layout, begin, line);

    SampleReader reader(sample, layout.separator, layout.comment, layout.skip_lines, begin, line);
    std::optional<SampleRecord> first = reader.next();
    if (!first) {
      COHORT_THROW_UNLESS(reader.open_quote_line() == 0 || !sample.whole,
                          "{}: the quote that opens in line {} is never closed", source.name(),
                          reader.open_quote_line());
      COHORT_THROW_UNLESS(!sample.whole, "{} holds no table: it has only blank lines{}", source.name(),
                          layout.comment == '\0' ? "" : " and comments");
      continue;
    }
    layout.has_header = is_header(first->fields, settings);
    layout.columns.clear();
    for (std::size_t c = 0; c < first->fields.size(); ++c) {
      const std::string name(layout.has_header ? trim_blanks(first->fields[c]) : std::string_view());
      layout.columns.push_back(
          {.name = name.empty() ? format("column_{}", c) : name, .is_named = layout.has_header && !name.empty()});
    }
    layout.header_fields = layout.columns.size();
    if (layout.has_header) check_names_utf8(source.name(), sample, reader.position(), first->line);
    layout.data_begin = layout.has_header ? reader.position() : first->begin;
    layout.data_line = layout.has_header ? reader.line() : first->line;
    std::vector<SampleRecord> records;
    if (!layout.has_header) records.push_back(*first);
    while (static_cast<int>(records.size()) < kSampleRecords) {
      std::optional<SampleRecord> record = reader.next();
      if (!record) break;
      records.push_back(std::move(*record));
    }
    if (records.empty()) {
      COHORT_THROW_UNLESS(reader.open_quote_line() == 0 || !sample.whole,
                          "{}: the quote that opens in line {} is never closed", source.name(),
                          reader.open_quote_line());
      COHORT_THROW_UNLESS(!sample.whole, "{} has a header ({} columns: {}) but no rows", source.name(),
                          layout.columns.size(), names_of(layout.columns));
      continue;
    }
    // Every record ends with a separator, the header does not.
    const std::size_t named = layout.columns.size();
    const auto ends_empty = [&](const SampleRecord& record) {
      return record.fields.size() == named + 1 && trim_blanks(record.fields.back()).empty();
    };
    if (layout.has_header && std::all_of(records.begin(), records.end(), ends_empty))
      layout.columns.push_back({.name = format("column_{}", named)});
    layout.sampled = records.size();
    choose_uses(source.name(), settings, records, layout.columns);
    refuse_duplicates(source.name(), layout);
    return layout;
  }
}

}  // namespace cohort::tables
