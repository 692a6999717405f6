/// Sliding windows over a table of time series, for forecasting: what Dataset_ETT_hour, Dataset_ETT_minute and
/// Dataset_Custom of github.com/zhouhaoyi/Informer2020 yield.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tables/scaler.h"
#include "tables/split.h"
#include "tables/table.h"
#include "tables/time_features.h"

namespace cohort::tables {

struct WindowSettings {
  std::int64_t seq_len = 96;    ///< rows the encoder sees
  std::int64_t label_len = 48;  ///< of these, the last so many are also given to the decoder; at most seq_len
  std::int64_t pred_len = 24;   ///< rows to forecast
  /// M: all columns forecast all; S: the target forecasts itself; MS: all columns forecast the target.
  std::string features = "M";
  std::string target;                ///< column; empty: the last number column
  std::vector<std::string> columns;  ///< number columns to use; empty: all. The target may be among them or not.
  std::string date_column;           ///< empty: the table's only date column, where it has one
  std::string freq = "auto";  ///< s, t, h, d, b, w, m, q, y with or without a number before it; auto: from the dates
  std::string time_encoding = "scaled";  ///< scaled (--embed timeF) or fields (--embed fixed, learned): time_features.h
};

void describe(config::Fields& fields, WindowSettings& settings);

/// The scaled columns and time features of a whole table, shared by the windows of its parts. Immutable.
class ForecastSeries {
 public:
  /// Scales by the statistics of the training rows. Throws Error for unknown columns, no number column, lengths below
  /// 1, a label_len above seq_len, several date columns of which none was named, a missing date, and what Scaler
  /// throws. Dates that run backwards are told by a warning.
  static std::shared_ptr<const ForecastSeries> make(const Table& table, RowRange train, const WindowSettings& settings,
                                                    const ScalerSettings& scaler = {});
  /// The same with a scaler fitted before (of a checkpoint): it must know the columns.
  static std::shared_ptr<const ForecastSeries> make(const Table& table, const Scaler& scaler,
                                                    const WindowSettings& settings);

  const std::string& table_name() const { return table_name_; }
  const WindowSettings& settings() const { return settings_; }
  std::int64_t rows() const { return rows_; }
  /// The columns of x and y, the target last.
  const std::vector<std::string>& columns() const { return columns_; }
  std::int64_t n_columns() const { return static_cast<std::int64_t>(columns_.size()); }
  /// How many of the last columns of y a forecast is scored on: all for M, 1 for S and MS.
  std::int64_t n_target() const { return settings_.features == "M" ? n_columns() : 1; }
  /// Time features per row; 0 without a date column.
  std::int64_t n_mark() const { return time_features_ ? time_features_->count() : 0; }
  /// Names of the time features.
  std::vector<std::string> marks() const;
  /// The frequency given or found; nothing without a date column.
  std::optional<Frequency> frequency() const { return frequency_; }
  /// Of columns().
  const Scaler& scaler() const { return scaler_; }
  /// Seconds since 1970-01-01 UTC, per row; empty without a date column.
  std::span<const double> dates() const { return dates_; }
  /// (rows, n_columns) scaled values.
  std::span<const float> values() const { return {values_.data(), values_.size()}; }
  /// (rows, n_mark) time features.
  std::span<const float> mark_values() const { return {marks_.data(), marks_.size()}; }

 private:
  explicit ForecastSeries(Scaler scaler) : scaler_(std::move(scaler)) {}

  std::string table_name_;
  WindowSettings settings_;
  std::int64_t rows_ = 0;
  std::vector<std::string> columns_;
  Scaler scaler_;
  std::optional<Frequency> frequency_;
  std::optional<TimeFeatures> time_features_;
  std::vector<double> dates_;
  AlignedArray<float> values_, marks_;
};

/// All windows whose forecast rows lie in one part of the table. Sample i has, all float32,
///   x       (seq_len, n_columns)              the part's rows from i on
///   y       (label_len + pred_len, n_columns) the last label_len rows of x and the pred_len rows behind them
///   x_mark  (seq_len, n_mark) and y_mark (label_len + pred_len, n_mark), their time features.
/// Without a date column, or with freq y, there are no time features: the fields x_mark and y_mark are left out. y
/// holds all columns for MS, too: a forecast is scored on the last n_target() ones.
class ForecastWindows final : public data::Dataset {
 public:
  /// `part` is the rows to forecast in. A part that does not start at row 0 looks back seq_len rows into the part
  /// before, so that its first forecast row is its own first one. `part_name` (training, validation, test) stands in
  /// messages. Throws Error where not one window fits.
  ForecastWindows(std::shared_ptr<const ForecastSeries> series, RowRange part, std::string part_name);

  std::int64_t size() const override { return size_; }
  std::vector<data::FieldSpec> fields() const override;
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override;

  const ForecastSeries& series() const { return *series_; }
  const std::string& part_name() const { return part_name_; }
  /// The table's row of the first row of x; the first forecast row is seq_len further.
  std::int64_t first_row(std::int64_t index) const { return first_row_ + index; }

 private:
  std::shared_ptr<const ForecastSeries> series_;
  std::string part_name_;
  std::int64_t first_row_ = 0, size_ = 0;
};

}  // namespace cohort::tables
