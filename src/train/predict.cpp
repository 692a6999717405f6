#include "train/predict.h"

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/format.h"
#include "dist/usable_devices.h"
#include "policy/checkpoint.h"
#include "policy/weights.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "tensors/vector_math.h"
#include "train/jobs/job.h"
#include "train/loader_source.h"
#include "train/run.h"

namespace cohort::train {
namespace {

/// The job with the run's settings.
struct TrainedJob {
  std::unique_ptr<Job> job;
  RunSettings settings;
  config::Fields fields;

  TrainedJob(const std::string& configuration, const std::string& source, const PredictSettings& wanted) {
    const config::Json json = config::Json::parse(configuration, nullptr, false);
    COHORT_THROW_UNLESS(json.is_object() && json.contains("job") && json.at("job").is_string(),
                        "{} does not say what was trained", source);
    job = make_job(json.at("job").get<std::string>());
    name_ = job->name();
    fields.add("job", name_, "");
    train::describe(fields, settings);
    job->describe(fields, settings);
    fields.apply_json(json, source);
    if (fields.has("data.path")) fields.apply_override("data.path=" + wanted.file.string());
    for (const std::string& text : wanted.overrides) fields.apply_override(text);
  }

 private:
  std::string name_;
};

std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

}  // namespace

PredictReport predict_file(const PredictSettings& settings) {
  COHORT_THROW_UNLESS(std::filesystem::exists(settings.run), "{}: there is no such run or checkpoint",
                      settings.run.string());
  const DeviceId device_id = parse_device(settings.device);
  dist::check_device(device_id);
  const c10::Device device = tensors::to_torch_device(device_id);
  tensors::resolve_vector_math();
  const policy::ResumePoint point =
      policy::find_resume_point(settings.run.string(), {}, policy::CheckpointParts::kWeights).value();
  const std::string source = point.path.string();
  TrainedJob trained(point.content.state.configuration, source, settings);
  Job& job = *trained.job;
  const PredictionRequest request =
      job.load_request(config::Json::parse(point.content.dataset_statistics, nullptr, false));

  const std::shared_ptr<torch::nn::Module> model = job.make_model(/*seed=*/0);
  const bool averaged = !point.content.ema.empty();
  PredictReport report{.job = job.name(), .weights = source + "/" + (averaged ? policy::kEmaFile : policy::kModelFile)};
  policy::load_weights(*model, averaged ? point.content.ema : point.content.model, point.content.model_aliases,
                       report.weights);
  model->to(device);
  model->eval();

  report.targets = job.target_names();
  const auto n_target = static_cast<std::int64_t>(report.targets.size());
  std::string text = quoted(request.label);
  for (const std::string& target : report.targets) text += "," + quoted(target);
  text += "\n";
  report::TestMetricsSum errors(report.targets);
  LoaderSource batches(request.samples, {.shuffle = false}, {.batch_size = settings.batch_size, .workers = 1},
                       tensors::host_allocator_for(device.type()));
  batches.start_epoch(0, 0);
  const torch::NoGradGuard no_gradients;
  while (std::optional<parallel::Batch> batch = batches.next()) {
    Prediction answer = job.predict(*model, batch->to(device));
    at::Tensor predicted = answer.predicted.to(at::kCPU, at::kFloat).contiguous().clone();
    at::Tensor truth = answer.truth.to(at::kCPU, at::kFloat).contiguous().clone();
    for (at::Tensor& tensor : {std::ref(predicted), std::ref(truth)})
      job.to_data_units({tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
    if (request.has_truth) errors.add(tensors::to_view(truth), tensors::to_view(predicted));
    const float* values = predicted.const_data_ptr<float>();
    for (std::int64_t row = 0; row < predicted.numel() / n_target; ++row, ++report.rows) {
      text += request.labels.at(static_cast<std::size_t>(report.rows));
      for (std::int64_t i = 0; i < n_target; ++i) text += format(",{}", *values++);
      text += "\n";
    }
  }
  if (request.has_truth) report.metrics = errors.result();
  write_file_atomically(settings.out, text);
  return report;
}

}  // namespace cohort::train
