#include "tables/forecast_windows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "tables/date_steps.h"

namespace cohort::tables {
namespace {

void check_settings(const WindowSettings& s) {
  COHORT_THROW_UNLESS(s.seq_len >= 1, "data.windows.seq_len must be at least 1, not {}", s.seq_len);
  COHORT_THROW_UNLESS(s.pred_len >= 1, "data.windows.pred_len must be at least 1, not {}", s.pred_len);
  COHORT_THROW_UNLESS(s.label_len >= 0, "data.windows.label_len must be at least 0, not {}", s.label_len);
  COHORT_THROW_UNLESS(s.label_len <= s.seq_len,
                      "data.windows.label_len = {} is above data.windows.seq_len = {}: the decoder is given the last "
                      "label_len rows that the encoder "
                      "sees; lower label_len or raise seq_len",
                      s.label_len, s.seq_len);
  COHORT_THROW_UNLESS(
      s.features == "M" || s.features == "S" || s.features == "MS",
      "data.windows.features '{}' is not one of M (all columns forecast all), S (the target forecasts itself), MS (all "
      "columns forecast the target)",
      s.features);
}

/// The columns of x, the target last, as Dataset_Custom orders them.
std::vector<std::string> choose_columns(const Table& table, const WindowSettings& settings) {
  const std::vector<std::string> numbers = table.names(ColumnKind::kNumber);
  COHORT_THROW_UNLESS(!numbers.empty(), "{}: there is no column of numbers to forecast", table.name());
  const std::vector<std::string>& wanted = settings.columns.empty() ? numbers : settings.columns;
  const std::string target = settings.target.empty() ? wanted.back() : settings.target;
  table.number_column(target);  // throws where there is none
  std::vector<std::string> columns;
  for (auto name = wanted.begin(); name != wanted.end(); ++name) {
    table.number_column(*name);
    COHORT_THROW_UNLESS(std::find(wanted.begin(), name, *name) == name, "data.windows.columns names '{}' twice", *name);
    if (*name != target && settings.features != "S") columns.push_back(*name);
  }
  columns.push_back(target);
  return columns;
}

/// nullptr where the table has no dates.
const Column* choose_dates(const Table& table, const WindowSettings& settings) {
  if (!settings.date_column.empty()) {
    const Column& column = table.column(settings.date_column);
    COHORT_THROW_UNLESS(column.kind() == ColumnKind::kDate, "{}: column '{}' holds no dates", table.name(),
                        settings.date_column);
    return &column;
  }
  const std::vector<std::string> names = table.names(ColumnKind::kDate);
  COHORT_THROW_UNLESS(names.size() <= 1,
                      "{}: there are {} columns of dates ({}); name the one that orders the rows with "
                      "data.windows.date_column",
                      table.name(), names.size(), join(names, ", "));
  return names.empty() ? nullptr : table.find(names.front());
}

void check_dates(const Table& table, const Column& column, std::span<const double> dates) {
  for (std::size_t row = 0; row < dates.size(); ++row)
    COHORT_THROW_UNLESS(std::isfinite(dates[row]), "{}: column '{}' lacks the date of row {} (the first row is 1)",
                        table.name(), column.name(), row + 1);
  for (const std::string& warning : uneven_dates(dates))
    log::warning("{}: the dates of column '{}' {}", table.name(), column.name(), warning);
}

void copy_rows(const ArrayView& out, std::span<const float> from, std::int64_t first_row, std::int64_t width) {
  const std::span<float> to = out.span<float>();
  const auto begin = static_cast<std::size_t>(first_row * width);
  COHORT_CHECK(begin + to.size() <= from.size(), "a field of {} elements is no window", to.size());
  std::memcpy(to.data(), from.data() + begin, to.size() * sizeof(float));
}

}  // namespace

void describe(config::Fields& fields, WindowSettings& s) {
  fields.add("seq_len", s.seq_len, "rows that the encoder sees");
  fields.add("label_len", s.label_len, "of these, so many last ones are also given to the decoder");
  fields.add("pred_len", s.pred_len, "rows to forecast");
  fields.add_choice("features", s.features, {"M", "S", "MS"},
                    "M: all columns forecast all; S: the target forecasts itself; MS: all columns forecast the target");
  fields.add("target", s.target, "target column; empty: the last number column");
  fields.add("columns", s.columns, "number columns to use; empty: all");
  fields.add("date_column", s.date_column, "column of dates; empty: the only one, where there is one");
  fields.add("freq", s.freq, "how often rows come: s, t, h, d, b, w, m, q, y, or 15min; auto: found from the dates");
  fields.add_choice("time_encoding", s.time_encoding, {"scaled", "fields"},
                    "time features from -0.5 to 0.5 (embed=timeF) or as whole numbers (embed=fixed, learned)");
}

std::shared_ptr<const ForecastSeries> ForecastSeries::make(const Table& table, RowRange train,
                                                           const WindowSettings& settings,
                                                           const ScalerSettings& scaler) {
  check_settings(settings);
  return make(table, Scaler::fit(table, choose_columns(table, settings), train, scaler), settings);
}

std::shared_ptr<const ForecastSeries> ForecastSeries::make(const Table& table, const Scaler& scaler,
                                                           const WindowSettings& settings) {
  check_settings(settings);
  const std::vector<std::string> columns = choose_columns(table, settings);
  const std::shared_ptr<ForecastSeries> series(new ForecastSeries(scaler.select(columns)));
  series->table_name_ = table.name();
  series->settings_ = settings;
  series->rows_ = table.rows();
  series->columns_ = columns;

  const auto n_rows = static_cast<std::size_t>(table.rows());
  series->values_ = AlignedArray<float>(n_rows * columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c)
    series->scaler_.transform_column(table, table.column(columns[c]), c, series->values_.data() + c,
                                     series->n_columns());

  if (const Column* dates = choose_dates(table, settings)) {
    const std::span<const double> seconds = dates->float64();
    check_dates(table, *dates, seconds);
    series->dates_.assign(seconds.begin(), seconds.end());
    series->frequency_ = settings.freq == "auto" ? infer_frequency(seconds) : parse_frequency(settings.freq);
    series->time_features_.emplace(*series->frequency_, settings.time_encoding);
    const auto n_mark = static_cast<std::size_t>(series->n_mark());
    series->marks_ = AlignedArray<float>(n_rows * n_mark);
    for (std::size_t row = 0; row < n_rows; ++row)
      series->time_features_->encode(seconds[row], {series->marks_.data() + row * n_mark, n_mark});
  }
  return series;
}

std::vector<std::string> ForecastSeries::marks() const {
  return time_features_ ? time_features_->names() : std::vector<std::string>{};
}

ForecastWindows::ForecastWindows(std::shared_ptr<const ForecastSeries> series, RowRange part, std::string part_name)
    : series_(std::move(series)), part_name_(std::move(part_name)) {
  const WindowSettings& s = series_->settings();
  COHORT_CHECK(part.begin >= 0 && part.begin <= part.end && part.end <= series_->rows(),
               "rows [{}, {}) are not within the table's {}", part.begin, part.end, series_->rows());
  if (part.begin == 0) {
    COHORT_THROW_UNLESS(part.size() >= s.seq_len + s.pred_len,
                        "{}: the {} part has {} rows, but a window needs {} (seq_len {} + pred_len {}); lower "
                        "data.windows.seq_len or data.windows.pred_len, give this part more rows "
                        "(data.split.train_fraction, data.split.test_fraction, data.split.rows), or "
                        "give a longer table",
                        series_->table_name(), part_name_, part.size(), s.seq_len + s.pred_len, s.seq_len, s.pred_len);
    first_row_ = 0;
  } else {
    COHORT_THROW_UNLESS(part.begin >= s.seq_len,
                        "{}: before the {} part there are {} rows, but its first window looks back {} (seq_len); lower "
                        "data.windows.seq_len or give a longer table",
                        series_->table_name(), part_name_, part.begin, s.seq_len);
    COHORT_THROW_UNLESS(
        part.size() >= s.pred_len,
        "{}: the {} part has {} rows, but a window needs {} of its own (pred_len); lower data.windows.pred_len, give "
        "this part more rows (data.split.train_fraction, data.split.test_fraction, data.split.rows), or give a longer "
        "table",
        series_->table_name(), part_name_, part.size(), s.pred_len);
    first_row_ = part.begin - s.seq_len;
  }
  size_ = part.end - first_row_ - s.seq_len - s.pred_len + 1;
}

std::vector<data::FieldSpec> ForecastWindows::fields() const {
  const WindowSettings& s = series_->settings();
  const std::int64_t n = series_->n_columns(), n_mark = series_->n_mark();
  std::vector<data::FieldSpec> fields{{"x", ElementType::kFloat32, {s.seq_len, n}},
                                      {"y", ElementType::kFloat32, {s.label_len + s.pred_len, n}}};
  if (n_mark > 0) {
    fields.push_back({"x_mark", ElementType::kFloat32, {s.seq_len, n_mark}});
    fields.push_back({"y_mark", ElementType::kFloat32, {s.label_len + s.pred_len, n_mark}});
  }
  return fields;
}

void ForecastWindows::read(std::int64_t index, std::uint64_t, std::span<const ArrayView> rows) const {
  COHORT_CHECK(index >= 0 && index < size_, "sample {} of {}", index, size_);
  const std::int64_t n_mark = series_->n_mark();
  COHORT_CHECK(rows.size() == (n_mark > 0 ? 4u : 2u), "{} views for the fields of a window", rows.size());
  const WindowSettings& s = series_->settings();
  const std::int64_t x_row = first_row_ + index, y_row = x_row + s.seq_len - s.label_len;
  copy_rows(rows[0], series_->values(), x_row, series_->n_columns());
  copy_rows(rows[1], series_->values(), y_row, series_->n_columns());
  if (n_mark == 0) return;
  copy_rows(rows[2], series_->mark_values(), x_row, n_mark);
  copy_rows(rows[3], series_->mark_values(), y_row, n_mark);
}

}  // namespace cohort::tables
