#include "report/test_metrics.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "core/philox.h"

namespace cohort::report {
namespace {

constexpr double kRounding = 1e-12;  // relative, double sums of a few thousand terms

/// The definitions, in long double and two passes.
ErrorMetrics by_definition(const std::vector<double>& truth, const std::vector<double>& prediction) {
  long double mean = 0, squared = 0, absolute = 0, spread = 0;
  const auto n = static_cast<long double>(truth.size());
  for (const double t : truth) mean += t / n;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const long double error = static_cast<long double>(prediction[i]) - truth[i];
    squared += error * error;
    absolute += std::abs(error);
    spread += (truth[i] - mean) * (truth[i] - mean);
  }
  ErrorMetrics m;
  m.mse = static_cast<double>(squared / n);
  m.mae = static_cast<double>(absolute / n);
  m.rmse = static_cast<double>(std::sqrt(squared / n));
  m.r2 = static_cast<double>(1 - squared / spread);
  return m;
}

void expect_close(const ErrorMetrics& a, const ErrorMetrics& b, double relative) {
  EXPECT_NEAR(a.mse, b.mse, relative * std::abs(b.mse));
  EXPECT_NEAR(a.mae, b.mae, relative * std::abs(b.mae));
  EXPECT_NEAR(a.rmse, b.rmse, relative * std::abs(b.rmse));
  EXPECT_NEAR(a.r2, b.r2, relative);
}

/// (n, horizon, 2) values of which the first target has an offset of `offset`.
struct Data {
  static constexpr std::int64_t kSamples = 500, kHorizon = 4;
  std::vector<double> truth, prediction;
  explicit Data(double offset) {
    const RandomStream random(3, RandomPurpose::kTest, 0, 0);
    for (std::uint64_t i = 0; i < kSamples * kHorizon; ++i) {
      truth.push_back(offset + random.normal(4 * i));
      prediction.push_back(truth.back() + 0.1 * random.normal(4 * i + 1));
      truth.push_back(5 * random.normal(4 * i + 2));
      prediction.push_back(truth.back() + random.normal(4 * i + 3));
    }
  }
  ArrayView view(std::vector<double>& v, std::int64_t first, std::int64_t count) {
    return make_view(v.data() + first * kHorizon * 2, {count, kHorizon, 2});
  }
  std::vector<double> target(const std::vector<double>& v, std::size_t t) const {
    std::vector<double> column;
    for (std::size_t i = t; i < v.size(); i += 2) column.push_back(v[i]);
    return column;
  }
};

TEST(TestMetrics, EqualTheDefinitionsPerTargetAndOverall) {
  Data data(0);
  TestMetricsSum sum({"elbow", "shoulder"});
  sum.add(data.view(data.truth, 0, Data::kSamples), data.view(data.prediction, 0, Data::kSamples));
  const TestMetrics metrics = sum.result();
  ASSERT_EQ(metrics.targets.size(), 2u);
  std::vector<double> r2;
  for (std::size_t t = 0; t < 2; ++t) {
    const ErrorMetrics expected = by_definition(data.target(data.truth, t), data.target(data.prediction, t));
    expect_close(metrics.targets[t], expected, kRounding);
    EXPECT_EQ(metrics.targets[t].count, Data::kSamples * Data::kHorizon);
    r2.push_back(expected.r2);
  }
  ErrorMetrics overall = by_definition(data.truth, data.prediction);
  overall.r2 = (r2[0] + r2[1]) / 2;
  expect_close(metrics.overall, overall, kRounding);
}

TEST(TestMetrics, ALargeOffsetDoesNotSwallowTheVariance) {
  // The textbook formula, mean of squares minus square of mean, is off by everything here: 1e18 has no room for 1.
  Data data(1e9);
  TestMetricsSum sum({"a", "b"});
  sum.add(data.view(data.truth, 0, Data::kSamples), data.view(data.prediction, 0, Data::kSamples));
  const ErrorMetrics expected = by_definition(data.target(data.truth, 0), data.target(data.prediction, 0));
  EXPECT_NEAR(expected.r2, 0.99, 0.005);
  expect_close(sum.result().targets[0], expected, 1e-6);  // inputs near 1e9 carry an error of 1e-7 themselves
}

TEST(TestMetrics, BatchesAndRanksInAnySplitGiveTheSame) {
  Data data(100);
  TestMetricsSum whole({"a", "b"});
  whole.add(data.view(data.truth, 0, Data::kSamples), data.view(data.prediction, 0, Data::kSamples));
  TestMetricsSum rank0({"a", "b"}), rank1({"a", "b"}), rank2({"a", "b"});
  const auto add = [&](TestMetricsSum& sum, std::int64_t first, std::int64_t count) {
    sum.add(data.view(data.truth, first, count), data.view(data.prediction, first, count));
  };
  add(rank0, 0, 33);
  add(rank0, 33, 1);
  add(rank1, 34, Data::kSamples - 34);
  rank0.merge(rank1.state());
  rank0.merge(rank2.state());  // a rank without samples
  rank2.merge(rank0.state());
  for (const TestMetricsSum* sum : {&rank0, &rank2})
    for (std::size_t t = 0; t < 2; ++t) expect_close(sum->result().targets[t], whole.result().targets[t], 1e-11);
}

TEST(TestMetrics, AConstantTargetHasNoR2AndDoesNotSpoilTheOverallOne) {
  std::vector<float> truth = {0.1f, 1, 0.1f, 2, 0.1f, 3}, prediction = {0.1f, 1, 0.2f, 2, 0.1f, 3.5f};
  TestMetricsSum sum({"constant", "moving"});
  sum.add(make_view(truth.data(), {3, 2}), make_view(prediction.data(), {3, 2}));
  const TestMetrics metrics = sum.result();
  EXPECT_TRUE(std::isnan(metrics.targets[0].r2));
  EXPECT_NEAR(metrics.targets[0].mae, 0.1 / 3, 1e-7);
  EXPECT_DOUBLE_EQ(metrics.targets[1].r2, 1 - 0.25 / 2);
  EXPECT_DOUBLE_EQ(metrics.overall.r2, metrics.targets[1].r2);
  EXPECT_NE(metrics.to_table().find("constant    constant"), std::string::npos) << metrics.to_table();
  EXPECT_TRUE(parse_json<nlohmann::json>(metrics.to_json())["targets"]["constant"]["r2"].is_null());
}

TEST(TestMetrics, OneSampleHasErrorsButNoR2) {
  std::vector<float> truth = {2}, prediction = {5};
  TestMetricsSum sum({"a"});
  sum.add(make_view(truth.data(), {1, 1}), make_view(prediction.data(), {1, 1}));
  EXPECT_DOUBLE_EQ(sum.result().overall.rmse, 3);
  EXPECT_TRUE(std::isnan(sum.result().overall.r2));
}

TEST(TestMetrics, ANanPredictionIsNotHidden) {
  std::vector<float> truth = {1, 2}, prediction = {1, std::numeric_limits<float>::quiet_NaN()};
  TestMetricsSum sum({"a"});
  sum.add(make_view(truth.data(), {2, 1}), make_view(prediction.data(), {2, 1}));
  const TestMetrics metrics = sum.result();
  EXPECT_TRUE(std::isnan(metrics.overall.mse));
  EXPECT_NE(metrics.to_table().find("nan"), std::string::npos);
  EXPECT_TRUE(parse_json<nlohmann::json>(metrics.to_json())["overall"]["mse"].is_null());
}

TEST(TestMetrics, TheTableIsAlignedWhateverTheNames) {
  std::vector<float> truth = {1, 2, 3, 4, 5, 6}, prediction = {1, 2, 3, 4, 5, 7};
  TestMetricsSum sum({"温度", "a long name of a target"});
  sum.add(make_view(truth.data(), {3, 2}), make_view(prediction.data(), {3, 2}));
  EXPECT_EQ(sum.result().to_table(),
            "target                           R2        RMSE         MAE         MSE\n"
            "温度                              1           0           0           0\n"
            "a long name of a target       0.875     0.57735     0.33333     0.33333\n"
            "overall                      0.9375     0.40825     0.16667     0.16667\n");
}

TEST(TestMetrics, WrongShapesAndTypesAreNamed) {
  std::vector<float> a(6), b(6);
  std::vector<std::int64_t> whole(6);
  TestMetricsSum sum({"x", "y"});
  const auto message = [&](const ArrayView& truth, const ArrayView& prediction) {
    return message_of([&] { sum.add(truth, prediction); });
  };
  EXPECT_EQ(message(make_view(a.data(), {3, 2}), make_view(b.data(), {2, 2})),
            "truth (3, 2) and prediction (2, 2) differ in shape");
  EXPECT_EQ(message(make_view(a.data(), {2, 3}), make_view(b.data(), {2, 3})),
            "the last dimension of (2, 3) is not the number of targets, 2");
  EXPECT_EQ(message(make_view(whole.data(), {3, 2}), make_view(whole.data(), {3, 2})),
            "metrics are taken of float32 or float64 arrays, not int64");
  EXPECT_THROW(sum.result(), Error);
}

}  // namespace
}  // namespace cohort::report
