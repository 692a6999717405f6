#include "tables/scaler.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config.h"
#include "core/json_text.h"
#include "core/message_of.h"

namespace cohort::tables {
namespace {

using testing::HasSubstr;

Table make_table(const std::vector<std::pair<std::string, std::vector<double>>>& columns) {
  Table table("t.csv");
  for (const auto& [name, values] : columns) table.add(Column(name, std::span<const double>(values)));
  return table;
}

std::vector<double> arithmetic(double first, double step, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(first + step * i);
  return values;
}

// 0, 1, ..., n - 1 has mean (n - 1) / 2 and population variance (n^2 - 1) / 12.
TEST(Scaler, StandardFollowsTheClosedFormOfTheTrainingRows) {
  const Table table = make_table({{"a", arithmetic(-3, 0.5, 40)}, {"b", arithmetic(1000, -2, 40)}});
  const std::vector<std::string> names{"a", "b"};
  const Scaler scaler = Scaler::fit(table, names, RowRange{4, 28}, {});  // 24 rows
  const double std = std::sqrt((24.0 * 24.0 - 1.0) / 12.0);
  EXPECT_DOUBLE_EQ(scaler.statistics(0).mean, -3 + 0.5 * (4 + 11.5));
  EXPECT_DOUBLE_EQ(scaler.statistics(0).std, 0.5 * std);
  EXPECT_EQ(scaler.statistics(0).min, -1);
  EXPECT_EQ(scaler.statistics(0).max, 10.5);
  EXPECT_DOUBLE_EQ(scaler.statistics(1).mean, 1000 - 2 * (4 + 11.5));
  EXPECT_DOUBLE_EQ(scaler.statistics(1).std, 2 * std);
  EXPECT_DOUBLE_EQ(scaler.transform(1, 1000), 31 / (2 * std));
  EXPECT_DOUBLE_EQ(scaler.inverse(1, 31 / (2 * std)), 1000);
}

TEST(Scaler, AListOfRowsCountsThoseRowsOnly) {
  const Table table = make_table({{"a", {1, 100, 3, -100, 5}}});
  const std::vector<std::string> names{"a"};
  const std::vector<std::int64_t> rows{0, 2, 4};
  const Scaler scaler = Scaler::fit(table, names, rows, {});
  EXPECT_DOUBLE_EQ(scaler.statistics(0).mean, 3);
  EXPECT_DOUBLE_EQ(scaler.statistics(0).std, std::sqrt(8.0 / 3.0));
}

// A naive sum of squares loses all digits here.
TEST(Scaler, ALargeOffsetDoesNotSpoilTheStandardDeviation) {
  const Table table = make_table({{"t", arithmetic(1e9, 1e-3, 1001)}});
  const std::vector<std::string> names{"t"};
  const double expected = 1e-3 * std::sqrt((1001.0 * 1001.0 - 1.0) / 12.0);
  // The column itself is rounded to 1.2e-7 (float64 near 1e9), a relative 4e-7 of the deviation at the very worst.
  constexpr double kRoundingOfTheColumn = 4e-7;
  const Scaler scaler = Scaler::fit(table, names, RowRange{0, 1001}, {});
  EXPECT_NEAR(scaler.statistics(0).std / expected, 1.0, kRoundingOfTheColumn);
}

TEST(Scaler, MinMaxMapsTheTrainingRowsToItsRange) {
  const Table table = make_table({{"a", {2, 4, 10, 20}}});
  const std::vector<std::string> names{"a"};
  const Scaler unit = Scaler::fit(table, names, RowRange{0, 3}, {.kind = "min_max"});
  EXPECT_DOUBLE_EQ(unit.transform(0, 2), 0);
  EXPECT_DOUBLE_EQ(unit.transform(0, 4), 0.25);
  EXPECT_DOUBLE_EQ(unit.transform(0, 20), 2.25);
  const Scaler both = Scaler::fit(table, names, RowRange{0, 3}, {.kind = "min_max", .low = -1, .high = 1});
  EXPECT_DOUBLE_EQ(both.transform(0, 2), -1);
  EXPECT_DOUBLE_EQ(both.transform(0, 10), 1);
  EXPECT_DOUBLE_EQ(both.inverse(0, -0.5), 4);
}

TEST(Scaler, NoneLeavesValues) {
  const Table table = make_table({{"a", {2, 2, 2}}});
  const std::vector<std::string> names{"a"};
  const Scaler scaler = Scaler::fit(table, names, RowRange{0, 3}, {.kind = "none"});
  EXPECT_EQ(scaler.transform(0, 7.5), 7.5);
  EXPECT_EQ(scaler.inverse(0, 7.5), 7.5);
}

TEST(Scaler, AConstantColumnIsNamedUnlessItIsKept) {
  // Constant in the training rows, though not behind them.
  const Table table = make_table({{"a", {1, 2, 3, 4}}, {"stuck", {0.1, 0.1, 0.1, 7}}});
  const std::vector<std::string> names{"a", "stuck"};
  for (const char* kind : {"standard", "min_max"}) {
    const std::string message = message_of([&] { Scaler::fit(table, names, RowRange{0, 3}, {.kind = kind}); });
    EXPECT_THAT(message, HasSubstr("t.csv: column 'stuck' is constant (0.1) in all 3 training rows"));
    EXPECT_THAT(message, HasSubstr("scaler.constant_column=keep"));
  }
  const Scaler kept = Scaler::fit(table, names, RowRange{0, 3}, {.constant_column = "keep"});
  EXPECT_EQ(kept.transform(1, 0.1), 0);
  EXPECT_EQ(kept.transform(1, 7), 7 - 0.1);
  EXPECT_EQ(kept.inverse(1, 0), 0.1);
  const Scaler low =
      Scaler::fit(table, names, RowRange{0, 3}, {.kind = "min_max", .low = -1, .constant_column = "keep"});
  EXPECT_DOUBLE_EQ(low.transform(1, 0.1), -1);
}

TEST(Scaler, JsonReturnsTheSameBits) {
  const Table table = make_table({{"odd \"name\"", {0.1, 0.7, 1e-300, 3}}, {"b", {1e20, -1e19, 3, 1.0 / 3}}});
  const std::vector<std::string> names{"odd \"name\"", "b"};
  for (const char* kind : {"standard", "min_max", "none"}) {
    const Scaler scaler = Scaler::fit(table, names, RowRange{0, 4}, {.kind = kind, .low = -1});
    const std::string text = json_text(scaler.to_json(), 2);
    const Scaler back = Scaler::from_json(parse_json<nlohmann::ordered_json>(text), "dataset_statistics.json");
    for (std::size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(back.statistics(c), scaler.statistics(c));
      EXPECT_EQ(back.transform(c, 0.3), scaler.transform(c, 0.3)) << kind;
    }
    EXPECT_EQ(json_text(back.to_json(), 2), text);
  }
}

TEST(Scaler, ADamagedFileIsNamedWithTheField) {
  const auto load = [](const char* text) {
    return message_of([&] { Scaler::from_json(parse_json<nlohmann::ordered_json>(text), "s.json"); });
  };
  EXPECT_THAT(load("[]"), HasSubstr("s.json: no scaler: the text 'kind' is missing"));
  EXPECT_THAT(load(R"({"kind": "standard"})"), HasSubstr("'columns' is missing"));
  EXPECT_THAT(load(R"({"kind": "standard", "low": 0, "high": 1, "rows": 3, "columns": {"a": {"mean": 1}}})"),
              HasSubstr("s.json: column 'a': the number 'std' is missing"));
  EXPECT_THAT(load(R"({"kind": "robust", "low": 0, "high": 1, "rows": 3, "columns": {}})"),
              HasSubstr("s.json: data.scaler.kind 'robust'"));
}

TEST(Scaler, SelectedColumnsGoBackToTheirUnits) {
  const Table table = make_table({{"a", {0, 2}}, {"b", {10, 30}}, {"c", {-5, 5}}});
  const std::vector<std::string> names{"a", "b", "c"}, chosen{"c", "b"};
  const Scaler scaler = Scaler::fit(table, names, RowRange{0, 2}, {}).select(chosen);
  std::vector<float> values{1, 1, -1, 0};
  scaler.inverse(values);
  EXPECT_EQ(values, (std::vector<float>{5, 30, -5, 20}));
  EXPECT_THAT(message_of([&] { static_cast<void>(scaler.index_of("a")); }), HasSubstr("no column 'a'"));
  std::vector<float> ragged(3);
  EXPECT_THAT(message_of([&] { scaler.inverse(ragged); }), HasSubstr("3 values are no rows of 2 columns"));
}

TEST(Scaler, AMissingOrInfiniteValueIsNamedWithColumnAndRow) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Table table = make_table({{"a", {1, 2, nan, 4, 1e300}}});
  const std::vector<std::string> names{"a"};
  EXPECT_THAT(message_of([&] {
                Scaler::fit(table, names, RowRange{0, 4}, {});
              }),
              HasSubstr("t.csv: column 'a' holds nan in row 3"));
  const Scaler scaler = Scaler::fit(table, names, RowRange{0, 2}, {});
  std::vector<float> out(5);
  EXPECT_THAT(message_of([&] { scaler.transform_column(table, table.column("a"), 0, out.data(), 1); }),
              HasSubstr("column 'a' holds nan in row 3"));
  const Table large = make_table({{"a", {1, 2, 1e300}}});
  EXPECT_THAT(message_of([&] { scaler.transform_column(large, large.column("a"), 0, out.data(), 1); }),
              HasSubstr("holds 1e+300 in row 3 (the first row is 1), which is inf after scaling"));
  EXPECT_THAT(message_of([&] { Scaler::fit(large, names, RowRange{0, 3}, {}); }), HasSubstr("too large"));
}

// missing=drop_row alone leaves an infinity where it is: the reader takes it for a number.
TEST(Scaler, TheRemedyForAnInfinityIsToReadItAsMissing) {
  const Table table = make_table({{"a", {1, 2, -std::numeric_limits<double>::infinity(), 4}}});
  const std::vector<std::string> names{"a"};
  EXPECT_THAT(
      message_of([&] {
        Scaler::fit(table, names, RowRange{0, 4}, {});
      }),
      HasSubstr(
          "(data.csv.missing_values=-inf), and drop or fill such rows (data.csv.missing=drop_row or forward_fill)"));
}

TEST(Scaler, BadSettingsAndEmptyPartsAreErrors) {
  const Table table = make_table({{"a", {1, 2}}});
  const std::vector<std::string> names{"a"};
  EXPECT_THAT(message_of([&] { Scaler::fit(table, names, RowRange{1, 1}, {}); }), HasSubstr("no training rows"));
  EXPECT_THAT(message_of([&] {
                Scaler::fit(table, names, RowRange{0, 2}, {.kind = "max"});
              }),
              HasSubstr("standard, min_max, none"));
  EXPECT_THAT(message_of([&] {
                Scaler::fit(table, names, RowRange{0, 2}, {.kind = "min_max", .low = 2, .high = 2});
              }),
              HasSubstr("data.scaler.low = 2 must be below data.scaler.high = 2"));
  EXPECT_THAT(message_of([&] {
                Scaler::fit(table, names, RowRange{0, 2}, {.constant_column = "drop"});
              }),
              HasSubstr("error, keep"));
}

}  // namespace
}  // namespace cohort::tables
