#include "tables/csv_records.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/utf8.h"
#include "tables/csv_field.h"
#include "tables/number_text.h"

namespace cohort::tables {
namespace {

static_assert(kChunkPadding > kNumberPadding);

/// A field that the fast path did not take, cut out of its record.
struct FieldText {
  std::string_view content;  // without the quotes around it
  const char* next = nullptr;
  bool ends_record = false;
  std::int64_t lines = 0;  // line feeds inside the quotes
  bool junk_after_quote = false;
  bool unclosed = false;
};

class ChunkParser {
 public:
  ChunkParser(const CsvLayout& layout, const CsvSettings& settings, MissingPolicy policy,
              const std::vector<ColumnTarget>& targets, std::int64_t first_row)
      : layout_(layout),
        settings_(settings),
        policy_(policy),
        targets_(targets),
        separator_(layout.separator),
        decimal_(layout.decimal),
        columns_(layout.columns.size()),
        row_(first_row) {
    for (const std::string& word : settings.missing_values) {
      double number = 0;
      if (parse_number(std::string_view(word), decimal_, number)) missing_numbers_.push_back(number);
    }
    result_.missing.assign(columns_, 0);
    result_.dropped.assign(columns_, 0);
    result_.texts.resize(columns_);
  }

  ChunkResult parse(const CsvChunk& chunk) {
    end_ = chunk.end;
    std::memset(chunk.end, '\n', kChunkPadding);  // every field ends there
    line_ = chunk.first_line;
    const char* p = chunk.begin;
    while (p < end_) {
      if (const char* next = skip_line(p)) {
        p = next;
        continue;
      }
      record_ = p;
      record_line_ = line_;
      drop_ = false;
      p = parse_record(p);
      if (p == nullptr) break;
      ++line_;
      finish_record();
    }
    return std::move(result_);
  }

 private:
  /// Behind the line when it is blank or a comment, else nullptr.
  const char* skip_line(const char* p) {
    if (!layout_.skip_lines.empty() && holds_line(layout_.skip_lines, line_)) return leave_out(p);
    if (*p > ' ' && *p != layout_.comment) return nullptr;
    if (layout_.comment != '\0' && *p == layout_.comment) {
      p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ + 1 - p)));
    } else {
      while ((*p == ' ' || *p == '\t') && *p != separator_) ++p;
      if (*p == '\r' && p[1] == '\n') ++p;
      if (*p != '\n') return nullptr;
    }
    ++line_;
    return p + 1;
  }

  /// Behind a line that the settings name, which is counted where it could be read as a row.
  const char* leave_out(const char* p) {
    record_ = p;
    if (field_count() == columns_ && is_row() && result_.skipped_rows++ == 0) result_.first_skipped_row = line_;
    ++line_;
    return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ + 1 - p))) + 1;
  }

  /// Whether each date and each number of the present record can be read.
  bool is_row() {
    const char* p = record_;
    for (const CsvColumn& column : layout_.columns) {
      const FieldText field = cut(p);
      const std::string_view text = trim_blanks(field.content);
      double ignored = 0;
      if (column.use == FieldUse::kDate && parse_date_field(text, layout_.date_order, settings_, ignored) != nullptr)
        return false;
      if (column.use == FieldUse::kNumber && !is_missing_text(text, settings_.missing_values) &&
          !parse_field(text, settings_, ignored))
        return false;
      p = field.next;
    }
    return true;
  }

  /// Behind the record, or nullptr after a fault.
  const char* parse_record(const char* p) {
    for (std::size_t c = 0; c < columns_; ++c) {
      const bool last = c + 1 == columns_;
      if (layout_.columns[c].use == FieldUse::kNumber) {
        double value;
        const char* q = parse_number_(p, decimal_, value);
        if (q != nullptr) {
          if (*q == '\r') q += q[1] == '\n';
          if (*q == (last ? '\n' : separator_) && (missing_numbers_.empty() || !is_missing_number(value)) &&
              store(c, value)) {
            p = q + 1;
            continue;
          }
        }
      }
      const FieldText field = cut(p);
      if (field.unclosed) {
        result_.fault = format("the quote that opens in line {} is never closed", line_);
        return nullptr;
      }
      if (field.junk_after_quote) return fault(c, "there is text after the closing quote of a field");
      if (field.ends_record != last) return ragged_fault();
      if (!take(c, field.content)) return nullptr;
      line_ += field.lines;
      p = field.next;
    }
    return p;
  }

  void finish_record() {
    if (drop_) {
      if (result_.dropped_rows++ == 0) result_.first_dropped_line = record_line_;
      for (TextArray& texts : result_.texts) {
        if (static_cast<std::int64_t>(texts.size()) <= result_.rows) continue;
        texts.ends.pop_back();
        texts.bytes.resize(texts.ends.empty() ? 0 : texts.ends.back());
      }
      return;
    }
    if (result_.rows++ == 0) result_.first_row_line = record_line_;
    ++row_;
  }

  bool is_missing_number(double value) const {
    for (const double number : missing_numbers_)
      if (value == number) return true;
    return false;
  }

  /// False when the value does not fit.
  bool store(std::size_t c, double value) {
    const ColumnTarget& target = targets_[c];
    if (target.float32 == nullptr) {
      target.float64[row_] = value;
      return true;
    }
    const auto rounded = static_cast<float>(value);
    if (std::isinf(rounded) && !std::isinf(value)) return false;
    target.float32[row_] = rounded;
    return true;
  }

  FieldText cut(const char* p) {
    FieldText field;
    if (*p != '"') {
      const char* q = p;
      while (*q != separator_ && *q != '\n') ++q;
      field.ends_record = *q == '\n';
      field.next = q + 1;
      if (field.ends_record && q > p && q[-1] == '\r') --q;
      field.content = std::string_view(p, static_cast<std::size_t>(q - p));
      return field;
    }
    const char* const open = p++;
    const char* begin = p;
    bool doubled = false;
    unquoted_.clear();
    for (;;) {
      const char* const quote = find_near(p, end_, '"');
      if (quote == end_) {
        field.unclosed = true;
        field.next = end_;
        return field;
      }
      if (quote + 1 < end_ && quote[1] == '"') {
        unquoted_.append(begin, quote + 1);
        begin = p = quote + 2;
        doubled = true;
        continue;
      }
      field.content = std::string_view(begin, static_cast<std::size_t>(quote - begin));
      if (doubled) {
        unquoted_.append(field.content);
        field.content = unquoted_;
      }
      if (find_near(open, quote, '\n') != quote) field.lines = count_lines(open, quote);
      p = quote + 1;
      break;
    }
    if (*p == '\r' && p[1] == '\n') ++p;
    field.ends_record = *p == '\n';
    field.junk_after_quote = !field.ends_record && *p != separator_;
    field.next = p + 1;
    return field;
  }

  /// Stores a field; false after a fault.
  bool take(std::size_t c, std::string_view content) {
    const FieldUse use = layout_.columns[c].use;
    if (use == FieldUse::kSkip) return true;
    if (use == FieldUse::kText) {
      result_.texts[c].add(content);
      return true;
    }
    const std::string_view text = trim_blanks(content);
    if (use == FieldUse::kEmpty) {
      if (text.empty()) return true;
      fault(c, format("this column has no name and is empty in the first {} rows, so it is left out, but here it holds "
                      "{}: name it in the header, or keep it with {}",
                      layout_.sampled, quoted_bytes(content), of_column("text_columns", c)));
      return false;
    }
    if (is_missing_text(text, settings_.missing_values)) return take_missing(c, text);
    if (use == FieldUse::kDate) {
      double seconds = 0;
      if (const char* wrong = parse_date_field(text, layout_.date_order, settings_, seconds)) {
        fault(c, format("{} is no date of the order {}: {}{}; if the column holds no dates, keep it as texts with {}",
                        quoted_bytes(content), settings_.date_order, wrong, if_no_row(/*date=*/true),
                        longer_list("data.csv.text_columns", settings_.text_columns, {layout_.columns[c].name})));
        return false;
      }
      targets_[c].float64[row_] = seconds;
      return true;
    }
    if (use == FieldUse::kTime) {
      double seconds = 0;
      if (const char* wrong = parse_time_of_day(text, seconds)) {
        fault(c,
              format("{} is no time of day, as the column's first value is: {}; keep the column as texts with {}, or "
                     "leave it out with {}",
                     quoted_bytes(content), wrong, of_column("text_columns", c), of_column("skip_columns", c)));
        return false;
      }
      targets_[c - 1].float64[row_] += seconds;  // of the same row, which has been read
      return true;
    }
    double value = 0;
    if (!parse_field(text, settings_, value)) {
      std::string message = format("{} is no number", quoted_bytes(content));
      if (const std::string meant = what_may_be_meant(text, settings_); !meant.empty())
        message += meant;
      else
        message += format("; keep the column as texts with {}, leave it out with {}, or{}",
                          of_column("text_columns", c), of_column("skip_columns", c), as_missing(text));
      message += if_no_row(/*date=*/false);
      if (settings_.comment.empty() && layout_.columns[0].name.starts_with("#"))
        message += "; or are lines that begin with # comments? Then set data.csv.comment=#";
      // The cause of a wrong type is often a missing or additional separator: say that instead.
      if (field_count() == columns_)
        fault(c, message);
      else
        ragged_fault();
      return false;
    }
    if (is_missing_number(value)) return take_missing(c, text);
    if (!store(c, value)) {
      fault(c, format("{} is too large for float32; set data.csv.precision=float64", quoted_bytes(content)));
      return false;
    }
    return true;
  }

  bool take_missing(std::size_t c, std::string_view text) {
    const FieldUse use = layout_.columns[c].use;
    const bool date = use == FieldUse::kDate || use == FieldUse::kTime;
    if (policy_ == MissingPolicy::kDropRow) {
      drop_ = true;
      ++result_.dropped[c];
      return true;
    }
    if (policy_ == MissingPolicy::kError || date) {
      const std::string what =
          text.empty() ? "the value is missing" : format("the value is missing ({})", quoted_bytes(text));
      if (layout_.columns[c].no_value)
        fault(c, format("{}, as in each of the first {} rows; leave the column out with {}", what, layout_.sampled,
                        of_column("skip_columns", c)));
      else if (date)
        fault(c, what + "; a date cannot be filled: leave such rows out with data.csv.missing=drop_row" +
                     if_no_row(/*date=*/true));
      else
        fault(c, format("{}; leave such rows out with data.csv.missing=drop_row, take the value above with "
                        "data.csv.missing=forward_fill, or leave the column out with {}{}",
                        what, of_column("skip_columns", c), is_below_title() ? about_title() : ""));
      return false;
    }
    ++result_.missing[c];
    return store(c, std::numeric_limits<double>::quiet_NaN());
  }

  /// "data.csv.skip_columns=a" of column c, and of all others that hold no numbers either, besides what is set by now.
  std::string of_column(std::string_view setting, std::size_t c) const {
    std::vector<std::string> names{layout_.columns[c].name};
    for (const CsvColumn& column : layout_.columns)
      if (layout_.columns[c].no_number && column.no_number && column.use == FieldUse::kNumber)
        names.push_back(column.name);
    const auto& now = setting == "text_columns" ? settings_.text_columns : settings_.skip_columns;
    return longer_list(format("data.csv.{}", setting), now, names);
  }

  /// How to say that a text stands for a missing value.
  std::string as_missing(std::string_view text) const {
    constexpr std::size_t kLongest = 40;  // bytes: a word, not a sentence
    const bool is_word = text.size() <= kLongest && find_not_utf8(text) == std::string_view::npos &&
                         std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
    if (!is_word) return " add the text to data.csv.missing_values";
    return ", if this stands for a missing value, say so with " +
           longer_list("data.csv.missing_values", settings_.missing_values, {std::string(text)});
  }

  /// Behind a fault: how to leave the line out, where it seems to be no row: a title, units, a sum, the names once more.
  /// date: its date is at fault.
  std::string if_no_row(bool date) {
    if (is_below_title()) return about_title();
    if (columns_ < 2) return "";
    bool numbers = false;
    const char* p = record_;
    for (std::size_t c = 0; c < columns_ && !date; ++c) {
      const FieldText field = cut(p);
      double ignored = 0;
      numbers = numbers || (layout_.columns[c].use == FieldUse::kNumber && !layout_.columns[c].no_number &&
                            parse_field(trim_blanks(field.content), settings_, ignored));
      if (field.ends_record || field.unclosed || field.junk_after_quote) break;
      p = field.next;
    }
    return numbers ? "" : format("; if the line is no row of the table, leave it out with {}", without_line());
  }

  std::string without_line() const {
    return longer_list("data.csv.skip_lines", settings_.skip_lines, {format("{}", record_line_)});
  }

  bool is_below_title() const { return record_line_ <= layout_.names_line; }

  std::string about_title() const {
    const std::int64_t above = layout_.names_line - 1;
    return format("; the names of the columns seem to stand in line {}: leave out what is above it with {}",
                  layout_.names_line,
                  longer_list("data.csv.skip_lines", settings_.skip_lines, {above == 1 ? "1" : format("1-{}", above)}));
  }

  /// Fields of the present record.
  std::size_t field_count() {
    const char* p = record_;
    for (std::size_t count = 1;; ++count) {
      const FieldText field = cut(p);
      if (field.ends_record || field.junk_after_quote || field.unclosed) return count;
      p = field.next;
    }
  }

  const char* ragged_fault() {
    const std::size_t count = field_count();
    result_.fault =
        format("line {} has {} field{}, but {} {} ({} of separator {}){}", record_line_, count, count == 1 ? "" : "s",
               layout_.header_fields, layout_.has_header ? "columns stand in the header" : "are in the first line",
               count < columns_ ? "too few" : "too many", quoted_bytes(std::string_view(&separator_, 1)),
               is_below_title() ? about_title()
                                : format("; if it is no row of the table, leave it out with {}", without_line()));
    return nullptr;
  }

  const char* fault(std::size_t c, const std::string& what) {
    result_.fault = format("line {}, column '{}': {}", line_, layout_.columns[c].name, what);
    return nullptr;
  }

  const CsvLayout& layout_;
  const CsvSettings& settings_;
  const MissingPolicy policy_;
  const std::vector<ColumnTarget>& targets_;
  const char separator_, decimal_;
  const NumberParser parse_number_ = fastest_number_parser();
  const std::size_t columns_;
  std::int64_t row_;
  const char* end_ = nullptr;
  const char* record_ = nullptr;
  std::int64_t line_ = 1, record_line_ = 1;
  bool drop_ = false;
  std::string unquoted_;
  std::vector<double> missing_numbers_;  // words for a missing value that are numbers, such as -9999
  ChunkResult result_;
};

}  // namespace

MissingPolicy parse_missing_policy(const std::string& text) {
  if (text == "error") return MissingPolicy::kError;
  if (text == "drop_row") return MissingPolicy::kDropRow;
  if (text == "forward_fill") return MissingPolicy::kForwardFill;
  if (text == "keep") return MissingPolicy::kKeep;
  throw Error(format("data.csv.missing={}: write error, drop_row, forward_fill or keep", text));
}

ChunkResult parse_chunk(const CsvLayout& layout, const CsvSettings& settings, MissingPolicy policy,
                        const CsvChunk& chunk, const std::vector<ColumnTarget>& targets, std::int64_t first_row) {
  return ChunkParser(layout, settings, policy, targets, first_row).parse(chunk);
}

}  // namespace cohort::tables
