/// Columns brought to comparable size before training, and back after it. Fitted on the training rows only: statistics
/// of the test rows would leak into training.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tables/split.h"
#include "tables/table.h"

namespace cohort::config {
class Fields;
}

namespace cohort::tables {

struct ScalerSettings {
  /// standard: (v - mean) / std, with the population's std (division by n), as scikit-learn's StandardScaler.
  /// min_max: linear, smallest to `low` and largest to `high`, as MinMaxScaler. none: values stay.
  std::string kind = "standard";
  double low = 0, high = 1;               ///< of kind min_max
  std::string constant_column = "error";  ///< error; or keep: it becomes 0 (standard) or `low` (min_max)
};

void describe(config::Fields& fields, ScalerSettings& settings);

/// Of one column over the training rows.
struct ColumnStatistics {
  std::string name;
  double mean = 0, std = 0, min = 0, max = 0;
  bool operator==(const ColumnStatistics&) const = default;
};

class Scaler {
 public:
  /// Statistics of the named number columns over `rows`. Throws Error for no rows, an unknown column, a value that is
  /// not finite (with column and row), and a column that is constant there unless it is to be kept or kind is none.
  static Scaler fit(const Table& table, std::span<const std::string> columns, RowRange rows,
                    const ScalerSettings& settings);
  /// The same over a list of rows.
  static Scaler fit(const Table& table, std::span<const std::string> columns, std::span<const std::int64_t> rows,
                    const ScalerSettings& settings);

  /// For dataset_statistics.json:
  /// {"kind", "low", "high", "rows", "columns": {name: {"mean", "std", "min", "max"}}}. Every number is read back with
  /// the same bits.
  nlohmann::ordered_json to_json() const;
  /// Throws Error naming `source` and the field at fault.
  static Scaler from_json(const nlohmann::ordered_json& json, const std::string& source);

  std::size_t size() const { return statistics_.size(); }
  const ColumnStatistics& statistics(std::size_t column) const { return statistics_[column]; }
  /// Throws Error naming the nearest column.
  std::size_t index_of(std::string_view name) const;
  /// The scaler of some of the columns, in the order given.
  Scaler select(std::span<const std::string> columns) const;

  double transform(std::size_t column, double value) const {
    return (value - factors_[column].shift) / factors_[column].scale;
  }
  double inverse(std::size_t column, double value) const {
    return value * factors_[column].scale + factors_[column].shift;
  }
  /// In place on rows of size() values each. Throws Error where the length is no multiple of size().
  void inverse(std::span<float> values) const;
  void inverse(std::span<double> values) const;

  /// Writes every row of `from` scaled to out[row * stride]. Throws Error naming column and row where a value is not
  /// finite or too large for float32.
  void transform_column(const Table& table, const Column& from, std::size_t column, float* out,
                        std::int64_t stride) const;

 private:
  struct Factors {
    double shift = 0, scale = 1;
  };
  void set_factors();

  ScalerSettings settings_;
  std::int64_t rows_ = 0;
  std::vector<ColumnStatistics> statistics_;
  std::vector<Factors> factors_;
};

}  // namespace cohort::tables
