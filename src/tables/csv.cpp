#include "tables/csv.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/sentinels.h"
#include "tables/csv_chunks.h"
#include "tables/csv_field.h"
#include "tables/csv_layout.h"
#include "tables/csv_records.h"
#include "tables/csv_source.h"

namespace cohort::tables {
namespace {

/// Buffers that the threads of one reading pass on to each other.
class BufferPool {
 public:
  ChunkBuffer take() {
    std::lock_guard lock(mutex_);
    if (buffers_.empty()) return {};
    ChunkBuffer buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
  }
  void give_back(ChunkBuffer buffer) {
    std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<ChunkBuffer> buffers_;
};

void check_choices(const CsvSettings& settings) {
  COHORT_THROW_UNLESS(settings.header == "auto" || settings.header == "yes" || settings.header == "no",
                      "data.csv.header={}: write auto, yes or no", settings.header);
  COHORT_THROW_UNLESS(settings.precision == "float64" || settings.precision == "float32",
                      "data.csv.precision={}: write float64 or float32", settings.precision);
  COHORT_THROW_UNLESS(settings.threads >= 0,
                      "data.csv.threads={} must not be negative; 0 takes as many as there are cores", settings.threads);
  COHORT_THROW_UNLESS(settings.chunk_bytes > 0, "chunk_bytes is {}, not above 0", settings.chunk_bytes);
}

/// The columns of numbers and dates while they are filled.
class ColumnStore {
 public:
  ColumnStore(const CsvLayout& layout, const CsvSettings& settings, std::int64_t rows)
      : rows_(rows), targets_(layout.columns.size()), float64_(layout.columns.size()), float32_(layout.columns.size()) {
    for (std::size_t c = 0; c < layout.columns.size(); ++c) {
      const FieldUse use = layout.columns[c].use;
      if (use != FieldUse::kNumber && use != FieldUse::kDate) continue;
      if (use == FieldUse::kNumber && settings.precision == "float32") {
        float32_[c] = AlignedArray<float>(static_cast<std::size_t>(rows));
        targets_[c].float32 = float32_[c].data();
      } else {
        float64_[c] = AlignedArray<double>(static_cast<std::size_t>(rows));
        targets_[c].float64 = float64_[c].data();
      }
    }
  }
  std::int64_t rows() const { return rows_; }
  const std::vector<ColumnTarget>& targets() const { return targets_; }

  /// Moves `count` rows here from another store, or within this one.
  void move_rows(std::int64_t to, const ColumnStore& source, std::int64_t from, std::int64_t count) {
    if (&source == this && to == from) return;
    for (std::size_t c = 0; c < targets_.size(); ++c) {
      if (targets_[c].float64 != nullptr)
        std::memmove(targets_[c].float64 + to, source.targets_[c].float64 + from,
                     static_cast<std::size_t>(count) * sizeof(double));
      if (targets_[c].float32 != nullptr)
        std::memmove(targets_[c].float32 + to, source.targets_[c].float32 + from,
                     static_cast<std::size_t>(count) * sizeof(float));
    }
  }

  void shrink(std::int64_t rows) {
    for (auto& values : float64_) values.shrink(std::min(values.size(), static_cast<std::size_t>(rows)));
    for (auto& values : float32_) values.shrink(std::min(values.size(), static_cast<std::size_t>(rows)));
  }

  /// Replaces each NaN by the value above it; false when the first row has one.
  bool fill_forward(std::size_t c) { return targets_[c].float32 != nullptr ? fill(float32_[c]) : fill(float64_[c]); }

  Column take(std::size_t c, const CsvColumn& column) {
    if (targets_[c].float32 != nullptr) return Column(column.name, std::move(float32_[c]));
    return Column(column.name, std::move(float64_[c]),
                  column.use == FieldUse::kDate ? ColumnKind::kDate : ColumnKind::kNumber);
  }

 private:
  template <class T>
  static bool fill(AlignedArray<T>& values) {
    if (std::isnan(values[0])) return false;
    for (std::size_t i = 1; i < values.size(); ++i)
      if (std::isnan(values[i])) values[i] = values[i - 1];
    return true;
  }

  std::int64_t rows_;
  std::vector<ColumnTarget> targets_;
  std::vector<AlignedArray<double>> float64_;
  std::vector<AlignedArray<float>> float32_;
};

/// A piece after parsing: what it held and where its rows lie.
struct ParsedChunk {
  ChunkResult result;
  std::int64_t first_row = 0;
  std::unique_ptr<ColumnStore> store;  // set where the estimate of all rows was too low for this piece
};

TextArray join_texts(std::vector<ParsedChunk>& chunks, std::size_t c) {
  TextArray all;
  std::size_t bytes = 0, count = 0;
  for (const ParsedChunk& chunk : chunks) {
    bytes += chunk.result.texts[c].bytes.size();
    count += chunk.result.texts[c].size();
  }
  all.bytes.reserve(bytes);
  all.ends.reserve(count);
  for (ParsedChunk& chunk : chunks) {
    const TextArray texts = std::move(chunk.result.texts[c]);
    const std::uint64_t base = all.bytes.size();
    all.bytes += texts.bytes;
    for (const std::uint64_t end : texts.ends) all.ends.push_back(base + end);
  }
  return all;
}

/// Whether a column is 0, 1, 2, ... or 1, 2, 3, ... (without a name: from any number), but for rows that were dropped.
bool counts_rows(const Column& column, bool is_named, std::int64_t dropped_rows) {
  constexpr std::int64_t kFewest = 10;  // rows: fewer may count by chance
  if (column.kind() != ColumnKind::kNumber || column.size() < kFewest) return false;
  const double first = column.at(0);
  if (first != std::floor(first) || (is_named && first != 0 && first != 1 && dropped_rows == 0)) return false;
  const double span = static_cast<double>(column.size() - 1 + dropped_rows);
  double before = first - 1;
  for (std::int64_t row = 0; row < column.size(); ++row) {
    const double value = column.at(row);
    if (!(value > before) || value != std::floor(value) || value - first > span) return false;
    before = value;
  }
  return true;
}

/// A row number that a data frame wrote would be learnt from, or even be predicted.
void warn_of_counters(const Table& table, const CsvLayout& layout, const CsvSettings& settings,
                      const CsvReport& report) {
  for (const CsvColumn& column : layout.columns) {
    const Column* values = table.find(column.name);
    if (values == nullptr || column.use != FieldUse::kNumber ||
        !counts_rows(*values, column.is_named, report.dropped_rows))
      continue;
    log::warning(
        "{}: column '{}'{} only counts the rows, from {} to {}; if it is a row number and no measurement, leave it out "
        "with {}",
        table.name(), column.name, column.is_named ? "" : ", which has no name in the file,", values->at(0),
        values->at(values->size() - 1), longer_list("data.csv.skip_columns", settings.skip_columns, {column.name}));
  }
}

/// A number that stands for a missing value would be learnt from, and would set its column's scale.
void warn_of_sentinels(const Table& table, const CsvSettings& settings, MissingPolicy policy) {
  struct Place {
    std::string column;
    data::Sentinel sentinel;
  };
  std::map<std::string, std::vector<Place>> places;  // by the number as the file may have it
  for (const Column& column : table.columns()) {
    if (column.kind() != ColumnKind::kNumber) continue;
    for (const data::Sentinel& sentinel :
         column.is_float32() ? data::find_sentinels(column.float32()) : data::find_sentinels(column.float64()))
      places[data::sentinel_text(sentinel.value, column.is_float32())].push_back({column.name(), sentinel});
  }
  const bool chosen = policy == MissingPolicy::kDropRow || policy == MissingPolicy::kForwardFill;
  for (const auto& [number, columns] : places) {
    const auto& [column, sentinel] = columns.front();
    std::string others;
    constexpr std::size_t kMost = 5;
    for (std::size_t c = 1; c < columns.size() && c <= kMost; ++c)
      others += format("{}'{}' ({})", c == 1 ? "; likewise in " : ", ", columns[c].column, columns[c].sentinel.count);
    if (columns.size() > kMost + 1) others += format(" and {} more columns", columns.size() - kMost - 1);
    log::warning(
        "{}: column '{}' is {} in {} of {} rows, and all others are from {:g} to {:g}{}; where that stands for a "
        "missing "
        "value, say so with {}{}",
        table.name(), column, number, sentinel.count, table.rows(), sentinel.low, sentinel.high, others,
        longer_list("data.csv.missing_values", settings.missing_values, {number}),
        chosen ? "" : " and data.csv.missing=forward_fill (the value above) or drop_row");
  }
}

/// Cuts the file and parses its pieces on threads; rows that `columns` has room for go there, others into a store of the piece.
/// Throws the file's first fault.
std::vector<ParsedChunk> parse_chunks(const CsvSource& source, const CsvSettings& settings, const CsvLayout& layout,
                                      MissingPolicy policy, const ColumnStore& columns) {
  const int threads = settings.threads > 0 ? settings.threads : available_cores();
  CsvCutter cutter(source, layout, settings.chunk_bytes);
  std::vector<ParsedChunk> chunks(static_cast<std::size_t>(cutter.count()));
  BufferPool pool;
  std::atomic<std::int64_t> first_fault{cutter.count()};
  parallel_for(cutter.count(), threads, [&](std::int64_t index) {
    ParsedChunk& parsed = chunks[static_cast<std::size_t>(index)];
    ChunkBuffer buffer = pool.take();
    try {
      CsvChunk chunk;
      if (!cutter.take(index, buffer, chunk)) return;
      const ColumnStore* store = &columns;
      parsed.first_row = chunk.first_row;
      if (chunk.first_row + chunk.lines > columns.rows()) {
        parsed.store = std::make_unique<ColumnStore>(layout, settings, chunk.lines);
        parsed.first_row = 0;
        store = parsed.store.get();
      }
      parsed.result = parse_chunk(layout, settings, policy, chunk, store->targets(), parsed.first_row);
      if (!parsed.result.fault.empty()) parsed.result.fault = format("{}: {}", source.name(), parsed.result.fault);
    } catch (const Error& error) {
      parsed.result.fault = error.what();
    }
    pool.give_back(std::move(buffer));
    if (parsed.result.fault.empty()) return;
    // Nothing behind a fault is read; what stands before it still is, so that the first fault of the file is found.
    cutter.give_up(index + 1);
    std::int64_t seen = first_fault.load();
    while (index < seen && !first_fault.compare_exchange_weak(seen, index)) {
    }
  });
  if (first_fault < cutter.count()) throw Error(chunks[static_cast<std::size_t>(first_fault.load())].result.fault);
  return chunks;
}

void say_what_was_found(const Table& table, const CsvLayout& layout, const CsvSettings& settings, MissingPolicy policy,
                        const CsvReport& report) {
  for (std::size_t c = 0; c < layout.columns.size(); ++c)
    if (layout.columns[c].use == FieldUse::kEmpty)
      log::info("{}: field {} has no name and is empty in every row; it is left out", table.name(), c + 1);
    else if (layout.columns[c].use == FieldUse::kTime)
      log::info("{}: the columns '{}' and '{}' are read as one date", table.name(), layout.columns[c - 1].name,
                layout.columns[c].name);
  warn_of_counters(table, layout, settings, report);
  warn_of_sentinels(table, settings, policy);
  if (!layout.has_header)
    log::info("{}: no header; the columns are called column_0 to column_{}", table.name(), layout.columns.size() - 1);
  if (report.skipped_rows > 0)
    log::warning(
        "{}: data.csv.skip_lines leaves out {} line(s) that look like rows, the first one line {}; "
        "data.csv.skip_lines=[] "
        "reads them",
        table.name(), report.skipped_rows, report.first_skipped_row);
  if (report.dropped_rows > 0)
    log::warning("{}: dropped {} of {} rows with missing values, the first one in line {}", table.name(),
                 report.dropped_rows, report.rows + report.dropped_rows, report.first_dropped_line);
  if (report.missing_values > 0)
    log::warning("{}: {} missing values {}", table.name(), report.missing_values,
                 policy == MissingPolicy::kForwardFill ? "replaced by the value above" : "kept as NaN");
}

/// Throws Error where no row is left. dropped: rows, among others for this column's missing value.
void refuse_no_rows(const std::string& source, const CsvLayout& layout, const CsvSettings& settings,
                    const CsvReport& report, const std::vector<std::int64_t>& dropped) {
  if (report.rows > 0) return;
  std::vector<std::string> empty;
  for (std::size_t c = 0; c < dropped.size(); ++c)
    if (dropped[c] == report.dropped_rows) empty.push_back(layout.columns[c].name);
  throw Error(format(
      "{}: all {} rows hold missing values; none is left (data.csv.missing=drop_row); {}", source, report.dropped_rows,
      empty.empty() ? "leave columns out with data.csv.skip_columns, or set data.csv.missing=forward_fill"
                    : "leave out what has no value in any row with " +
                          longer_list("data.csv.skip_columns", settings.skip_columns, empty)));
}

Table read_source(const CsvSource& source, const CsvSettings& settings, CsvReport* report_to) {
  check_choices(settings);
  const MissingPolicy policy = parse_missing_policy(settings.missing);
  const CsvLayout layout = find_layout(source, settings);
  ColumnStore columns(layout, settings, estimate_rows(source, layout));
  std::vector<ParsedChunk> chunks = parse_chunks(source, settings, layout, policy, columns);

  CsvReport report;
  report.bytes = source.size();
  report.separator = layout.separator;
  report.has_header = layout.has_header;
  std::int64_t first_row_line = 0;
  std::vector<std::int64_t> missing(layout.columns.size(), 0), dropped(layout.columns.size(), 0);
  bool too_low = false;
  for (const ParsedChunk& chunk : chunks) {
    const ChunkResult& result = chunk.result;
    too_low = too_low || chunk.store != nullptr;
    report.rows += result.rows;
    report.dropped_rows += result.dropped_rows;
    if (report.first_dropped_line == 0) report.first_dropped_line = result.first_dropped_line;
    report.skipped_rows += result.skipped_rows;
    if (report.first_skipped_row == 0) report.first_skipped_row = result.first_skipped_row;
    if (first_row_line == 0) first_row_line = result.first_row_line;
    for (std::size_t c = 0; c < missing.size(); ++c) {
      missing[c] += result.missing[c];
      dropped[c] += result.dropped[c];
    }
  }
  for (const std::int64_t count : missing) report.missing_values += count;
  if (report_to != nullptr) *report_to = report;
  refuse_no_rows(source.name(), layout, settings, report, dropped);
  // Lines without a record have left gaps between the pieces' rows.
  ColumnStore wider(layout, settings, too_low ? report.rows : 0);
  ColumnStore& final = too_low ? wider : columns;
  std::int64_t at = 0;
  for (const ParsedChunk& chunk : chunks) {
    final.move_rows(at, chunk.store ? *chunk.store : columns, chunk.first_row, chunk.result.rows);
    at += chunk.result.rows;
  }
  final.shrink(report.rows);
  if (policy == MissingPolicy::kForwardFill) {
    for (std::size_t c = 0; c < missing.size(); ++c)
      COHORT_THROW_UNLESS(
          missing[c] == 0 || final.fill_forward(c),
          "{}: line {}, column '{}': the value is missing, and there is none above it for forward_fill; {}",
          source.name(), first_row_line, layout.columns[c].name,
          missing[c] == report.rows
              ? "no row has one: leave the column out with " +
                    longer_list("data.csv.skip_columns", settings.skip_columns, {layout.columns[c].name})
              : "leave such rows out with data.csv.missing=drop_row");
  }

  std::vector<Column> read;
  for (std::size_t c = 0; c < layout.columns.size(); ++c) {
    const CsvColumn& column = layout.columns[c];
    if (column.use == FieldUse::kSkip || column.use == FieldUse::kEmpty || column.use == FieldUse::kTime) continue;
    read.push_back(column.use == FieldUse::kText ? Column(column.name, join_texts(chunks, c)) : final.take(c, column));
  }
  Table table(source.name());
  if (settings.columns.empty()) {
    for (Column& column : read) table.add(std::move(column));
  } else {
    for (const std::string& name : settings.columns) {
      const auto column =
          std::find_if(read.begin(), read.end(), [&name](const Column& candidate) { return candidate.name() == name; });
      COHORT_THROW_UNLESS(column != read.end(), "{}: data.csv.columns names '{}' twice", source.name(), name);
      table.add(std::move(*column));
      read.erase(column);
    }
  }
  say_what_was_found(table, layout, settings, policy, report);
  return table;
}

}  // namespace

void describe(config::Fields& fields, CsvSettings& s) {
  fields.add("separator", s.separator, "between fields: auto (finds , ; tab or |), tab, or one character");
  fields.add_choice("header", s.header, {"auto", "yes", "no"},
                    "whether the first line names the columns; auto: unless all its fields are numbers or dates");
  fields.add_choice("decimal", s.decimal, {".", ","}, "decimal mark of numbers");
  fields.add_choice("thousands", s.thousands, {"none", ".", ",", "space", "apostrophe"},
                    "what sets the thousands of numbers apart, as in 1.234,5");
  fields.add("units", s.units, "what stands before or behind numbers and is no part of them, e.g. %, kW or $");
  fields.add("skip_lines", s.skip_lines,
             "lines that are no rows of the table, such as a title, units or a sum: numbers from 1, e.g. 1-2,402");
  fields.add("comment", s.comment, "a line that starts with this character is skipped; empty = none");
  fields.add("columns", s.columns, "read only these columns, in this order; empty = all");
  fields.add("skip_columns", s.skip_columns, "leave these columns out");
  fields.add("text_columns", s.text_columns, "columns kept as texts; all others must hold numbers or dates");
  fields.add("date_columns", s.date_columns, "columns of dates, beside those that are found by themselves");
  fields.add("detect_dates", s.detect_dates, "a column whose first value is a date holds dates");
  fields.add_choice("date_order", s.date_order, {"ymd", "dmy", "mdy"}, "order of day, month and year in dates");
  fields.add_choice("date_unit", s.date_unit, {"auto", "s", "ms", "us", "ns", "excel"},
                    "what numbers in date_columns count: s to ns since 1970, excel: days since 1899-12-30; auto: by "
                    "their digits");
  fields.add_choice("missing", s.missing, {"error", "drop_row", "forward_fill", "keep"},
                    "what to do with a missing value: stop; leave its row out; take the value above; keep NaN, which "
                    "training refuses");
  fields.add("missing_values", s.missing_values, "further texts that stand for a missing value, e.g. ? or -9999");
  fields.add_choice("precision", s.precision, {"float64", "float32"}, "of numbers in memory");
  fields.add("threads", s.threads, "threads that read; 0 = as many as the process may use cores");
}

Table read_csv(const std::filesystem::path& path, const CsvSettings& settings, CsvReport* report) {
  return read_source(CsvSource::open(path), settings, report);
}

Table parse_csv(std::string_view text, const std::string& name, const CsvSettings& settings, CsvReport* report) {
  return read_source(CsvSource::memory(text, name), settings, report);
}

}  // namespace cohort::tables
