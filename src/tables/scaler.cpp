#include "tables/scaler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/error.h"
#include "tables/csv_layout.h"

namespace cohort::tables {
namespace {

/// A sum whose error does not grow with the number of terms (Neumaier, ZAMM 54, 1974).
class CompensatedSum {
 public:
  void add(double value) {
    const double sum = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  double get() const { return sum_ + lost_; }

 private:
  double sum_ = 0, lost_ = 0;
};

template <class Body>
void with_values(const Column& column, const Body& body) {
  if (column.is_float32())
    body(column.float32());
  else
    body(column.float64());
}

/// What to do about a value that is not finite once it is scaled. Only a NaN is what the reader takes for missing.
std::string remedy_for(double value) {
  const std::string drop = "drop or fill such rows (data.csv.missing=drop_row or forward_fill)";
  if (std::isnan(value)) return drop;
  return format("name it, as it is written in the file, as a missing value (data.csv.missing_values={}), and {}", value,
                drop);
}

/// row_of(i) is the table's row of training row i of n.
template <class RowOf>
ColumnStatistics measure(const Table& table, const Column& column, std::int64_t n, const RowOf& row_of) {
  ColumnStatistics s;
  s.name = column.name();
  s.min = std::numeric_limits<double>::infinity();
  s.max = -s.min;
  with_values(column, [&](auto values) {
    CompensatedSum sum, squares;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<double>(values[static_cast<std::size_t>(row_of(i))]);
      COHORT_THROW_UNLESS(std::isfinite(value),
                          "{}: column '{}' holds {} in row {} (the first row is 1), and no statistics can be taken; {}",
                          table.name(), column.name(), value, row_of(i) + 1, remedy_for(value));
      sum.add(value);
      s.min = std::min(s.min, value);
      s.max = std::max(s.max, value);
    }
    s.mean = sum.get() / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(values[static_cast<std::size_t>(row_of(i))]) - s.mean;
      squares.add(d * d);
    }
    s.std = std::sqrt(squares.get() / static_cast<double>(n));
    if (s.min == s.max) s.mean = s.min, s.std = 0;  // exactly, whatever rounding made of them
  });
  return s;
}

void check_settings(const ScalerSettings& s) {
  COHORT_THROW_UNLESS(s.kind == "standard" || s.kind == "min_max" || s.kind == "none",
                      "data.scaler.kind '{}' is not one of standard, min_max, none", s.kind);
  COHORT_THROW_UNLESS(s.constant_column == "error" || s.constant_column == "keep",
                      "data.scaler.constant_column '{}' is not one of error, keep", s.constant_column);
  COHORT_THROW_UNLESS(std::isfinite(s.low) && std::isfinite(s.high) && s.low < s.high,
                      "data.scaler.low = {} must be below data.scaler.high = {}", s.low, s.high);
}

bool constant(const ColumnStatistics& s) {
  return s.min == s.max || s.std == 0;
}

template <class RowOf>
std::vector<ColumnStatistics> measure_all(const Table& table, std::span<const std::string> columns, std::int64_t n,
                                          const RowOf& row_of, const ScalerSettings& settings) {
  check_settings(settings);
  COHORT_THROW_UNLESS(n > 0, "{}: there are no training rows to fit the scaler to", table.name());
  std::vector<ColumnStatistics> all;
  for (const std::string& name : columns) {
    all.push_back(measure(table, table.number_column(name), n, row_of));
    const ColumnStatistics& s = all.back();
    COHORT_THROW_UNLESS(
        settings.kind == "none" || !constant(s) || settings.constant_column == "keep",
        "{}: column '{}' is constant ({}) in all {} training rows, so it cannot be scaled and tells the "
        "model nothing; leave the column out with {}, or keep it with data.scaler.constant_column=keep",
        table.name(), name, s.mean, n, column_setting("data.csv.skip_columns", {name}));
    COHORT_THROW_UNLESS(std::isfinite(s.mean) && std::isfinite(s.std),
                        "{}: the values of column '{}' (from {} to {}) are too large to take their mean and standard "
                        "deviation; use another unit",
                        table.name(), name, s.min, s.max);
  }
  return all;
}

template <class T>
void inverse_rows(const Scaler& scaler, std::span<T> values) {
  const std::size_t n = scaler.size();
  COHORT_CHECK(n > 0 && values.size() % n == 0, "{} values are no rows of {} columns", values.size(), n);
  for (std::size_t row = 0; row < values.size(); row += n)
    for (std::size_t c = 0; c < n; ++c)
      values[row + c] = static_cast<T>(scaler.inverse(c, static_cast<double>(values[row + c])));
}

double number_at(const nlohmann::ordered_json& json, const char* key, const std::string& where) {
  COHORT_THROW_UNLESS(json.is_object() && json.contains(key) && json[key].is_number(), "{}: the number '{}' is missing",
                      where, key);
  const double value = json[key].get<double>();
  COHORT_THROW_UNLESS(std::isfinite(value), "{}: '{}' is not finite", where, key);
  return value;
}

}  // namespace

void describe(config::Fields& fields, ScalerSettings& s) {
  fields.add_choice(
      "kind", s.kind, {"standard", "min_max", "none"},
      "standard: mean 0 and standard deviation 1; min_max: from low to high; fitted on the training rows");
  fields.add("low", s.low, "smallest training value after min_max");
  fields.add("high", s.high, "largest training value after min_max");
  fields.add_choice("constant_column", s.constant_column, {"error", "keep"},
                    "what becomes of a column that is constant in the training rows; keep: it is only shifted");
}

Scaler Scaler::fit(const Table& table, std::span<const std::string> columns, RowRange rows,
                   const ScalerSettings& settings) {
  COHORT_CHECK(rows.begin >= 0 && rows.end <= table.rows(), "rows [{}, {}) are not within the table's {}", rows.begin,
               rows.end, table.rows());
  Scaler scaler;
  scaler.settings_ = settings;
  scaler.rows_ = rows.size();
  scaler.statistics_ = measure_all(
      table, columns, rows.size(), [begin = rows.begin](std::int64_t i) { return begin + i; }, settings);
  scaler.set_factors();
  return scaler;
}

Scaler Scaler::fit(const Table& table, std::span<const std::string> columns, std::span<const std::int64_t> rows,
                   const ScalerSettings& settings) {
  for (std::int64_t row : rows)
    COHORT_CHECK(row >= 0 && row < table.rows(), "row {} is not within the table's {}", row, table.rows());
  Scaler scaler;
  scaler.settings_ = settings;
  scaler.rows_ = static_cast<std::int64_t>(rows.size());
  scaler.statistics_ = measure_all(
      table, columns, scaler.rows_, [rows](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; }, settings);
  scaler.set_factors();
  return scaler;
}

void Scaler::set_factors() {
  factors_.clear();
  for (const ColumnStatistics& s : statistics_) {
    Factors f;
    if (settings_.kind == "standard") {
      f = {.shift = s.mean, .scale = constant(s) ? 1.0 : s.std};
    } else if (settings_.kind == "min_max") {
      f.scale = constant(s) ? 1.0 : (s.max - s.min) / (settings_.high - settings_.low);
      f.shift = s.min - settings_.low * f.scale;
    }
    factors_.push_back(f);
  }
}

std::size_t Scaler::index_of(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < size(); ++i) {
    if (statistics_[i].name == name) return i;
    names.push_back(statistics_[i].name);
  }
  const std::string near = config::nearest(std::string(name), names);
  throw Error(near.empty() ? cohort::format("the scaler has no column '{}'; it has {}", name, join(names, ", "))
                           : cohort::format("the scaler has no column '{}'; did you mean '{}'?", name, near));
}

Scaler Scaler::select(std::span<const std::string> columns) const {
  Scaler scaler;
  scaler.settings_ = settings_;
  scaler.rows_ = rows_;
  for (const std::string& name : columns) scaler.statistics_.push_back(statistics_[index_of(name)]);
  scaler.set_factors();
  return scaler;
}

void Scaler::inverse(std::span<float> values) const {
  inverse_rows(*this, values);
}
void Scaler::inverse(std::span<double> values) const {
  inverse_rows(*this, values);
}

void Scaler::transform_column(const Table& table, const Column& from, std::size_t column, float* out,
                              std::int64_t stride) const {
  const Factors f = factors_[column];
  with_values(from, [&](auto values) {
    for (std::size_t row = 0; row < values.size(); ++row, out += stride) {
      *out = static_cast<float>((static_cast<double>(values[row]) - f.shift) / f.scale);
      COHORT_THROW_UNLESS(
          std::isfinite(*out), "{}: column '{}' holds {} in row {} (the first row is 1), which is {} after scaling; {}",
          table.name(), from.name(), values[row], row + 1, *out, remedy_for(static_cast<double>(values[row])));
    }
  });
}

nlohmann::ordered_json Scaler::to_json() const {
  nlohmann::ordered_json json;
  json["kind"] = settings_.kind;
  json["low"] = settings_.low;
  json["high"] = settings_.high;
  json["rows"] = rows_;
  nlohmann::ordered_json& columns = json["columns"] = nlohmann::ordered_json::object();
  for (const ColumnStatistics& s : statistics_)
    columns[s.name] = {{"mean", s.mean}, {"std", s.std}, {"min", s.min}, {"max", s.max}};
  return json;
}

Scaler Scaler::from_json(const nlohmann::ordered_json& json, const std::string& source) {
  COHORT_THROW_UNLESS(json.is_object() && json.contains("kind") && json["kind"].is_string(),
                      "{}: no scaler: the text 'kind' is missing", source);
  COHORT_THROW_UNLESS(json.contains("columns") && json["columns"].is_object(), "{}: no scaler: 'columns' is missing",
                      source);
  Scaler scaler;
  scaler.settings_.kind = json["kind"].get<std::string>();
  scaler.settings_.low = number_at(json, "low", source);
  scaler.settings_.high = number_at(json, "high", source);
  scaler.settings_.constant_column = "keep";
  try {
    check_settings(scaler.settings_);
  } catch (const Error& e) {
    throw Error(format("{}: {}", source, e.what()));
  }
  scaler.rows_ = static_cast<std::int64_t>(number_at(json, "rows", source));
  for (const auto& [name, column] : json["columns"].items()) {
    const std::string where = format("{}: column '{}'", source, name);
    scaler.statistics_.push_back({.name = name,
                                  .mean = number_at(column, "mean", where),
                                  .std = number_at(column, "std", where),
                                  .min = number_at(column, "min", where),
                                  .max = number_at(column, "max", where)});
    COHORT_THROW_UNLESS(scaler.statistics_.back().std >= 0, "{}: 'std' is negative", where);
  }
  scaler.set_factors();
  return scaler;
}

}  // namespace cohort::tables
