/// How far predictions are from the truth: MSE, MAE, RMSE and R2, per target and overall.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array_view.h"

namespace cohort::report {

/// Errors over n values.
struct ErrorMetrics {
  std::string target;  ///< column name; "overall" for all of them
  std::int64_t count = 0;
  double mse = 0;
  double mae = 0;
  double rmse = 0;  ///< sqrt(mse)
  /// 1 - sum (truth - prediction)^2 / sum (truth - mean truth)^2. NaN when the truth is constant: then there is nothing
  /// to explain, and any number would mislead. Overall: the mean over the targets that have one, as scikit-learn's
  /// r2_score(multioutput="uniform_average").
  double r2 = 0;
};

struct TestMetrics {
  std::vector<ErrorMetrics> targets;
  ErrorMetrics overall;

  /// For a terminal or a log, numbers aligned: the beginners' guide prints R2, RMSE and MAE.
  ///   target            R2       RMSE        MAE        MSE
  ///   elbow         0.9871     0.1032     0.0811    0.01065
  std::string to_table() const;
  /// {"overall":{"r2":...,"rmse":...,"mae":...,"mse":...,"count":...},"targets":{"elbow":{...}}}; what is not finite is
  /// null.
  std::string to_json() const;
};

/// Gathers them batch by batch in double precision (Welford 1962 for the truth's variance), and over ranks
/// (Chan, Golub and LeVeque 1979).
class TestMetricsSum {
 public:
  explicit TestMetricsSum(std::vector<std::string> targets);

  /// truth and prediction: (..., n_target), float32 or float64, contiguous, in host memory, of the same shape. Leading
  /// dimensions (samples, horizon) all count as values of the target. Throws Error for anything else.
  void add(const ArrayView& truth, const ArrayView& prediction);

  /// kStatePerTarget numbers for every target, to be sent to another rank, and taken in there.
  static constexpr std::size_t kStatePerTarget = 5;
  std::vector<double> state() const;
  void merge(std::span<const double> state);

  /// Throws Error when nothing was added.
  TestMetrics result() const;

 private:
  struct Column {
    double count = 0;
    double mean = 0;      ///< of the truth
    double spread = 0;    ///< sum of its squared deviations from the mean
    double squared = 0;   ///< sum of squared errors
    double absolute = 0;  ///< sum of absolute errors
  };
  template <class T>
  void add_values(std::span<const T> truth, std::span<const T> prediction);

  std::vector<std::string> names_;
  std::vector<Column> columns_;
};

}  // namespace cohort::report
