#include "tables/regression_rows.h"

#include <algorithm>
#include <cstring>

#include "core/config.h"
#include "core/error.h"

namespace cohort::tables {
namespace {

struct Choice {
  std::vector<std::string> inputs, targets;

  std::vector<std::string> all() const {
    std::vector<std::string> columns = inputs;
    columns.insert(columns.end(), targets.begin(), targets.end());
    return columns;
  }
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Choice choose_columns(const Table& table, const RegressionSettings& s) {
  const std::vector<std::string> numbers = table.names(ColumnKind::kNumber);
  const auto n_numbers = static_cast<std::int64_t>(numbers.size());
  Choice choice;
  if (!s.targets.empty()) {
    choice.targets = s.targets;
  } else {
    COHORT_THROW_UNLESS(s.n_targets >= 1, "data.columns.n_targets must be at least 1, not {}", s.n_targets);
    COHORT_THROW_UNLESS(
        s.n_targets < n_numbers,
        "{}: data.columns.n_targets = {} of {} number columns leaves none as input; lower it, or check which "
        "columns hold numbers",
        table.name(), s.n_targets, n_numbers);
    choice.targets.assign(numbers.end() - s.n_targets, numbers.end());
  }
  if (!s.inputs.empty()) {
    choice.inputs = s.inputs;
  } else {
    COHORT_THROW_UNLESS(s.n_inputs >= 0, "data.columns.n_inputs must be at least 0, not {}", s.n_inputs);
    for (const std::string& name : numbers)
      if (!contains(choice.targets, name)) choice.inputs.push_back(name);
    const auto available = static_cast<std::int64_t>(choice.inputs.size());
    COHORT_THROW_UNLESS(available > 0, "{}: no number column is left as input beside the targets", table.name());
    COHORT_THROW_UNLESS(s.n_inputs <= available,
                        "{}: data.columns.n_inputs = {}, but beside the targets ({}) there are only {} number columns",
                        table.name(), s.n_inputs, join(choice.targets, ", "), available);
    if (s.n_inputs > 0) choice.inputs.resize(static_cast<std::size_t>(s.n_inputs));
  }
  std::vector<std::string> seen;
  for (const std::string& name : choice.all()) {
    table.number_column(name);  // throws where there is none
    COHORT_THROW_UNLESS(
        !contains(seen, name), "{}: column '{}' is {}; leave one out", table.name(), name,
        contains(choice.inputs, name) && contains(choice.targets, name) ? "both input and target" : "named twice");
    seen.push_back(name);
  }
  return choice;
}

AlignedArray<float> scale_columns(const Table& table, const Scaler& scaler, const std::vector<std::string>& columns) {
  AlignedArray<float> values(static_cast<std::size_t>(table.rows()) * columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c)
    scaler.transform_column(table, table.column(columns[c]), scaler.index_of(columns[c]), values.data() + c,
                            static_cast<std::int64_t>(columns.size()));
  return values;
}

void copy_row(const ArrayView& out, std::span<const float> from, std::size_t row, std::size_t width) {
  const std::span<float> to = out.span<float>();
  COHORT_CHECK(to.size() == width, "{} elements for {} columns", to.size(), width);
  std::memcpy(to.data(), from.data() + row * width, width * sizeof(float));
}

}  // namespace

void describe(config::Fields& fields, RegressionSettings& s) {
  fields.add("inputs", s.inputs, "input columns; empty: the first n_inputs number columns");
  fields.add("targets", s.targets, "target columns; empty: the last n_targets number columns");
  fields.add("n_inputs", s.n_inputs, "number of input columns; 0: all number columns that are no target");
  fields.add("n_targets", s.n_targets, "number of target columns");
}

std::shared_ptr<const RegressionTable> RegressionTable::make(const Table& table, std::span<const std::int64_t> train,
                                                             const RegressionSettings& settings,
                                                             const ScalerSettings& scaler) {
  return make(table, Scaler::fit(table, choose_columns(table, settings).all(), train, scaler), settings);
}

std::shared_ptr<const RegressionTable> RegressionTable::make(const Table& table, const Scaler& scaler,
                                                             const RegressionSettings& settings) {
  const Choice choice = choose_columns(table, settings);
  const std::shared_ptr<RegressionTable> made(new RegressionTable(scaler.select(choice.all())));
  made->rows_ = table.rows();
  made->inputs_ = choice.inputs;
  made->targets_ = choice.targets;
  made->input_values_ = scale_columns(table, made->scaler_, choice.inputs);
  made->target_values_ = scale_columns(table, made->scaler_, choice.targets);
  return made;
}

RegressionRows::RegressionRows(std::shared_ptr<const RegressionTable> table, std::vector<std::int64_t> rows,
                               std::string part_name)
    : table_(std::move(table)), rows_(std::move(rows)), part_name_(std::move(part_name)) {
  COHORT_THROW_UNLESS(!rows_.empty(),
                      "the {} part has no rows; give it some (data.split.train_fraction, data.split.test_fraction, "
                      "data.split.rows)",
                      part_name_);
  for (std::int64_t row : rows_)
    COHORT_CHECK(row >= 0 && row < table_->rows(), "row {} is not within the table's {}", row, table_->rows());
}

std::vector<data::FieldSpec> RegressionRows::fields() const {
  return {{"x", ElementType::kFloat32, {static_cast<std::int64_t>(table_->inputs().size())}},
          {"y", ElementType::kFloat32, {static_cast<std::int64_t>(table_->targets().size())}}};
}

void RegressionRows::read(std::int64_t index, std::uint64_t, std::span<const ArrayView> rows) const {
  COHORT_CHECK(index >= 0 && index < size(), "sample {} of {}", index, size());
  COHORT_CHECK(rows.size() == 2, "{} views for the fields x and y", rows.size());
  const auto row = static_cast<std::size_t>(rows_[static_cast<std::size_t>(index)]);
  copy_row(rows[0], table_->input_values(), row, table_->inputs().size());
  copy_row(rows[1], table_->target_values(), row, table_->targets().size());
}

}  // namespace cohort::tables
