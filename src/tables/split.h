/// Which rows of a table train, validate and test a model: by time or at random.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cohort::config {
class Fields;
}

namespace cohort::tables {

struct SplitSettings {
  /// time: the first rows train, those behind them validate, the last ones test. random: a permutation keyed by `seed`.
  /// ett_hour, ett_minute: the published borders of the ETT data sets, 12/4/4 months of 30 days in rows of an hour or
  /// of 15 minutes (Zhou et al., Informer, AAAI 2021); rows behind them are left out.
  std::string kind = "time";
  double train_fraction = 0.7;  ///< of all rows, rounded down
  double test_fraction = 0.2;   ///< of all rows, rounded down; what neither part takes validates
  std::vector<int> rows;        ///< rows that train, validate and test, instead of the fractions
  std::uint64_t seed = 0;       ///< of kind random
};

void describe(config::Fields& fields, SplitSettings& settings);

/// Rows [begin, end) of a table.
struct RowRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

/// Parts without overlap. A window of the validation or test part looks back into the part before: ForecastWindows adds
/// those rows.
struct TimeSplit {
  RowRange train, validation, test;
};

/// Rows in rising order.
struct RowSplit {
  std::vector<std::int64_t> train, validation, test;
};

/// Parts of a table of `rows` rows that follow one another in time. `table` names it in messages. Throws Error for
/// kind random, for fractions or counts that do not fit the table, and where the training part, or a part that was
/// asked for, would be empty.
TimeSplit split_by_time(std::int64_t rows, const SplitSettings& settings, const std::string& table);

/// The same parts as lists of rows, for any kind. At random each part has as many rows as by time, drawn without
/// replacement: a function of `rows`, `settings` and nothing else.
RowSplit split_rows(std::int64_t rows, const SplitSettings& settings, const std::string& table);

}  // namespace cohort::tables
