#include "report/test_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "core/markup.h"
#include "core/progress_line.h"

namespace cohort::report {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

std::string shape_text(const ArrayView& view) {
  std::string text = "(";
  for (int i = 0; i < view.rank; ++i)
    text += format("{}{}", i == 0 ? "" : ", ", view.shape[static_cast<std::size_t>(i)]);
  return text + ")";
}

nlohmann::ordered_json to_object(const ErrorMetrics& m) {
  return {{"r2", m.r2}, {"rmse", m.rmse}, {"mae", m.mae}, {"mse", m.mse}, {"count", m.count}};
}

std::string number(double value) {
  return std::isfinite(value) ? format("{:.5g}", value) : format("{}", value);
}

}  // namespace

TestMetricsSum::TestMetricsSum(std::vector<std::string> targets) : names_(std::move(targets)), columns_(names_.size()) {
  COHORT_CHECK(!names_.empty(), "metrics need at least one target");
}

template <class T>
void TestMetricsSum::add_values(std::span<const T> truth, std::span<const T> prediction) {
  const std::size_t n = columns_.size();
  for (std::size_t i = 0; i < truth.size(); ++i) {
    Column& c = columns_[i % n];
    const double t = truth[i], error = static_cast<double>(prediction[i]) - t;
    ++c.count;
    const double from_old_mean = t - c.mean;
    c.mean += from_old_mean / c.count;
    c.spread += from_old_mean * (t - c.mean);
    c.squared += error * error;
    c.absolute += std::abs(error);
  }
}

void TestMetricsSum::add(const ArrayView& truth, const ArrayView& prediction) {
  COHORT_THROW_UNLESS(truth.rank == prediction.rank && truth.shape == prediction.shape,
                      "truth {} and prediction {} differ in shape", shape_text(truth), shape_text(prediction));
  COHORT_THROW_UNLESS(truth.rank >= 1 && truth.shape[static_cast<std::size_t>(truth.rank - 1)] == std::ssize(names_),
                      "the last dimension of {} is not the number of targets, {}", shape_text(truth), names_.size());
  COHORT_THROW_UNLESS(truth.type == prediction.type, "truth is {}, prediction {}", element_name(truth.type),
                      element_name(prediction.type));
  if (truth.type == ElementType::kFloat32)
    add_values<float>(truth.span<float>(), prediction.span<float>());
  else if (truth.type == ElementType::kFloat64)
    add_values<double>(truth.span<double>(), prediction.span<double>());
  else
    throw Error(format("metrics are taken of float32 or float64 arrays, not {}", element_name(truth.type)));
}

std::vector<double> TestMetricsSum::state() const {
  std::vector<double> numbers;
  for (const Column& c : columns_)
    for (const double value : {c.count, c.mean, c.spread, c.squared, c.absolute}) numbers.push_back(value);
  return numbers;
}

void TestMetricsSum::merge(std::span<const double> state) {
  COHORT_CHECK(state.size() == columns_.size() * kStatePerTarget, "{} numbers for {} targets", state.size(),
               columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const double* s = state.data() + i * kStatePerTarget;
    const Column other{s[0], s[1], s[2], s[3], s[4]};
    Column& c = columns_[i];
    if (other.count == 0) continue;
    const double count = c.count + other.count, apart = other.mean - c.mean;
    c.mean += apart * (other.count / count);
    c.spread += other.spread + apart * apart * (c.count * other.count / count);
    c.squared += other.squared;
    c.absolute += other.absolute;
    c.count = count;
  }
}

TestMetrics TestMetricsSum::result() const {
  TestMetrics metrics;
  double count = 0, squared = 0, absolute = 0, r2_sum = 0;
  int r2_count = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& c = columns_[i];
    COHORT_THROW_UNLESS(c.count > 0, "no test samples: there is nothing to measure");
    ErrorMetrics m{.target = names_[i],
                   .count = static_cast<std::int64_t>(c.count),
                   .mse = c.squared / c.count,
                   .mae = c.absolute / c.count};
    m.rmse = std::sqrt(m.mse);
    // A constant leaves no spread, apart from what rounding of the running mean leaves.
    const bool constant = c.spread <= c.count * std::pow(c.mean * 1e-14, 2);
    m.r2 = constant ? kUndefined : 1 - c.squared / c.spread;
    if (!constant) {
      r2_sum += m.r2;
      ++r2_count;
    }
    count += c.count;
    squared += c.squared;
    absolute += c.absolute;
    metrics.targets.push_back(std::move(m));
  }
  ErrorMetrics& all = metrics.overall;
  all = {
      .target = "overall", .count = static_cast<std::int64_t>(count), .mse = squared / count, .mae = absolute / count};
  all.rmse = std::sqrt(all.mse);
  all.r2 = r2_count > 0 ? r2_sum / r2_count : kUndefined;
  return metrics;
}

std::string TestMetrics::to_table() const {
  int width = 7;  // "overall"
  for (const ErrorMetrics& m : targets) width = std::max(width, display_width(clean_utf8(m.target)));
  const auto padded = [&](const std::string& name) {
    return name + std::string(static_cast<std::size_t>(std::max(0, width - display_width(name))), ' ');
  };
  const auto row = [&](const ErrorMetrics& m) {
    const std::string r2 = std::isnan(m.r2) && std::isfinite(m.mse) ? "constant" : number(m.r2);
    return format("{}  {:>10}  {:>10}  {:>10}  {:>10}\n", padded(clean_utf8(m.target)), r2, number(m.rmse),
                  number(m.mae), number(m.mse));
  };
  std::string table = format("{}  {:>10}  {:>10}  {:>10}  {:>10}\n", padded("target"), "R2", "RMSE", "MAE", "MSE");
  for (const ErrorMetrics& m : targets) table += row(m);
  if (targets.size() > 1) table += row(overall);
  return table;
}

std::string TestMetrics::to_json() const {
  nlohmann::ordered_json json;
  json["overall"] = to_object(overall);
  for (const ErrorMetrics& m : targets) json["targets"][clean_utf8(m.target)] = to_object(m);
  return json_text(json, 2);
}

}  // namespace cohort::report
