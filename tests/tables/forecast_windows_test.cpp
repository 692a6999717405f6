#include "tables/forecast_windows.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "data/allocation_count.h"
#include "tables/csv.h"
#include "tables/date_text.h"

namespace cohort::tables {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kParts[] = {"training", "validation", "test"};
constexpr double kHour = 3600;

// Both sides round the same float64 value to float32, or neighbours of it: the mean is summed in another order.
constexpr double kOneFloatStep = 1.2e-7;

RowRange part_of(const TimeSplit& split, int part) {
  return part == 0 ? split.train : part == 1 ? split.validation : split.test;
}

/// A sample with room of its own; fields are poisoned before they are read.
struct Sample {
  explicit Sample(const data::Dataset& dataset) {
    for (const data::FieldSpec& field : dataset.fields()) {
      std::int64_t n = 1;
      for (std::int64_t d : field.sample_shape) n *= d;
      values.emplace_back(static_cast<std::size_t>(n), -77.0f);
      views.push_back(make_view(values.back().data(), field.type, field.sample_shape));
    }
  }
  std::vector<std::vector<float>> values;
  std::vector<ArrayView> views;
};

Sample read(const data::Dataset& dataset, std::int64_t index) {
  Sample sample(dataset);
  dataset.read(index, 0, sample.views);
  return sample;
}

/// Column c of row r holds 100 * c + r; hourly dates.
Table counting_table(int rows, int columns, bool with_dates) {
  Table table("t.csv");
  if (with_dates) {
    std::vector<double> dates;
    for (int r = 0; r < rows; ++r) dates.push_back(1467331200 + kHour * r);
    table.add(Column("date", std::span<const double>(dates), ColumnKind::kDate));
  }
  for (int c = 0; c < columns; ++c) {
    std::vector<double> values;
    for (int r = 0; r < rows; ++r) values.push_back(100 * c + r);
    table.add(Column("c" + std::to_string(c), std::span<const double>(values)));
  }
  return table;
}

WindowSettings settings_of(const nlohmann::json& expected, const std::string& target, const std::string& freq) {
  return {.seq_len = expected["size"][0],
          .label_len = expected["size"][1],
          .pred_len = expected["size"][2],
          .features = expected["features"],
          .target = target,
          .freq = freq,
          .time_encoding = expected["timeenc"] == 1 ? "scaled" : "fields"};
}

nlohmann::json fixture() {
  return parse_json<nlohmann::json>(read_file(COHORT_SOURCE_DIR "/tests/tables/forecast_window_fixtures.json"));
}

// Fields of the reference are (x, y, x_mark, y_mark), as ours are.
TEST(ForecastWindows, EqualDatasetCustomOfInformerElementByElement) {
  const nlohmann::json all = fixture();
  Table table("custom.csv");
  std::vector<double> dates;
  for (const auto& date : all["custom_table"]["date"]) {
    double seconds = 0;
    ASSERT_EQ(parse_date(date.get<std::string>(), DateOrder::kYearMonthDay, seconds), nullptr);
    dates.push_back(seconds);
  }
  table.add(Column("date", std::span<const double>(dates), ColumnKind::kDate));
  for (const char* name : {"left", "load", "right"})
    table.add(Column(name, std::span<const double>(all["custom_table"][name].get<std::vector<double>>())));

  ASSERT_EQ(all["custom"].size(), 3u);
  for (const auto& expected : all["custom"]) {
    const WindowSettings settings = settings_of(expected, "load", "auto");
    const TimeSplit split = split_by_time(table.rows(), {}, table.name());
    const auto series = ForecastSeries::make(table, split.train, settings);
    if (settings.features != "S") {
      EXPECT_THAT(series->columns(), ElementsAre("left", "right", "load"));
    }
    for (int part = 0; part < 3; ++part) {
      SCOPED_TRACE(settings.features + " " + kParts[part]);
      const ForecastWindows windows(series, part_of(split, part), kParts[part]);
      EXPECT_EQ(windows.size(), expected["parts"][part]["length"].get<std::int64_t>());
      for (const auto& window : expected["parts"][part]["windows"]) {
        const Sample sample = read(windows, window["index"]);
        ASSERT_EQ(sample.values.size(), 4u);
        for (std::size_t f = 0; f < 4; ++f) {
          const auto wanted = window["fields"][f].get<std::vector<double>>();
          ASSERT_EQ(sample.values[f].size(), wanted.size()) << "field " << f;
          for (std::size_t k = 0; k < wanted.size(); ++k)
            EXPECT_NEAR(sample.values[f][k], wanted[k], kOneFloatStep * std::max(1.0, std::abs(wanted[k])))
                << "window " << window["index"] << ", field " << f << ", element " << k;
        }
      }
    }
  }
}

std::filesystem::path shared_file(const char* name) {
  const char* folder = std::getenv("COHORT_SHARED");
  return std::filesystem::path(folder != nullptr ? folder : COHORT_SOURCE_DIR "/../shared") / name;
}

/// The plain sum, and the one in which element k weighs (k + 1) * golden ratio modulo 1.
std::pair<double, double> sums(const std::vector<float>& values) {
  double plain = 0, weighted = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    plain += values[k];
    weighted += values[k] * std::fmod((static_cast<double>(k) + 1) * 0.6180339887498949, 1.0);
  }
  return {plain, weighted};
}

TEST(ForecastWindows, EqualDatasetEttHourOfInformerOnEtth1) {
  const std::filesystem::path path = shared_file("data/ETTh1.csv");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ETTh1.csv in the folder COHORT_SHARED/data";
  const Table table = read_csv(path);
  const TimeSplit split = split_by_time(table.rows(), {.kind = "ett_hour"}, table.name());
  const nlohmann::json all = fixture();
  ASSERT_EQ(all["ett"].size(), 5u);
  for (const auto& expected : all["ett"]) {
    const std::string target = expected["target"];
    const auto series = ForecastSeries::make(table, split.train, settings_of(expected, target, "h"));
    ASSERT_EQ(series->scaler().size(), expected["mean"].size());
    constexpr double kOrderOfSummation = 1e-12;  // relative; numpy sums pairwise
    for (std::size_t c = 0; c < series->scaler().size(); ++c) {
      EXPECT_NEAR(series->scaler().statistics(c).mean / expected["mean"][c].get<double>(), 1, kOrderOfSummation);
      EXPECT_NEAR(series->scaler().statistics(c).std / expected["std"][c].get<double>(), 1, kOrderOfSummation);
    }
    for (int part = 0; part < 3; ++part) {
      SCOPED_TRACE(expected["features"].get<std::string>() + " " + kParts[part]);
      const ForecastWindows windows(series, part_of(split, part), kParts[part]);
      EXPECT_EQ(windows.size(), expected["parts"][part]["length"].get<std::int64_t>());
      const std::vector<data::FieldSpec> fields = windows.fields();
      for (const auto& window : expected["parts"][part]["windows"]) {
        const Sample sample = read(windows, window["index"]);
        ASSERT_EQ(sample.values.size(), 4u);
        for (std::size_t f = 0; f < 4; ++f) {
          EXPECT_EQ(fields[f].sample_shape, window["shapes"][f].get<std::vector<std::int64_t>>()) << fields[f].name;
          const auto [plain, weighted] = sums(sample.values[f]);
          // Each element is rounded to float32 at a magnitude of at most 8.
          const double rounding = 8 * kOneFloatStep * static_cast<double>(sample.values[f].size());
          EXPECT_NEAR(plain, window["sums"][f][0].get<double>(), rounding) << fields[f].name;
          EXPECT_NEAR(weighted, window["sums"][f][1].get<double>(), rounding) << fields[f].name;
        }
      }
    }
  }
}

TEST(ForecastWindows, EveryWindowHoldsItsOwnRows) {
  const Table table = counting_table(30, 2, true);
  const TimeSplit split = split_by_time(30, {.rows = {18, 6, 6}}, table.name());
  const auto series = ForecastSeries::make(
      table, split.train, {.seq_len = 4, .label_len = 3, .pred_len = 2, .target = "c0"}, {.kind = "none"});
  for (int part = 0; part < 3; ++part) {
    const RowRange range = part_of(split, part);
    const ForecastWindows windows(series, range, kParts[part]);
    ASSERT_EQ(windows.size(), part == 0 ? 13 : 5);
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      const Sample sample = read(windows, i);
      const std::int64_t first = windows.first_row(i);
      EXPECT_EQ(first, (part == 0 ? 0 : range.begin - 4) + i);
      EXPECT_GE(first + 4, range.begin) << "a forecast row of another part";
      EXPECT_LE(first + 6, range.end);
      for (int r = 0; r < 4; ++r) {
        EXPECT_EQ(sample.values[0][static_cast<std::size_t>(2 * r)], 100 + first + r);  // c1, then the target c0
        EXPECT_EQ(sample.values[0][static_cast<std::size_t>(2 * r + 1)], first + r);
      }
      for (int r = 0; r < 5; ++r) EXPECT_EQ(sample.values[1][static_cast<std::size_t>(2 * r + 1)], first + 1 + r);
    }
  }
}

TEST(ForecastWindows, MsForecastsTheTargetFromAllColumnsAndSFromItself) {
  const Table table = counting_table(20, 3, true);
  const auto make = [&](const char* features) {
    return ForecastSeries::make(table, {0, 20},
                                {.seq_len = 4, .label_len = 2, .pred_len = 1, .features = features, .target = "c1"});
  };
  EXPECT_THAT(make("MS")->columns(), ElementsAre("c0", "c2", "c1"));
  EXPECT_EQ(make("MS")->n_target(), 1);
  EXPECT_EQ(make("M")->n_target(), 3);
  EXPECT_THAT(make("S")->columns(), ElementsAre("c1"));
  EXPECT_EQ(make("S")->n_target(), 1);
  EXPECT_THAT(make("M")->marks(), ElementsAre("hour", "weekday", "day", "day_of_year"));
  EXPECT_EQ(make("M")->frequency(), Frequency::kHour);
}

TEST(ForecastWindows, WithoutDatesThereAreNoMarks) {
  const Table table = counting_table(20, 2, false);
  const auto series =
      ForecastSeries::make(table, {0, 20}, {.seq_len = 4, .label_len = 2, .pred_len = 1}, {.kind = "none"});
  EXPECT_EQ(series->n_mark(), 0);
  EXPECT_FALSE(series->frequency());
  const ForecastWindows windows(series, {0, 20}, "training");
  ASSERT_EQ(windows.fields().size(), 2u);
  EXPECT_EQ(read(windows, 15).values[1], (std::vector<float>{17, 117, 18, 118, 19, 119}));
}

TEST(ForecastWindows, ASavedScalerGivesTheSameWindows) {
  const Table table = counting_table(40, 3, true);
  const WindowSettings settings{.seq_len = 6, .label_len = 2, .pred_len = 3, .target = "c1"};
  const auto trained = ForecastSeries::make(table, {0, 25}, settings);
  const auto loaded =
      ForecastSeries::make(table, Scaler::from_json(trained->scaler().to_json(), "dataset_statistics.json"), settings);
  EXPECT_EQ(std::vector<float>(loaded->values().begin(), loaded->values().end()),
            std::vector<float>(trained->values().begin(), trained->values().end()));
  // Rows behind the training part have no say: (row - 12) / sqrt((25^2 - 1) / 12).
  EXPECT_FLOAT_EQ(trained->values()[3 * 39], static_cast<float>(27 / std::sqrt(52.0)));
}

TEST(ForecastWindows, ReadingAllocatesNothingAndIsTheSameFromAnyThread) {
  const Table table = counting_table(60, 3, true);
  const auto series = ForecastSeries::make(table, {0, 60}, {.seq_len = 8, .label_len = 4, .pred_len = 4});
  const ForecastWindows windows(series, {0, 60}, "training");
  Sample sample(windows);
  const std::int64_t before = allocation_count();
  for (std::int64_t i = 0; i < windows.size(); ++i) windows.read(i, 3, sample.views);
  EXPECT_EQ(allocation_count(), before);

  std::vector<Sample> samples(4, Sample(windows));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < samples.size(); ++t) {
    samples[t] = Sample(windows);
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < windows.size(); ++i) windows.read(i, t, samples[t].views);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Sample& other : samples) EXPECT_EQ(other.values, sample.values);
}

TEST(ForecastWindows, FewerRowsThanAWindowAreToldWithNumbersPartAndRemedy) {
  const Table table = counting_table(100, 2, true);
  const auto series = ForecastSeries::make(table, {0, 70}, {.seq_len = 48, .label_len = 24, .pred_len = 24});
  const auto window = [&](RowRange part, const char* name) {
    return message_of([&] { ForecastWindows(series, part, name); });
  };
  EXPECT_THAT(window({0, 70}, "training"),
              HasSubstr("t.csv: the training part has 70 rows, but a window needs 72 (seq_len 48 + pred_len 24); lower "
                        "data.windows.seq_len or data.windows.pred_len"));
  EXPECT_THAT(window({70, 80}, "validation"),
              HasSubstr("t.csv: the validation part has 10 rows, but a window needs 24 of its own (pred_len)"));
  EXPECT_THAT(window({40, 80}, "validation"),
              HasSubstr("before the validation part there are 40 rows, but its first window looks back 48 (seq_len)"));
  EXPECT_EQ(ForecastWindows(series, {0, 72}, "training").size(), 1);
  EXPECT_EQ(ForecastWindows(series, {70, 94}, "validation").size(), 1);
}

TEST(ForecastWindows, WrongSettingsAreNamed) {
  Table table = counting_table(30, 3, true);
  const auto make = [&](const WindowSettings& s) {
    return message_of([&] { ForecastSeries::make(table, {0, 30}, s); });
  };
  EXPECT_THAT(make({.seq_len = 0}), HasSubstr("seq_len must be at least 1"));
  EXPECT_THAT(make({.pred_len = 0}), HasSubstr("pred_len must be at least 1"));
  EXPECT_THAT(make({.seq_len = 8, .label_len = 9}),
              HasSubstr("data.windows.label_len = 9 is above data.windows.seq_len = 8"));
  EXPECT_THAT(make({.features = "SM"}), HasSubstr("features 'SM' is not one of M"));
  EXPECT_THAT(make({.target = "c7"}), HasSubstr("c7"));
  EXPECT_THAT(make({.columns = {"c0", "c0"}}), HasSubstr("columns names 'c0' twice"));
  EXPECT_THAT(make({.date_column = "c0"}), HasSubstr("column 'c0' holds no dates"));
  EXPECT_THAT(make({.freq = "hourly"}), HasSubstr("freq 'hourly' is not known"));
  const std::vector<double> other(30, 0.0);
  table.add(Column("billed", std::span<const double>(other), ColumnKind::kDate));
  EXPECT_THAT(make({}), HasSubstr("there are 2 columns of dates (date, billed)"));
  EXPECT_EQ(make({.date_column = "date"}), "");
  Table empty("e.csv");
  EXPECT_THAT(message_of([&] {
                ForecastSeries::make(empty, RowRange{0, 0}, {});
              }),
              HasSubstr("e.csv: there is no column of numbers"));
}

TEST(ForecastWindows, AMissingDateIsNamedWithItsRow) {
  Table table("t.csv");
  table.add(Column("when", std::vector<double>{0, kHour, NAN, 3 * kHour}, ColumnKind::kDate));
  table.add(Column("v", std::vector<double>{1, 2, 3, 4}));
  EXPECT_THAT(message_of([&] {
                ForecastSeries::make(table, {0, 4}, {.seq_len = 1, .label_len = 1, .pred_len = 1});
              }),
              HasSubstr("t.csv: column 'when' lacks the date of row 3"));
}

}  // namespace
}  // namespace cohort::tables
