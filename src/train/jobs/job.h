/// A supervised training: what is trained (train/trainable.h), the data sets that it learns from, its forward pass, and
/// how its result is shown. train/run.h does the rest: devices, ranks, loop, checkpoints, test, report.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "data/dataset.h"
#include "parallel/batch.h"
#include "report/standard_figures.h"
#include "train/trainable.h"

namespace cohort::policies {
class Algorithm;
}

namespace cohort::train {

struct RunSettings;

enum class Part { kTrain, kValidation, kTest };

/// "training", "validation", "test".
const char* to_string(Part part);

/// A forward pass and what it should have given: (n_sample, ..., n_target), scaled as the data set is.
struct Prediction {
  at::Tensor predicted;
  at::Tensor truth;
};

/// What `cohort predict` asks a trained model: samples with the fields of Job::dataset(), and what each row of the
/// answers is called.
struct PredictionRequest {
  std::shared_ptr<const data::Dataset> samples;
  std::string label;                ///< the first column of the answers: "row" or the name of the date column
  std::vector<std::string> labels;  ///< (samples * rows of a prediction)
  bool has_truth = false;           ///< the samples hold what is predicted, too
  std::int64_t batch_size = 1024;   ///< unless another is asked for

  /// Of samples that are steps of episodes; then there are no labels, and what was recorded stands beside the answers.
  struct Step {
    std::int64_t episode = 0, step = 0;
  };
  std::vector<Step> steps;
  std::vector<float> recorded;  ///< (samples, answer_names()), as the data hold them
  std::int64_t row = 0;         ///< of a prediction's rows, the one that is the step's
};

class Job : public Trainable {
 public:
  /// Changes the general defaults (batch size, epochs, optimizer, ...) to those of this job and binds its own settings
  /// under data.* and model.*. Called once, before the configuration is read.
  virtual void describe(config::Fields& fields, RunSettings& run) = 0;

  /// Of its own settings those that most runs set, in the order in which one thinks of them, for --help.
  virtual std::vector<std::string> basic_settings() const { return {}; }
  /// What --help says behind them.
  virtual std::string remark() const { return ""; }

  /// Reads and checks the data. Throws Error naming file, row and column; nothing has been written and no device has
  /// been touched.
  virtual void load() = 0;
  /// The samples of a part; null where the split leaves it empty.
  virtual std::shared_ptr<const data::Dataset> dataset(Part part) const = 0;
  /// Forward pass of a batch with the fields of dataset().
  virtual Prediction predict(torch::nn::Module& model, const parallel::Batch& batch) const = 0;
  /// The mean squared difference of predict(), unless a job says otherwise.
  at::Tensor loss(torch::nn::Module& model, const parallel::Batch& batch) const override;
  std::string loss_name() const override { return "mean squared error, scaled"; }

  virtual std::vector<std::string> target_names() const = 0;
  /// Which of them matters most: charts that cannot show all show it first.
  virtual std::size_t main_target() const { return 0; }
  /// In place, rows of n_target scaled values each: back to the units of the data.
  virtual void to_data_units(std::span<float> rows) const = 0;
  /// Likewise of samples of the test set, `rows` being as many rows of each, where these do not all have the same units.
  virtual void to_units_of(std::span<const std::int64_t> samples, std::span<float> rows) const;

  /// What `cohort predict` answers: rows of target_names() in the units of the data as the data hold them, without the
  /// transforms that training did to them, and what their columns are called.
  virtual std::vector<std::string> answer_names() const { return target_names(); }
  virtual std::vector<float> answers_of(std::span<const float> rows) const { return {rows.begin(), rows.end()}; }

  /// Instead of load(): the samples of data.path (policies: data.paths) that a trained model shall predict, scaled by
  /// the `statistics` of its checkpoint; the file need not hold the targets. `data_set`: whose statistics, where each
  /// data set of a policy has its own; else empty. Throws Error as load() does.
  virtual PredictionRequest load_request(const config::Json& statistics, const std::string& data_set) = 0;

  /// What dataset(Part::kTest) is taken from, for log and report.
  virtual std::string test_name() const { return "test set"; }
  /// How many examples of forecasts a report shows; 0 for tables.
  virtual std::vector<std::int64_t> example_samples() const { return {}; }
  /// An example for the report: test sample `index`, its prediction (n_step, n_target) in the units of the data.
  virtual report::ForecastWindow example(std::int64_t index, std::span<const float> predicted) const;
  /// The time axis of examples.
  virtual std::string time_label() const { return ""; }
};

/// Sets a model setting that follows from the data. Throws Error when the command line says something else; a saved
/// configuration holds what followed from its own data, and a difference is a line of the log.
template <class T>
void follow_data(const config::Fields& fields, const std::string& path, T& setting, const T& from_data) {
  COHORT_THROW_UNLESS(!fields.was_overridden(path) || setting == from_data,
                      "{}={} contradicts the data, from which it follows as {}; leave it out", path, setting,
                      from_data);
  if (fields.was_set(path) && setting != from_data)
    log::info("{} is {} as the data has it, not {} as the configuration file says", path, from_data, setting);
  setting = from_data;
}

/// The jobs by name; throws Error naming the nearest one.
std::unique_ptr<Job> make_job(const std::string& name);
/// All of them, for --help.
std::vector<std::unique_ptr<Job>> all_jobs();

/// What is said to the name of a policy or method that is no job: where it is, or what there is instead; "": it is not known.
std::string instead_of_job(const std::string& name);

std::unique_ptr<Job> make_forecast_job();    ///< "informer"
std::unique_ptr<Job> make_regression_job();  ///< "regressor"
/// "policy"; where an algorithm is given, its own job of the name that it has for it.
std::unique_ptr<Job> make_policy_job(const policies::Algorithm* trained = nullptr);

}  // namespace cohort::train
