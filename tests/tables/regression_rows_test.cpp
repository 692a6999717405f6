#include "tables/regression_rows.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config.h"
#include "core/message_of.h"
#include "data/allocation_count.h"

namespace cohort::tables {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kTableRows = 8, kColumns = 5;

// Column c holds (c + 1) * (row + 10), with a text column between: every value tells its row and column.
Table make_table() {
  Table table("arm.csv");
  for (int c = 0; c < kColumns; ++c) {
    std::vector<double> values;
    for (int row = 0; row < kTableRows; ++row) values.push_back((c + 1) * (row + 10));
    table.add(Column("c" + std::to_string(c), std::span<const double>(values)));
    if (c == 2) {
      TextArray texts;
      for (int row = 0; row < kTableRows; ++row) texts.add("note");
      table.add(Column("remark", std::move(texts)));
    }
  }
  return table;
}

std::vector<std::int64_t> rows(std::initializer_list<std::int64_t> list) {
  return list;
}

struct Row {
  std::vector<float> x, y;
};

Row read_row(const data::Dataset& dataset, std::int64_t index) {
  const std::vector<data::FieldSpec> fields = dataset.fields();
  Row s{std::vector<float>(static_cast<std::size_t>(fields[0].sample_shape[0]), -77.0f),
        std::vector<float>(static_cast<std::size_t>(fields[1].sample_shape[0]), -77.0f)};
  const ArrayView views[] = {make_view(s.x.data(), {fields[0].sample_shape[0]}),
                             make_view(s.y.data(), {fields[1].sample_shape[0]})};
  dataset.read(index, 0, views);
  return s;
}

TEST(RegressionRows, TheFirstColumnsGiveTheLastOnes) {
  const auto table =
      RegressionTable::make(make_table(), rows({0, 1}), {.n_inputs = 2, .n_targets = 2}, {.kind = "none"});
  EXPECT_THAT(table->inputs(), ElementsAre("c0", "c1"));
  EXPECT_THAT(table->targets(), ElementsAre("c3", "c4"));
  const RegressionRows part(table, rows({6, 1}), "test");
  ASSERT_EQ(part.size(), 2);
  EXPECT_EQ(part.fields(),
            (std::vector<data::FieldSpec>{{"x", ElementType::kFloat32, {2}}, {"y", ElementType::kFloat32, {2}}}));
  EXPECT_THAT(read_row(part, 0).x, ElementsAre(16, 32));
  EXPECT_THAT(read_row(part, 0).y, ElementsAre(64, 80));
  EXPECT_THAT(read_row(part, 1).x, ElementsAre(11, 22));
  EXPECT_EQ(part.row(0), 6);
}

TEST(RegressionRows, ColumnsCanBeNamedInAnyOrder) {
  const auto table =
      RegressionTable::make(make_table(), rows({0, 1}), {.inputs = {"c4", "c0"}, .targets = {"c2"}}, {.kind = "none"});
  const RegressionRows part(table, rows({0}), "training");
  EXPECT_THAT(read_row(part, 0).x, ElementsAre(50, 10));
  EXPECT_THAT(read_row(part, 0).y, ElementsAre(30));
  const auto rest = RegressionTable::make(make_table(), rows({0, 1}), {.targets = {"c1"}}, {.kind = "none"});
  EXPECT_THAT(rest->inputs(), ElementsAre("c0", "c2", "c3", "c4"));
}

TEST(RegressionRows, ScalingSeesTheTrainingRowsOnly) {
  // Rows 1 and 3 of column c hold (c + 1) * 11 and (c + 1) * 13: mean (c + 1) * 12, std c + 1. Row r becomes r - 2.
  const auto table = RegressionTable::make(make_table(), rows({1, 3}), {});
  const RegressionRows part(table, rows({7, 0}), "test");
  EXPECT_THAT(read_row(part, 0).x, ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(read_row(part, 0).y, ElementsAre(5));
  EXPECT_THAT(read_row(part, 1).x, ElementsAre(-2, -2, -2, -2));
  std::vector<float> forecast = read_row(part, 0).y;
  table->scaler().select(table->targets()).inverse(forecast);
  EXPECT_THAT(forecast, ElementsAre(85));

  // A scaler that was saved gives the same.
  const auto again = RegressionTable::make(make_table(), Scaler::from_json(table->scaler().to_json(), "s.json"), {});
  EXPECT_THAT(read_row(RegressionRows(again, rows({7}), "test"), 0).y, ElementsAre(5));
}

TEST(RegressionRows, ReadingAllocatesNothing) {
  const auto table = RegressionTable::make(make_table(), rows({0, 1}), {});
  const RegressionRows part(table, rows({0, 5, 2}), "training");
  std::vector<float> x(4), y(1);
  const ArrayView views[] = {make_view(x.data(), {4}), make_view(y.data(), {1})};
  const std::int64_t before = allocation_count();
  for (std::int64_t i = 0; i < 300; ++i) part.read(i % 3, static_cast<std::uint64_t>(i), views);
  EXPECT_EQ(allocation_count(), before);
}

TEST(RegressionRows, WrongColumnsAreNamed) {
  const auto make = [](const RegressionSettings& s) {
    return message_of([&] { RegressionTable::make(make_table(), rows({0, 1}), s); });
  };
  EXPECT_THAT(make({.n_targets = 5}),
              HasSubstr("arm.csv: data.columns.n_targets = 5 of 5 number columns leaves none as input"));
  EXPECT_THAT(make({.n_targets = 0}), HasSubstr("n_targets must be at least 1"));
  EXPECT_THAT(make({.n_inputs = 4, .n_targets = 2}),
              HasSubstr("n_inputs = 4, but beside the targets (c3, c4) there are only 3 number columns"));
  EXPECT_THAT(make({.inputs = {"c0", "c4"}}), HasSubstr("column 'c4' is both input and target"));
  EXPECT_THAT(make({.inputs = {"c0", "c0"}}), HasSubstr("column 'c0' is named twice"));
  EXPECT_THAT(make({.inputs = {"c9"}}), HasSubstr("c9"));
  EXPECT_THAT(make({.inputs = {"remark"}}), HasSubstr("remark"));
  const auto table = RegressionTable::make(make_table(), rows({0, 1}), {});
  EXPECT_THAT(message_of([&] { RegressionRows(table, {}, "validation"); }),
              HasSubstr("the validation part has no rows"));
}

}  // namespace
}  // namespace cohort::tables
