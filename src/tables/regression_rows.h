/// Rows of a table as samples of a regression: some columns are given, others are to be found.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tables/scaler.h"
#include "tables/table.h"

namespace cohort::tables {

struct RegressionSettings {
  std::vector<std::string> inputs;   ///< input columns, in this order; empty: the first n_inputs number columns
  std::vector<std::string> targets;  ///< target columns; empty: the last n_targets number columns
  std::int64_t n_inputs = 0;         ///< 0: all number columns that are no target
  std::int64_t n_targets = 1;
};

void describe(config::Fields& fields, RegressionSettings& settings);

/// The scaled inputs and targets of a whole table, shared by its parts. Immutable.
class RegressionTable {
 public:
  /// Scales by the statistics of the training rows. Throws Error for unknown columns, a column that is both input and
  /// target or named twice, more columns wanted than there are, and what Scaler throws.
  static std::shared_ptr<const RegressionTable> make(const Table& table, std::span<const std::int64_t> train,
                                                     const RegressionSettings& settings,
                                                     const ScalerSettings& scaler = {});
  /// The same with a scaler fitted before (of a checkpoint): it must know the columns.
  static std::shared_ptr<const RegressionTable> make(const Table& table, const Scaler& scaler,
                                                     const RegressionSettings& settings);

  std::int64_t rows() const { return rows_; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& targets() const { return targets_; }
  /// Of inputs and targets together; select() gives that of the targets.
  const Scaler& scaler() const { return scaler_; }
  /// (rows, n_in) and (rows, n_target) scaled values.
  std::span<const float> input_values() const { return {input_values_.data(), input_values_.size()}; }
  std::span<const float> target_values() const { return {target_values_.data(), target_values_.size()}; }

 private:
  explicit RegressionTable(Scaler scaler) : scaler_(std::move(scaler)) {}

  std::int64_t rows_ = 0;
  std::vector<std::string> inputs_, targets_;
  Scaler scaler_;
  AlignedArray<float> input_values_, target_values_;
};

/// One part of the rows. Sample i has x (n_in) and y (n_target), float32.
class RegressionRows final : public data::Dataset {
 public:
  /// `rows` are rows of the table; sample i is rows[i]. `part_name` (training, validation, test) stands in messages.
  /// Throws Error for no rows.
  RegressionRows(std::shared_ptr<const RegressionTable> table, std::vector<std::int64_t> rows, std::string part_name);

  std::int64_t size() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::vector<data::FieldSpec> fields() const override;
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override;

  const RegressionTable& table() const { return *table_; }
  const std::string& part_name() const { return part_name_; }
  /// The table's row of a sample.
  std::int64_t row(std::int64_t index) const { return rows_[static_cast<std::size_t>(index)]; }

 private:
  std::shared_ptr<const RegressionTable> table_;
  std::vector<std::int64_t> rows_;
  std::string part_name_;
};

}  // namespace cohort::tables
