#include "train/run.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/devices.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/progress.h"
#include "dist/cuda_plugin.h"
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
#include "train/stop_request.h"

namespace cohort::train {
namespace {

namespace fs = std::filesystem;

/// The devices that this process may use: those that were named, or all of the backend.
std::vector<DeviceId> devices_of(const RunSettings& settings, const dist::RankEnvironment& environment) {
  std::vector<DeviceId> devices;
  for (const std::string& name : settings.devices) devices.push_back(parse_device(name));
  if (devices.empty()) {
    const DeviceListing listing = list_devices();
    const DeviceChoice choice =
        choose_device(listing, {.backend = parse_backend(settings.backend),
                                .local_rank = environment.launched() ? environment.local_rank : 0});
    (choice.fell_back ? log::warning<const std::string&> : log::info<const std::string&>)("{}", choice.explanation);
    if (choice.backend == Backend::kCuda) {
      for (std::size_t i = 0; i < listing.visible.size(); ++i)
        devices.push_back({DeviceKind::kCuda, static_cast<int>(i)});
    } else {
      devices.push_back(choice.device);
    }
  }
  for (const DeviceId& device : devices)
    if (device.kind == DeviceKind::kCuda) {
      dist::load_cuda_plugin();  // before anything asks LibTorch about CUDA
      break;
    }
  return devices;
}

int cpu_threads(const RunSettings& settings, const dist::RankEnvironment& environment) {
  if (settings.threads > 0) return settings.threads;
  if (std::getenv("OMP_NUM_THREADS")) return at::get_num_threads();
  return std::max(1, available_cores() / std::max(1, environment.local_world_size));
}

/// Rank 0 makes (or opens) the folder and tells the others.
report::RunFolder open_folder(const RunSettings& settings, dist::Group* group) {
  std::string path;
  if (!group || group->rank() == 0)
    path = settings.resume.empty() ? report::RunFolder::create(settings.output_dir, settings.name).path().string()
                                   : report::RunFolder::open(settings.resume).path().string();
  if (group) path = group->broadcast_bytes(path, 0);
  return report::RunFolder::open(path);
}

void write_step(report::MetricsWriter& metrics, const StepStats& s) {
  namespace metric = report::metric;
  metrics.write(s.step, {{metric::kTrainLoss, s.loss},
                         {metric::kLearningRate, s.lr},
                         {metric::kGradientNorm, s.grad_norm},
                         {metric::kSamplesPerSecond, s.samples_per_s},
                         {metric::kStepsPerSecond, s.iterations_per_s},
                         {metric::kDataTime, s.data_time_s},
                         {metric::kMemory, std::max(s.host_bytes, s.device_bytes)}});
}

std::vector<ProgressField> progress_fields(const StepStats& s) {
  return {{"epoch", format("{:.1f}", s.epoch_progress)},
          {"loss", format("{:.4f}", s.loss)},
          {"lr", format("{:.2e}", s.lr)},
          {"grad", format("{:.2f}", s.grad_norm)},
          {"samples/s", format("{:.0f}", s.samples_per_s)},
          {"data", format("{:.0f} ms", s.data_time_s * 1e3)},
          {"mem", format_bytes(std::max(s.host_bytes, s.device_bytes))}};
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
  fields.add("resume", s.resume, "folder of a run to continue; empty: a new run");
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
}

int run(Job& job, RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides) {
  if (settings.name.empty()) settings.name = job.name();
  const dist::RankEnvironment environment = dist::read_rank_environment();
  const bool first = environment.rank == 0;
  log::set_console(first);
  for (const std::string& note : environment.notes) log::info("{}", note);
  settings.train.validate();
  COHORT_THROW_UNLESS(settings.threads >= 0, "threads = {} must not be negative; 0 leaves their number open",
                      settings.threads);

  // Bad input ends the run here, before a device, a port or a folder is touched.
  job.load();
  COHORT_THROW_UNLESS(job.dataset(Part::kTrain), "the split leaves no training samples");

  const std::vector<DeviceId> devices = devices_of(settings, environment);
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

  std::shared_ptr<dist::Group> group;
  if (plan.mode == parallel::Mode::kDistributedDataParallel)
    group = dist::Group::create(environment, {.device = device});
  const report::RunFolder folder = open_folder(settings, group.get());
  if (first) log::add_file(folder.log_file().string());

  const std::shared_ptr<torch::nn::Module> model = job.make_model(settings.train.seed);
  const auto banner = banner_rows(job, settings, plan, *model);
  for (const auto& [label, text] : banner) log::info("{:<9} {}", label, text);
  for (const std::string& warning : plan.warnings) log::warning("{}", warning);
  if (group)
    for (const std::string& line : parallel::world_lines(plan, *group)) log::info("{:<9} {}", "", line);
  log::info("{:<9} {}", "results", folder.path().string());
  log::info("{:<9} all of them, as in {}:", "settings", folder.config_file().string());
  for (const std::string& line : settings_lines(fields.to_json())) log::info("{:<9} {}", "", line);
  const std::string configuration = fields.to_json().dump(2);
  if (first) folder.save_configuration(configuration + "\n", overrides);
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
  const auto begin_output = [&](std::int64_t resumed_step) {
    if (!settings.resume.empty()) remove_test_results(folder);
    metrics.emplace(folder.path(),
                    report::MetricsSettings{
                        .tensorboard = settings.tensorboard,
                        .resumed_step = settings.resume.empty() ? std::optional<std::int64_t>() : resumed_step});
    progress.emplace(total_steps, ProgressSettings{.label = "train", .unit = "step", .initial = resumed_step});
  };
  if (first) {
    train_job.started = begin_output;
    train_job.step_observers.push_back([&](const StepStats& s) {
      summary.samples_per_s = s.samples_per_s;
      summary.result.step = s.step;
      write_step(*metrics, s);
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
