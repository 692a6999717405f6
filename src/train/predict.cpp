#include "train/predict.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/array_view.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/near_file.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/names_of_sets.h"
#include "dist/usable_devices.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "tensors/processor.h"
#include "train/jobs/job.h"
#include "train/loader_source.h"
#include "train/run.h"
#include "weights/checkpoint.h"
#include "weights/weights.h"

namespace cohort::train {
namespace {

/// The job with the run's settings.
struct TrainedJob {
  std::unique_ptr<Job> job;
  RunSettings settings;
  config::Fields fields;

  TrainedJob(const std::string& configuration, const std::string& source, const PredictSettings& wanted) {
    const config::Json json = try_json<config::Json>(configuration);
    COHORT_THROW_UNLESS(json.is_object() && json.contains("job") && json.at("job").is_string(),
                        "{} does not say what was trained", source);
    const std::string name = json.at("job").get<std::string>();
    COHORT_THROW_UNLESS(json.contains("data") || !json.contains("task"),
                        "{} is of `cohort train {}`, which learns without recorded data: `cohort evaluate --task {} "
                        "--policy {}` plays it",
                        source, name, json.value("task", "NAME"), wanted.run.string());
    job = make_job(name);
    name_ = job->name();
    fields.add("job", name_, "");
    train::describe(fields, settings);
    job->describe(fields, settings);
    fields.apply_json(json, source);
    if (fields.has("data.paths")) {
      // All of other data: not the training's share, and what it left out too.
      config::Json data = config::Json::object();
      data["paths"] = config::Json::array({wanted.file.string()});
      data["splits"] = config::Json::array({"all"});
      // Of one set, by its own names.
      const config::Json& trained = json.at("data");
      const auto list_of = [&](const char* list) {
        return trained.contains(list) && trained.at(list).is_array() ? trained.at(list).get<std::vector<std::string>>()
                                                                     : std::vector<std::string>();
      };
      const std::vector<std::string> paths = list_of("paths");
      const auto of_set = std::find(paths.begin(), paths.end(), wanted.data_set);
      const auto set = of_set == paths.end() ? std::size_t{0} : static_cast<std::size_t>(of_set - paths.begin());
      const data::NamesOfSets names(list_of("names"), std::max<std::size_t>(1, paths.size()));
      for (const char* list : {"actions", "proprio"}) data[list] = names.components(set, list_of(list));
      data["images"] = names.pictures(set, list_of("images"));
      for (const char* list : {"weights", "filters", "names"}) data[list] = config::Json::array();
      for (const char* number : {"windows_per_episode", "samples_per_epoch"}) data[number] = 0;
      config::Json sections = config::Json::object();
      sections["data"] = std::move(data);
      fields.apply_json(sections, "cohort predict");
    } else {
      fields.apply_override("data.path=" + wanted.file.string());
    }
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

bool is_hdf5(const std::filesystem::path& path) {
  return path.extension() == ".hdf5" || path.extension() == ".h5";
}

/// `answers` (rows, targets), under the request's labels.
std::string table(const PredictionRequest& request, const std::vector<std::string>& targets,
                  std::span<const float> answers) {
  const std::size_t width = targets.size(), rows = answers.size() / width;
  const bool beside = !request.steps.empty();
  std::string text = beside ? "episode,step" : quoted(request.label);
  for (const std::string& target : targets)
    text += "," + quoted(target) + (beside ? "," + quoted(target + " recorded") : "");
  text += "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    text += beside ? format("{},{}", request.steps.at(row).episode, request.steps[row].step) : request.labels.at(row);
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      text += format(",{}", answers[i]);
      if (beside) text += format(",{}", request.recorded.at(i));
    }
    text += "\n";
  }
  return text;
}

/// A demo for each episode.
void write_demos(const std::filesystem::path& path, const PredictionRequest& request, std::size_t width,
                 std::vector<float> answers) {
  data::Hdf5Writer writer(path);
  std::vector<float> recorded = request.recorded;
  for (std::size_t begin = 0, end = 0; begin < request.steps.size(); begin = end) {
    std::vector<std::int64_t> steps;
    for (end = begin; end < request.steps.size() && request.steps[end].episode == request.steps[begin].episode; ++end)
      steps.push_back(request.steps[end].step);
    const auto n = static_cast<std::int64_t>(steps.size()), columns = static_cast<std::int64_t>(width);
    writer.begin_demo(n);
    writer.attribute("episode", format("{}", request.steps[begin].episode), "int64");
    writer.add("step", make_view(steps.data(), {n}), false);
    writer.add("actions", make_view(recorded.data() + begin * width, {n, columns}), false);
    writer.add("predicted_actions", make_view(answers.data() + begin * width, {n, columns}), false);
  }
  writer.finish();
}

}  // namespace

PredictReport predict_file(const PredictSettings& settings) {
  COHORT_THROW_UNLESS(std::filesystem::exists(settings.run), "{}: there is no such run or checkpoint{}",
                      settings.run.string(), near_file(settings.run));
  COHORT_THROW_UNLESS(!is_hdf5(settings.out) || !std::filesystem::exists(settings.out),
                      "{} exists already: remove it, or choose another --out", settings.out.string());
  const DeviceId device_id = parse_device(settings.device);
  dist::check_device(device_id);
  const c10::Device device = tensors::to_torch_device(device_id);
  tensors::prepare_arithmetic();
  const weights::ResumePoint point =
      weights::find_resume_point(settings.run.string(), {}, weights::CheckpointParts::kWeights).value();
  const std::string source = point.path.string();
  TrainedJob trained(point.content.state.configuration, source, settings);
  Job& job = *trained.job;
  PredictionRequest request =
      job.load_request(try_json<config::Json>(point.content.dataset_statistics), settings.data_set);
  COHORT_THROW_UNLESS(!is_hdf5(settings.out) || !request.steps.empty(),
                      "{}: only the answers of policies can be HDF5: name a .csv file", settings.out.string());

  const std::shared_ptr<torch::nn::Module> model = job.make_model(/*seed=*/0);
  const bool averaged = !point.content.ema.empty();
  PredictReport report{.job = job.name(),
                       .weights = source + "/" + (averaged ? weights::kEmaFile : weights::kModelFile)};
  weights::load_weights(*model, averaged ? point.content.ema : point.content.model, point.content.model_aliases,
                        report.weights);
  model->to(device);
  model->eval();

  report.targets = job.answer_names();
  const auto n_target = static_cast<std::int64_t>(report.targets.size());
  report::TestMetricsSum errors(report.targets);
  LoaderSource batches(request.samples, {.shuffle = false},
                       {.batch_size = settings.batch_size > 0 ? settings.batch_size : request.batch_size, .workers = 1},
                       tensors::host_allocator_for(device.type()));
  std::vector<float> answers;  // (rows, targets)
  batches.start_epoch(0, 0);
  const torch::NoGradGuard no_gradients;
  while (std::optional<parallel::Batch> batch = batches.next()) {
    Prediction answer = job.predict(*model, batch->to(device));
    if (!request.steps.empty()) answer.predicted = answer.predicted.narrow(1, request.row, 1);
    at::Tensor predicted = answer.predicted.to(at::kCPU, at::kFloat).contiguous().clone();
    const auto own = [&](at::Tensor& rows) {
      const std::span<float> values{rows.mutable_data_ptr<float>(), static_cast<std::size_t>(rows.numel())};
      job.to_data_units(values);
      return job.answers_of(values);
    };
    std::vector<float> given = own(predicted);
    const auto view = [&](std::vector<float>& values) {
      return make_view(values.data(), {std::ssize(values) / n_target, n_target});
    };
    if (!request.steps.empty()) {
      errors.add(make_view(request.recorded.data() + answers.size(), {std::ssize(given) / n_target, n_target}),
                 view(given));
    } else if (request.has_truth) {
      at::Tensor truth = answer.truth.to(at::kCPU, at::kFloat).contiguous().clone();
      job.to_data_units({truth.mutable_data_ptr<float>(), static_cast<std::size_t>(truth.numel())});
      errors.add(tensors::to_view(truth), tensors::to_view(predicted));
    }
    answers.insert(answers.end(), given.begin(), given.end());
  }
  report.rows = static_cast<std::int64_t>(answers.size()) / n_target;
  if (request.has_truth) report.metrics = errors.result();
  if (is_hdf5(settings.out))
    write_demos(settings.out, request, report.targets.size(), std::move(answers));
  else
    write_file_atomically(settings.out, table(request, report.targets, answers));
  return report;
}

}  // namespace cohort::train
