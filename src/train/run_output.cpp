#include "train/run_output.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "core/command_line.h"
#include "core/error.h"
#include "core/log.h"
#include "core/utf8.h"
#include "dist/rank_environment.h"
#include "report/metric_names.h"
#include "run/banner.h"
#include "run/continue_command.h"
#include "train/run_banner.h"

namespace cohort::train {
namespace {

namespace fs = std::filesystem;

void write_step(report::MetricsWriter& metrics, const StepStats& s, const std::optional<run::GpuLoad>& gpus,
                const run::HostLoad& host, const TrainSettings& settings) {
  namespace metric = report::metric;
  std::vector<report::TagValue> values{{metric::kTrainLoss, s.loss},
                                       {metric::kLearningRate, s.lr},
                                       {metric::kGradientNorm, s.grad_norm},
                                       {metric::kSamplesPerSecond, s.samples_per_s},
                                       {metric::kStepsPerSecond, s.iterations_per_s},
                                       {metric::kDataTime, s.data_time_s},
                                       {metric::kComputeTime, s.compute_time_s},
                                       {metric::kCheckpointTime, s.checkpoint_time_s},
                                       {metric::kMemory, std::max(s.host_bytes, s.device_bytes)}};
  if (s.world_size > 1) {
    values.push_back({metric::kExchangeTime, s.exchange_time_s});
    values.push_back({metric::kLeastComputeTime, s.least_compute_time_s});
  }
  for (const auto& [name, value] :
       {std::pair(metric::kHostBusyCores, host.busy_cores), std::pair(metric::kHostLoad, host.load),
        std::pair(metric::kHostMemory, host.memory)})
    if (value) values.push_back({name, *value});
  const bool scales = parse_precision(settings.precision) == Precision::kFp16;
  if (scales || settings.non_finite == "skip")
    values.push_back({metric::kSkippedSteps, static_cast<double>(s.skipped_steps)});
  if (scales) values.push_back({metric::kLossScale, s.loss_scale});
  if (gpus) {
    for (const auto& [name, value] :
         {std::pair(metric::kGpuUtilization, gpus->utilization),
          std::pair(metric::kLeastGpuUtilization, gpus->least_utilization), std::pair(metric::kGpuMemory, gpus->memory),
          std::pair(metric::kGpuPower, gpus->power)})
      if (value) values.push_back({name, *value});
  }
  metrics.write(s.step, values);
}

std::vector<ProgressField> progress_fields(const StepStats& s, const std::optional<run::GpuLoad>& gpus) {
  std::vector<ProgressField> fields{{"epoch", format("{:.1f}", s.epoch_progress)},
                                    {"loss", format("{:.4f}", s.loss)},
                                    {"lr", format("{:.2e}", s.lr)},
                                    {"grad", format("{:.2f}", s.grad_norm)},
                                    {"samples/s", format("{:.0f}", s.samples_per_s)},
                                    {"data", format("{:.0f} ms", s.data_time_s * 1e3)},
                                    {"mem", format_bytes(std::max(s.host_bytes, s.device_bytes))}};
  if (gpus && gpus->utilization) fields.push_back({"gpu", format("{:.0f} %", *gpus->utilization)});
  if (gpus && gpus->power) fields.push_back({"power", format("{:.0f} W", *gpus->power)});
  if (s.skipped_steps > 0) fields.push_back({"skipped", format("{}", s.skipped_steps)});
  return fields;
}

constexpr std::size_t kMostRanksOnScreen = 8;

/// The banner is to fit a screen of 24 lines: how the loader is set and all but the first lines of statistics are in
/// the log only.
void say_banner(const std::vector<std::pair<std::string, std::string>>& rows, bool has_log) {
  constexpr int kMostOfStatistics = 2;
  std::string part;
  int lines = 0;
  for (const auto& [label, text] : rows) {
    if (!label.empty()) part = label, lines = 0;
    ++lines;
    const bool wanted = part != "loader" && part != "seed" && (part != "scaled by" || lines <= kMostOfStatistics);
    const std::string line = format("{:<9} {}", label, text);
    if (wanted || !has_log)
      log::info("{}", line);
    else
      log::write_to_files(log::Level::kInfo, line);
  }
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string status_of(const TrainResult& result, const run::ContinueCommand& command) {
  switch (result.status) {
    case TrainStatus::kFinished:
      return "finished";
    case TrainStatus::kEarlyStopped:
      return format("stopped early at step {}, best at step {}", result.step, result.best_step);
    case TrainStatus::kParked:
      return "goes on with other ranks";
    case TrainStatus::kNothingLeft:
      return "finished before";
    case TrainStatus::kStopped:
      return format("stopped by a signal at step {}; continue{} with: {}", result.step,
                    command.remark.empty() ? "" : ", " + command.remark + ",", command.text);
  }
  return "unknown";
}

}  // namespace

void RunOutput::SkipWarning::observe(const StepStats& s) {
  if (s.skipped_steps == 0 || s.skipped_steps < 2 * told_) return;
  told_ = s.skipped_steps;
  log::warning("{} of {} steps so far changed nothing, because their loss or gradients held a NaN or inf{}", told_,
               s.step, s.loss_scale == 1.0 ? "" : format("; the loss is now scaled by {:g}", s.loss_scale));
}

RunOutput::RunOutput(const Trainable& trainable, const RunSettings& settings, const report::RunFolder& folder,
                     report::ClaimedFolder* claimed, const config::Fields& fields,
                     const std::vector<std::string>& overrides)
    : trainable_(trainable),
      settings_(settings),
      folder_(folder),
      claimed_(claimed),
      overrides_(overrides),
      resolved_(fields.to_json()),
      changed_(fields.changed()) {
  resolved_["resume"] = "";  // who starts from this configuration starts another run
  if (!claimed_) return;
  std::error_code none_yet;
  if (const auto bytes = fs::file_size(folder_.log_file(), none_yet); !none_yet) log_bytes_ = bytes;
  log::add_file(folder_.log_file().string());
}

void RunOutput::announce(const parallel::Plan& plan, const torch::nn::Module& model, bool validates,
                         dist::Group* group) {
  std::vector<int> own;
  for (const DeviceId device : plan.devices)
    if (device.kind == DeviceKind::kCuda) own.push_back(device.index);
  if (claimed_) gpus_.emplace(run::watched_gpus(own, dist::read_rank_environment().local_world_size));
  summary_.banner = banner_rows(trainable_, settings_, plan, model);
  say_banner(summary_.banner, claimed_ != nullptr);
  for (const std::string& warning : plan.warnings) log::warning("{}", warning);
  if (settings_.train.early_stopping.patience > 0 && !validates)
    log::warning(
        "train.early_stopping.patience = {} has no effect: no data are kept for a validation; change the split, or set "
        "the patience to 0",
        settings_.train.early_stopping.patience);
  if (group) {
    const std::vector<std::string> ranks = parallel::world_lines(plan, *group);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::string line = format("{:<9} {}", "", ranks[i]);
      if (i < kMostRanksOnScreen)
        log::info("{}", line);
      else
        log::write_to_files(log::Level::kInfo, line);
    }
    if (ranks.size() > kMostRanksOnScreen && claimed_)
      log::info("{:<9} and {} more, which the log names", "", ranks.size() - kMostRanksOnScreen);
  }
  if (!settings_.init_from.empty() && settings_.resume.empty())
    log::info("{:<9} begin with those of {}", "weights", settings_.init_from);
  log::info("{:<9} {}", "results", folder_.path().string());
  log::info("{:<9} {}", "log", folder_.log_file().string());
  if (!claimed_) return;
  // What follows from others is long, and one line in a hundred is wanted: the files have it.
  log::write_to_files(log::Level::kInfo, format("{:<9} all of them in {}; other than the defaults:", "settings",
                                                folder_.config_file().string()));
  for (const std::string& line : run::settings_lines(changed_))
    log::write_to_files(log::Level::kInfo, format("{:<9} {}", "", line));
}

void RunOutput::attach(TrainJob& train_job) {
  train_job.checkpoints = folder_.checkpoints();
  train_job.configuration = resolved_.dump(2);
  if (!claimed_) return;
  train_job.started = [this](std::int64_t resumed_step) { begin(resumed_step); };
  train_job.step_observers.push_back([this](const StepStats& s) { observe_step(s); });
  train_job.validation_observers.push_back([this](const ValidationStats& s) { observe_validation(s); });
}

/// A run that cannot begin, or go on, has left the folder as it was.
void RunOutput::begin(std::int64_t resumed_step) {
  const bool resumes = !settings_.resume.empty();
  if (resumes && resumed_step == 0)
    log::warning("{}: training begins at its first step, because {}; the metrics of the earlier one are cut",
                 folder_.path().string(),
                 settings_.train.checkpoint.resume == "none" ? "train.checkpoint.resume=none says so"
                                                             : "there is no checkpoint to continue");
  if (resumes) remove_test_results(folder_);
  folder_.save_configuration(resolved_.dump(2) + "\n", overrides_);
  metrics_.emplace(folder_.path(),
                   report::MetricsSettings{.tensorboard = settings_.tensorboard,
                                           .resumed_step = resumes ? resumed_step : std::optional<std::int64_t>()});
  progress_.emplace(total_steps_,
                    ProgressSettings{.label = "train", .unit = "step", .initial = resumed_step, .ticks = true});
  pace_.emplace(total_steps_, "step", resumed_step, steady_seconds());
  counted_ = resumed_step;
  claimed_->keep();
}

BeatObserver RunOutput::counting(BeatObserver other) {
  if (!claimed_) return other;
  return [this, other = std::move(other)](const Beat& beat, const std::function<RankTotals()>& totals) {
    count(beat.step);
    if (other) other(beat, totals);
  };
}

/// Steps that are made, whether they are reported or not (train.log_every).
void RunOutput::count(std::int64_t step) {
  if (!progress_ || step <= counted_) return;
  counted_ = step;
  progress_->update(step);
  if (const auto line = pace_->made(step, steady_seconds())) log::info("{}", *line);
}

void RunOutput::observe_step(const StepStats& s) {
  counted_ = std::max(counted_, s.step);
  if (const auto line = pace_->made(s.step, steady_seconds())) log::info("{}", *line);
  summary_.samples_per_s = s.samples_per_s;
  summary_.result.step = s.step;
  const std::optional<run::GpuLoad> gpus = gpus_->read();
  summary_.gpu_utilization = gpus_->mean_utilization();
  write_step(*metrics_, s, gpus, host_.read(), settings_.train);
  skips_.observe(s);
  progress_->update(s.step, progress_fields(s, gpus));
}

void RunOutput::observe_validation(const ValidationStats& s) {
  std::vector<report::TagValue> values;
  for (const auto& [name, value] : s.metrics) values.push_back({name, value});
  metrics_->write(s.step, values);
  const auto value_of = [&](const char* name) -> const double* {
    for (const auto& [other, value] : s.metrics)
      if (other == name) return &value;
    return nullptr;
  };
  std::string found;
  if (const double* loss = value_of(report::metric::kValidationLoss))
    found += format(", validation loss {:.5f}", *loss);
  if (const double* success = value_of(report::metric::kRolloutSuccess))
    found += format(", {:.1f} % of {} rollouts succeed", 100 * *success, settings_.rollout.n);
  // Of what it is the best: with rollouts and a loss it need not be both.
  const std::string& metric = settings_.train.early_stopping.metric;
  std::string watched = !metric.empty() ? metric : s.metrics.empty() ? "validation" : s.metrics.front().first;
  if (watched == report::metric::kRolloutFailure) watched = report::metric::kRolloutSuccess;  // the same, as said
  std::replace(watched.begin(), watched.end(), '/', ' ');
  log::info("step {} (epoch {}): training loss {:.5f}{}{}", s.step, s.epoch + 1, s.train_loss, found,
            s.improved ? format(", the best {} so far", watched)
                       : format(", {} validations since the best {}", s.validations_since_best, watched));
}

void RunOutput::trained(const TrainResult& result, double seconds) {
  if (progress_ && result.status != TrainStatus::kStopped) progress_->finish();
  progress_.reset();
  summary_.result = result;
  summary_.seconds = seconds;
  const run::ContinueCommand command =
      run::continue_command(settings_.program, folder_.path(), dist::read_rank_environment());
  summary_.status = status_of(result, command);
  if (result.status == TrainStatus::kStopped) {
    log::info("training stopped by a signal at step {} after {}; go on{} with", result.step, format_duration(seconds),
              command.remark.empty() ? "" : ", " + command.remark + ",");
    log::info("  {}", command.text);
  } else {
    log::info("training {} after {}", summary_.status, format_duration(seconds));
  }
  if (const std::string skipped = skipped_text(result); !skipped.empty()) log::warning("{}", skipped);
}

bool RunOutput::is_complete(bool has_test) const {
  if (settings_.resume.empty()) return false;
  return (!settings_.charts || fs::exists(folder_.report_file())) &&
         (!has_test || fs::exists(folder_.path() / "test_metrics.json"));
}

void RunOutput::left_as_it_was(const TrainResult& result) {
  if (!claimed_) return;
  log::info(
      "{}: this training was finished at step {}; its folder was left as it was. To train on, raise train.steps or "
      "train.epochs{}",
      folder_.path().string(), result.step,
      settings_.train.early_stopping.patience > 0 ? ", and train.early_stopping.patience where that ended it" : "");
  log::remove_file(folder_.log_file().string());
  std::error_code ignored;
  if (log_bytes_)
    fs::resize_file(folder_.log_file(), *log_bytes_, ignored);
  else
    fs::remove(folder_.log_file(), ignored);
}

void RunOutput::failed(const std::string& what, double seconds, bool with_report) {
  if (progress_) progress_->finish();
  summary_.status = format("failed: {}", what);
  summary_.failed = true;
  summary_.seconds = seconds;
  if (with_report && metrics_ && settings_.charts)
    write_report(trainable_, settings_, folder_, summary_, nullptr, *metrics_);
}

void RunOutput::finish(const TestResult* test) {
  if (!claimed_) return;
  if (test) log::info("{}", describe_test(*test));
  if (test) write_test_metrics(folder_, *test);
  if (settings_.charts) write_report(trainable_, settings_, folder_, summary_, test, *metrics_);
  if (settings_.tensorboard && metrics_)
    log::info("curves   tensorboard --logdir {}", report::events_folder(folder_.path()).parent_path().string());
  log::info("log      {}", folder_.log_file().string());
  log::info("weights  {}", (folder_.path() / tested_weights(settings_.train, summary_.result)).string());
  log::info("{:<8} {}", "", describe_weights(settings_.train, summary_.result));
  // Without gnuplot there are no charts, which a warning has said.
  if (settings_.charts && fs::exists(folder_.charts())) log::info("charts   {}", folder_.charts().string());
  if (settings_.charts) log::info("report   {}", folder_.report_file().string());
  if (summary_.result.status != TrainStatus::kStopped) say_what_next();
}

/// The command that uses what was trained: in its task where rollouts say which, else on its own data.
void RunOutput::say_what_next() const {
  const std::string run = shell_quoted(folder_.path().string());
  if (!settings_.rollout.task.empty()) {
    std::string command = format("{} evaluate --task {}", settings_.program, shell_quoted(settings_.rollout.task));
    for (const std::string& setting : settings_.rollout.task_settings) command += " " + shell_quoted(setting);
    log::info("evaluate {} --policy {} --episodes 100 --record-video --out {}", command, run,
              shell_quoted((folder_.path() / "evaluation").string()));
    return;
  }
  const config::Json data = resolved_.value("data", config::Json::object());
  std::string file = data.value("path", std::string());
  if (file.empty() && data.contains("paths") && !data.at("paths").empty()) file = data.at("paths").at(0);
  if (file.empty()) return;
  log::info("predict  {} predict {} {} --out {}", settings_.program, run, shell_quoted(utf8_to_bytes(file)),
            shell_quoted((folder_.path() / "predictions.csv").string()));
}

}  // namespace cohort::train
