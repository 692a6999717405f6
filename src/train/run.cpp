#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/progress.h"
#include "dist/group.h"
#include "dist/rank_environment.h"
#include "report/metric_names.h"
#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/job_validator.h"
#include "train/loader_source.h"
#include "train/loop.h"
#include "train/run_banner.h"
#include "train/run_report.h"
#include "train/run_test_set.h"
#include "train/same_settings.h"
#include "train/stop_request.h"
#include "train/usable_devices.h"

namespace cohort::train {
namespace {

namespace fs = std::filesystem;

constexpr double kLongestTimeout = 7 * 24 * 3600;  // s

std::chrono::milliseconds timeout_of(const char* setting, double seconds) {
  COHORT_THROW_UNLESS(seconds >= 1 && seconds <= kLongestTimeout, "{}={:g} must be between 1 and {:g} seconds (a week)",
                      setting, seconds, kLongestTimeout);
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

int cpu_threads(const RunSettings& settings, const dist::RankEnvironment& environment) {
  if (settings.threads > 0) return settings.threads;
  if (std::getenv("OMP_NUM_THREADS")) return at::get_num_threads();
  return std::max(1, available_cores() / std::max(1, environment.local_world_size));
}

/// The settings as they were resolved, and what the ranks' data and job must have in common beside them.
void check_ranks_agree(const Job& job, const config::Fields& fields, dist::Group& group) {
  config::Json common = config::Json::object();
  common["job"] = job.name();
  common.update(fields.to_json());
  common["number of training samples"] = job.dataset(Part::kTrain)->size();
  check_same_settings(common, group);
}

/// Rank 0 makes (or opens) the folder, claims it, and tells the others.
report::RunFolder open_folder(const RunSettings& settings, dist::Group* group,
                              std::optional<report::ClaimedFolder>& claimed) {
  std::string path;
  if (!group || group->rank() == 0) {
    if (settings.resume.empty())
      claimed.emplace(settings.output_dir, settings.name);
    else
      claimed.emplace(settings.resume);
    path = claimed->folder().path().string();
  }
  if (group) path = group->broadcast_bytes(path, 0);
  return report::RunFolder::open(path);
}

/// Refuses, before a step is made, what only a validation would find.
void check_watched_metric(const Job& job, const std::string& watched) {
  if (watched.empty() || !job.dataset(Part::kValidation)) return;
  std::vector<std::string> names = job.validation_figure_names();
  names.insert(names.begin(), report::metric::kValidationLoss);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  COHORT_THROW_UNLESS(std::find(names.begin(), names.end(), watched) != names.end(),
                      "train.early_stopping.metric = '{}' is none of the metrics: {}", watched, list);
}

/// With drop_last, a rank's share of an epoch must fill a batch.
void check_batches(std::int64_t samples, std::int64_t batch_size, int world_size, bool drop_last) {
  COHORT_THROW_UNLESS(!drop_last || samples / world_size >= batch_size,
                      "{} training samples on {} process(es) do not fill a batch of {} each, and drop_last=true leaves "
                      "out batches that are not full: lower train.batch_size, or set drop_last=false",
                      samples, world_size, batch_size);
}

void write_step(report::MetricsWriter& metrics, const StepStats& s, const TrainSettings& settings) {
  namespace metric = report::metric;
  std::vector<report::TagValue> values{{metric::kTrainLoss, s.loss},
                                       {metric::kLearningRate, s.lr},
                                       {metric::kGradientNorm, s.grad_norm},
                                       {metric::kSamplesPerSecond, s.samples_per_s},
                                       {metric::kStepsPerSecond, s.iterations_per_s},
                                       {metric::kDataTime, s.data_time_s},
                                       {metric::kMemory, std::max(s.host_bytes, s.device_bytes)}};
  const bool scales = parse_precision(settings.precision) == Precision::kFp16;
  if (scales || settings.non_finite == "skip")
    values.push_back({metric::kSkippedSteps, static_cast<double>(s.skipped_steps)});
  if (scales) values.push_back({metric::kLossScale, s.loss_scale});
  metrics.write(s.step, values);
}

/// Says that steps are being skipped: the first time, and whenever they have become twice as many.
class SkipWarning {
 public:
  void observe(const StepStats& s) {
    if (s.skipped_steps == 0 || s.skipped_steps < 2 * told_) return;
    told_ = s.skipped_steps;
    log::warning("{} of {} steps so far changed nothing, because their loss or gradients held a NaN or inf{}", told_,
                 s.step, s.loss_scale == 1.0 ? "" : format("; the loss is now scaled by {:g}", s.loss_scale));
  }

 private:
  std::int64_t told_ = 0;
};

std::vector<ProgressField> progress_fields(const StepStats& s) {
  std::vector<ProgressField> fields{{"epoch", format("{:.1f}", s.epoch_progress)},
                                    {"loss", format("{:.4f}", s.loss)},
                                    {"lr", format("{:.2e}", s.lr)},
                                    {"grad", format("{:.2f}", s.grad_norm)},
                                    {"samples/s", format("{:.0f}", s.samples_per_s)},
                                    {"data", format("{:.0f} ms", s.data_time_s * 1e3)},
                                    {"mem", format_bytes(std::max(s.host_bytes, s.device_bytes))}};
  if (s.skipped_steps > 0) fields.push_back({"skipped", format("{}", s.skipped_steps)});
  return fields;
}

std::string status_of(const TrainResult& result) {
  switch (result.status) {
    case TrainStatus::kFinished:
      return "finished";
    case TrainStatus::kEarlyStopped:
      return format("stopped early at step {}, best at step {}", result.step, result.best_step);
    case TrainStatus::kStopped:
      return format("stopped by a signal at step {}; continue with resume=<this folder>", result.step);
  }
  return "unknown";
}

}  // namespace

void describe(config::Fields& fields, RunSettings& s) {
  fields.add("name", s.name, "of the run: results go to output_dir/name/<date-time>; empty: the job's name");
  fields.add("output_dir", s.output_dir, "folder of all runs");
  fields.add("resume", s.resume, "folder of a run to continue, on the command line only; empty: a new run");
  fields.add_choice("backend", s.backend, {"gpu", "cuda", "metal", "cpu"},
                    "gpu: the best one present, the CPU if there is none; the others are forced");
  fields.add("devices", s.devices, "of this process, e.g. cuda:0,cuda:1 or cpu,cpu; empty: all of the backend");
  fields.add("threads", s.threads, "CPU threads inside an operation, per process; 0: OMP_NUM_THREADS, else all cores");
  fields.add("drop_last", s.drop_last, "leave out a last training batch that is not full");
  fields.add("tensorboard", s.tensorboard, "write TensorBoard events beside metrics.jsonl");
  fields.add("charts", s.charts, "draw charts and report.html at the end");
  fields.section("train", [&] { describe(fields, s.train); });
  fields.section("loader", [&] { data::describe(fields, s.loader); });
  fields.section("parallel", [&] {
    fields.add_choice("mode", s.mode, {"auto", "single", "dp", "ddp"}, "how several devices are used");
    fields.section("ddp", [&] { parallel::describe(fields, s.parallel.ddp); });
    fields.section("dp", [&] { parallel::describe(fields, s.parallel.dp); });
  });
  fields.section("dist", [&] {
    fields.add("store_timeout_s", s.store_timeout_s, "seconds that ranks wait for each other at the start");
    fields.add("collective_timeout_s", s.collective_timeout_s,
               "seconds that one collective may take; a rank that is later counts as lost");
  });
}

int run(Job& job, RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides) {
  if (settings.name.empty()) settings.name = job.name();
  const dist::RankEnvironment environment = dist::read_rank_environment();
  const bool first = environment.rank == 0;
  log::set_console(first);
  settings.train.validate();
  COHORT_THROW_UNLESS(settings.threads >= 0, "threads = {} must not be negative; 0 leaves their number open",
                      settings.threads);
  const auto store_timeout = timeout_of("dist.store_timeout_s", settings.store_timeout_s);
  const auto collective_timeout = timeout_of("dist.collective_timeout_s", settings.collective_timeout_s);

  // Bad input ends the run here, before a device, a port or a folder is touched.
  job.load();
  COHORT_THROW_UNLESS(job.dataset(Part::kTrain), "the split leaves no training samples");
  check_watched_metric(job, settings.train.early_stopping.metric);

  const std::vector<DeviceId> devices =
      usable_devices({.backend = parse_backend(settings.backend),
                      .names = settings.devices,
                      .local_rank = environment.launched() ? environment.local_rank : 0});
  at::set_num_threads(cpu_threads(settings, environment));
  parallel::Plan plan = parallel::make_plan({.environment = environment, .devices = devices},
                                            {.mode = settings.mode,
                                             .batch_size = settings.train.batch_size,
                                             .global_batch_size = settings.train.global_batch_size,
                                             .accumulation = settings.train.gradient_accumulation_steps,
                                             .workers = settings.loader.workers});
  const DeviceId device = plan.devices.front();
  const c10::Device torch_device = tensors::to_torch_device(device);
  const std::int64_t batch_size = plan.batch_size;
  check_batches(job.dataset(Part::kTrain)->size(), batch_size, environment.world_size, settings.drop_last);

  std::shared_ptr<dist::Group> group;
  if (plan.mode == parallel::Mode::kDistributedDataParallel) {
    group = dist::Group::create(
        environment, {.store_timeout = store_timeout, .collective_timeout = collective_timeout, .device = device});
    check_ranks_agree(job, fields, *group);
  }
  std::optional<report::ClaimedFolder> claimed;  // rank 0; outlives everything that writes into it
  const std::shared_ptr<torch::nn::Module> model = job.make_model(settings.train.seed);
  const std::unique_ptr<parallel::Strategy> strategy = parallel::make_strategy(
      plan, model, group, settings.parallel, [&job, &settings] { return job.make_model(settings.train.seed); });

  Allocator& memory = tensors::host_allocator_for(torch_device.type());
  const data::SamplerSettings share{.world_size = environment.world_size, .rank = environment.rank};
  data::LoaderSettings loader = settings.loader;
  loader.batch_size = batch_size;
  loader.drop_last = settings.drop_last;
  data::SamplerSettings train_share = share;
  train_share.seed = settings.train.seed;
  train_share.drop_last = settings.drop_last;
  LoaderSource batches(job.dataset(Part::kTrain), train_share, loader, memory);
  const parallel::LossFunction loss = [&job](torch::nn::Module& replica, const parallel::Batch& batch) {
    return job.loss(replica, batch);
  };

  std::optional<LoaderSource> validation;
  TrainJob train_job{.strategy = strategy.get(), .loss = loss, .batches = &batches};
  if (job.dataset(Part::kValidation)) {
    data::SamplerSettings validation_share = share;
    validation_share.shuffle = false;
    loader.drop_last = false;
    validation.emplace(job.dataset(Part::kValidation), validation_share, loader, memory);
    train_job.validator = job_validator(job, *validation, parse_precision(settings.train.precision), torch_device);
  }

  // Models, strategy and loaders stand: from here on the run has a folder.
  const report::RunFolder folder = open_folder(settings, group.get(), claimed);
  if (first) log::add_file(folder.log_file().string());
  const auto banner = banner_rows(job, settings, plan, *model);
  for (const auto& [label, text] : banner) log::info("{:<9} {}", label, text);
  for (const std::string& warning : plan.warnings) log::warning("{}", warning);
  if (settings.train.early_stopping.patience > 0 && !job.dataset(Part::kValidation))
    log::warning(
        "train.early_stopping.patience = {} has no effect: no data are kept for a validation; change the split, or set "
        "the patience to 0",
        settings.train.early_stopping.patience);
  if (group)
    for (const std::string& line : parallel::world_lines(plan, *group)) log::info("{:<9} {}", "", line);
  log::info("{:<9} {}", "results", folder.path().string());
  config::Json resolved = fields.to_json();
  resolved["resume"] = "";  // who starts from this configuration starts another run
  const std::string configuration = resolved.dump(2);
  log::info("{:<9} all of them, as in {}:", "settings", folder.config_file().string());
  for (const std::string& line : settings_lines(resolved)) log::info("{:<9} {}", "", line);
  train_job.checkpoints = folder.checkpoints();
  train_job.configuration = configuration;
  train_job.dataset_statistics = job.statistics().dump(2);

  TrainSettings train = settings.train;
  train.batch_size = batch_size;
  train.global_batch_size.reset();
  std::optional<report::MetricsWriter> metrics;
  std::optional<Progress> progress;
  RunSummary summary{.banner = banner};
  std::int64_t total_steps = 0;
  SkipWarning skips;
  // A run that cannot begin, or go on, leaves the folder as it was.
  const auto begin_output = [&](std::int64_t resumed_step) {
    if (!settings.resume.empty() && resumed_step == 0)
      log::warning("{}: training begins at its first step, because {}; the metrics of the earlier one are cut",
                   folder.path().string(),
                   settings.train.checkpoint.resume == "none" ? "train.checkpoint.resume=none says so"
                                                              : "there is no checkpoint to continue");
    if (!settings.resume.empty()) remove_test_results(folder);
    folder.save_configuration(configuration + "\n", overrides);
    metrics.emplace(folder.path(),
                    report::MetricsSettings{
                        .tensorboard = settings.tensorboard,
                        .resumed_step = settings.resume.empty() ? std::optional<std::int64_t>() : resumed_step});
    progress.emplace(total_steps, ProgressSettings{.label = "train", .unit = "step", .initial = resumed_step});
    claimed->keep();
  };
  if (first) {
    train_job.started = begin_output;
    train_job.step_observers.push_back([&](const StepStats& s) {
      summary.samples_per_s = s.samples_per_s;
      summary.result.step = s.step;
      write_step(*metrics, s, settings.train);
      skips.observe(s);
      progress->update(s.step, progress_fields(s));
    });
    train_job.validation_observers.push_back([&](const ValidationStats& s) {
      std::vector<report::TagValue> values;
      for (const auto& [name, value] : s.metrics) values.push_back({name, value});
      metrics->write(s.step, values);
      log::info("step {} (epoch {}): training loss {:.5f}, validation loss {:.5f}{}", s.step, s.epoch + 1, s.train_loss,
                s.metrics.front().second,
                s.improved ? ", the best so far" : format(", {} since the best", s.validations_since_best));
    });
  }

  install_stop_signals();
  TrainLoop loop(train, std::move(train_job));
  total_steps = loop.total_steps();
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  try {
    summary.result = loop.run();
  } catch (const std::exception& e) {
    if (progress) progress->finish();
    summary.status = format("failed: {}", e.what());
    summary.failed = true;
    summary.seconds = seconds();
    // Not among several ranks: the launcher should hear of the failure first, and may end this process at any time.
    if (metrics && !group && settings.charts) write_report(job, settings, folder, summary, nullptr, *metrics);
    throw;
  }
  summary.seconds = seconds();
  if (progress) progress->finish();
  summary.status = status_of(summary.result);
  log::info("training {} after {}", summary.status, format_duration(summary.seconds));
  if (const std::string skipped = skipped_text(summary.result); !skipped.empty()) log::warning("{}", skipped);

  std::optional<TestResult> test;
  if (summary.result.status != TrainStatus::kStopped && job.dataset(Part::kTest)) {
    const EmaWeightsGuard averaged(loop.ema());
    test = run_test_set(job, strategy->module(), torch_device, group.get(),
                        {.batch_size = batch_size,
                         .workers = std::min(1, settings.loader.workers),
                         .memory_budget_bytes = settings.loader.memory_budget_bytes,
                         .precision = parse_precision(settings.train.precision)});
  }
  if (first) {
    if (test) log::info("{}", describe_test(*test));
    if (test) write_test_metrics(folder, *test);
    if (settings.charts) write_report(job, settings, folder, summary, test ? &*test : nullptr, *metrics);
    log::info("log      {}", folder.log_file().string());
    log::info("weights  {}", (folder.path() / tested_weights(settings.train, summary.result)).string());
    log::info("{:<8} {}", "", describe_weights(settings.train, summary.result));
    if (settings.charts) {
      // Without gnuplot there are none, which a warning has said.
      if (fs::exists(folder.charts())) log::info("charts   {}", folder.charts().string());
      log::info("report   {}", folder.report_file().string());
    }
  }
  if (group) group->close();
  if (summary.result.status == TrainStatus::kStopped && stop_signal() != 0) return 128 + stop_signal();
  return 0;
}

}  // namespace cohort::train
