#include "train/jobs/job.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "policies/algorithm.h"
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
  for (const policies::Algorithm* one : policies::algorithms())
    if (one->job()) jobs.push_back(make_policy_job(one));
  return jobs;
}

std::string instead_of_job(const std::string& name) {
  std::string bare;
  for (const char c : name)
    if (c != '_' && c != '-' && c != '.') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const policies::Algorithm* one : policies::algorithms())
    for (const std::string& other : one->other_names())
      if (bare == other) return one->where_it_is();
  for (const char* one : {"rl", "sac", "td3", "ddpg", "trpo"})
    if (bare == one) return "of reinforcement learning there is `cohort train ppo TASK`";
  for (const char* one :
       {"vqbet", "tdmpc", "smolvla", "pi0", "pi0fast", "pi05", "gr00t", "groot", "openvla", "octo", "xvla"})
    if (bare == one) {
      std::string text =
          "it is not there yet. Of imitation learning there are `cohort train policy` (diffusion policy, or BC with "
          "model.algorithm=bc)";
      for (const policies::Algorithm* there : policies::algorithms())
        if (const auto job = there->job()) text += " and `cohort train " + job->name + "`";
      return text + "; a model behind openpi's protocol is evaluated with `cohort evaluate --policy ws://HOST:PORT`";
    }
  return "";
}

std::unique_ptr<Job> make_job(const std::string& name) {
  std::vector<std::string> names;
  for (auto& job : all_jobs()) {
    if (job->name() == name) return std::move(job);
    names.push_back(job->name());
  }
  run::refuse_unknown_training(name, names, instead_of_job(name));
}

}  // namespace cohort::train
