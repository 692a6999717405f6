/// What is particular to one kind of training: its data, its model, its loss, and how its result is shown. run.h does the
/// rest: devices, ranks, loop, checkpoints, report.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "data/dataset.h"
#include "parallel/batch.h"
#include "report/charts.h"

namespace torch::nn {
class Module;
}

namespace cohort::train {

struct RunSettings;

enum class Part { kTrain, kValidation, kTest };

/// "train", "validation", "test".
const char* to_string(Part part);

/// A forward pass and what it should have given, both (n_sample, ...), in the units of the loss.
struct Prediction {
  at::Tensor predicted;
  at::Tensor truth;
};

/// The test set as a whole, in the units of the loss: (n_sample, n_step, n_target); n_step is 1 for a table.
struct TestSet {
  std::int64_t samples = 0, steps = 1, targets = 1;
  std::vector<double> predicted, truth;
};

class Job {
 public:
  virtual ~Job() = default;

  /// "informer", "regressor": the word after `cohort train`.
  virtual std::string name() const = 0;
  /// One line for --help.
  virtual std::string summary() const = 0;

  /// Changes the general defaults (batch size, epochs, optimizer, ...) to those of this job, and binds its own settings
  /// under data.* and model.*.
  virtual void describe(config::Fields& fields, RunSettings& run) = 0;

  /// Reads and checks the data. Throws Error naming file, row and column; nothing has been written and no device touched.
  virtual void load(std::uint64_t seed) = 0;
  virtual std::shared_ptr<const data::Dataset> dataset(Part part) const = 0;
  /// One paragraph on the data for banner and report.
  virtual std::string data_summary() const = 0;
  /// What dataset_statistics.json holds: the scalers, so that a checkpoint can be used without the data.
  virtual config::Json statistics() const = 0;

  /// The model with initial weights from `seed`, equal on every rank. Called after load().
  virtual std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const = 0;

  /// Forward pass of a batch whose fields are those of dataset().
  virtual Prediction predict(torch::nn::Module& model, const parallel::Batch& batch) const = 0;

  virtual std::vector<std::string> target_names() const = 0;
  /// The test set in the units of the data, for charts; metrics are given in both.
  virtual TestSet to_data_units(const TestSet& scaled) const = 0;
  /// Charts of the test set beyond the standard ones.
  virtual std::vector<report::Chart> charts(const TestSet& test) const = 0;
};

/// The jobs by name; nullptr for an unknown one.
std::unique_ptr<Job> make_job(const std::string& name);
std::vector<std::string> job_names();

}  // namespace cohort::train
