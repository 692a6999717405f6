#include "tables/split.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config.h"
#include "core/message_of.h"

namespace cohort::tables {
namespace {

using testing::HasSubstr;

TEST(Split, FractionsRoundAsDatasetCustomDoes) {
  for (const std::int64_t rows : {10, 61, 999, 10000, 17420}) {
    const TimeSplit split = split_by_time(rows, {}, "t.csv");
    const std::int64_t train = static_cast<int>(static_cast<double>(rows) * 0.7);
    const std::int64_t test = static_cast<int>(static_cast<double>(rows) * 0.2);
    EXPECT_EQ(split.train, (RowRange{0, train}));
    EXPECT_EQ(split.validation, (RowRange{train, rows - test}));
    EXPECT_EQ(split.test, (RowRange{rows - test, rows}));
  }
}

TEST(Split, EttBordersAreThePublishedOnes) {
  const TimeSplit hour = split_by_time(17420, {.kind = "ett_hour"}, "ETTh1.csv");
  EXPECT_EQ(hour.train, (RowRange{0, 8640}));
  EXPECT_EQ(hour.validation, (RowRange{8640, 11520}));
  EXPECT_EQ(hour.test, (RowRange{11520, 14400}));
  const TimeSplit minute = split_by_time(69680, {.kind = "ett_minute"}, "ETTm1.csv");
  EXPECT_EQ(minute.test, (RowRange{46080, 57600}));
  EXPECT_EQ(split_by_time(17420, {.rows = {8640, 2880, 2880}}, "t").test, hour.test);
}

TEST(Split, NoRowGoesAstrayWhereNothingIsMeantToValidate) {
  const TimeSplit split = split_by_time(7, {.train_fraction = 0.7, .test_fraction = 0.3}, "t");
  EXPECT_EQ(split.train, (RowRange{0, 5}));
  EXPECT_EQ(split.validation.size(), 0);
  EXPECT_EQ(split.test, (RowRange{5, 7}));
}

TEST(Split, ARandomSplitUsesEveryRowOnceAndDependsOnTheSeedOnly) {
  const SplitSettings settings{.kind = "random", .seed = 5};
  const RowSplit split = split_rows(1000, settings, "t");
  EXPECT_EQ(split.train.size(), 700u);
  EXPECT_EQ(split.validation.size(), 100u);
  EXPECT_EQ(split.test.size(), 200u);
  std::vector<std::int64_t> all = split.train;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  all.insert(all.end(), split.test.begin(), split.test.end());
  std::sort(all.begin(), all.end());
  for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(std::is_sorted(split.test.begin(), split.test.end()));

  EXPECT_EQ(split_rows(1000, settings, "other").test, split.test);
  EXPECT_NE(split_rows(1000, {.kind = "random", .seed = 6}, "t").test, split.test);
}

TEST(Split, ARandomSplitFavoursNoRows) {
  // Each row lands in the test part with probability 0.2: over 4000 seeds a binomial of mean 800, deviation 25.3.
  constexpr int kRows = 10, kSeeds = 4000;
  constexpr double kFiveDeviations = 5 * 25.3;
  std::vector<int> hits(kRows);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    for (std::int64_t row : split_rows(kRows, {.kind = "random", .seed = seed}, "t").test)
      ++hits[static_cast<std::size_t>(row)];
  for (int row = 0; row < kRows; ++row)
    EXPECT_NEAR(hits[static_cast<std::size_t>(row)], 0.2 * kSeeds, kFiveDeviations) << "row " << row;
}

TEST(Split, RowsInOrderEqualTheRanges) {
  const RowSplit split = split_rows(20, {}, "t");
  EXPECT_EQ(split.validation, (std::vector<std::int64_t>{14, 15}));
  EXPECT_EQ(split.test, (std::vector<std::int64_t>{16, 17, 18, 19}));
}

TEST(Split, WhatDoesNotFitIsNamedWithNumbersAndRemedy) {
  const auto by_time = [](std::int64_t rows, const SplitSettings& s) {
    return message_of([&] { split_by_time(rows, s, "t.csv"); });
  };
  EXPECT_THAT(by_time(14399, {.kind = "ett_hour"}), HasSubstr("t.csv: the split ett_hour takes 12 + 4 + 4 months of 30 "
                                                              "days = 14400 rows, but there are 14399"));
  EXPECT_THAT(by_time(14399, {.kind = "ett_hour"}), HasSubstr("split.kind=time"));
  EXPECT_THAT(by_time(100, {.rows = {80, 20, 1}}), HasSubstr("80 + 20 + 1 = 101 rows, but there are 100"));
  EXPECT_THAT(by_time(100, {.rows = {80, 20}}), HasSubstr("takes 3 numbers"));
  EXPECT_THAT(by_time(100, {.rows = {0, 50, 50}}), HasSubstr("no row to train on"));
  EXPECT_THAT(by_time(100, {.rows = {-1, 50, 50}}), HasSubstr("-1 is negative"));
  EXPECT_THAT(by_time(100, {.kind = "ett_hour", .rows = {1, 1, 1}}), HasSubstr("set only one"));
  EXPECT_THAT(by_time(4, {}), HasSubstr("t.csv: the test part would be empty: 0.2 of 4 rows"));
  EXPECT_THAT(by_time(0, {}), HasSubstr("t.csv: there are no rows"));
  EXPECT_THAT(by_time(9, {.train_fraction = 0.9, .test_fraction = 0.2}), HasSubstr("0.9 + 0.2 is above 1"));
  EXPECT_THAT(by_time(9, {.train_fraction = 0}), HasSubstr("train_fraction must be above 0"));
  EXPECT_THAT(by_time(9, {.test_fraction = -0.1}), HasSubstr("test_fraction must be at least 0"));
  EXPECT_THAT(by_time(100, {.kind = "random"}), HasSubstr("t.csv: rows in random order hold no windows"));
  EXPECT_THAT(message_of([] { split_rows(9, {.kind = "shuffle"}, "t"); }), HasSubstr("time, random, ett_hour"));
}

TEST(Split, SettingsAreBoundByName) {
  SplitSettings settings;
  config::Fields fields;
  describe(fields, settings);
  fields.apply_override("rows=6,2,1");
  fields.apply_override("kind=random");
  EXPECT_EQ(settings.rows, (std::vector<int>{6, 2, 1}));
  EXPECT_EQ(settings.kind, "random");
}

}  // namespace
}  // namespace cohort::tables
