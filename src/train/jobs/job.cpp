#include "train/jobs/job.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "run/training.h"

namespace cohort::train {

const char* to_string(Part part) {
  switch (part) {
    case Part::kTrain:
      return "training";
    case Part::kValidation:
      return "validation";
    case Part::kTest:
      return "test";
  }
  return "unknown";
}

report::ForecastWindow Job::example(std::int64_t index, std::span<const float>) const {
  throw Error(format("the job {} has no example for sample {}", name(), index));
}

void Job::to_units_of(std::span<const std::int64_t>, std::span<float> rows) const {
  to_data_units(rows);
}

at::Tensor Job::loss(torch::nn::Module& model, const parallel::Batch& batch) const {
  const Prediction prediction = predict(model, batch);
  return torch::mse_loss(prediction.predicted.to(at::kFloat), prediction.truth);
}

std::vector<std::unique_ptr<Job>> all_jobs() {
  std::vector<std::unique_ptr<Job>> jobs;
  jobs.push_back(make_forecast_job());
  jobs.push_back(make_regression_job());
  jobs.push_back(make_policy_job());
  jobs.push_back(make_rdt_job());
  return jobs;
}

std::unique_ptr<Job> make_job(const std::string& name) {
  std::vector<std::string> names;
  for (auto& job : all_jobs()) {
    if (job->name() == name) return std::move(job);
    names.push_back(job->name());
  }
  run::refuse_unknown_training(name, names);
}

}  // namespace cohort::train
