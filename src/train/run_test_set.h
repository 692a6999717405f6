/// The test set at the end of a run: errors over all of it, and enough predictions to draw.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parallel/plan.h"
#include "report/test_metrics.h"
#include "train/jobs/job.h"
#include "train/precision.h"

namespace cohort::dist {
class Group;
}

namespace cohort::train {

struct TestResult {
  std::string name = "test set";  ///< Job::test_name()
  std::int64_t samples = 0;
  std::vector<std::string> targets;  ///< Job::target_names()
  std::size_t main_target = 0;       ///< which of them charts show first
  std::string time_label;            ///< the time axis of examples
  report::TestMetrics data_units;
  report::TestMetrics scaled;  ///< in the units of the loss
  /// Without the samples of a last batch that is not full, as loaders with drop_last measure; in the units of the loss.
  report::TestMetrics scaled_full_batches;
  /// Of the first samples, for charts, in the units of the data: (n_sample, n_step, n_target); rank 0 only.
  std::int64_t drawn_samples = 0, steps = 1;
  std::vector<float> truth, predicted;
  std::vector<report::ForecastWindow> examples;  ///< rank 0 only
};

struct TestSettings {
  std::int64_t batch_size = 32;
  std::int64_t workers = 1;
  std::int64_t memory_budget_bytes = 0;
  Precision precision = Precision::kFp32;
  std::int64_t most_drawn = 20000;  ///< values per target
};

/// Every rank predicts its share of the test set with `model`; the errors are put together on all of them. `group` is
/// null for one process. Collective. Throws Error.
TestResult run_test_set(const Job& job, torch::nn::Module& model, c10::Device device, dist::Group* group,
                        const TestSettings& settings);

}  // namespace cohort::train
