#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/without_stack.h"
#include "dist/group.h"
#include "dist/rank_environment.h"
#include "dist/recovery.h"
#include "dist/usable_devices.h"
#include "report/metric_names.h"
#include "report/result_links.h"
#include "report/run_folder.h"
#include "run/initial_weights.h"
#include "run/launched_job.h"
#include "run/rank_beats.h"
#include "run/resume_target.h"
#include "run/same_settings.h"
#include "run/stop_request.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "tensors/processor.h"
#include "train/loader_source.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/run_output.h"
#include "train/run_test_set.h"
#include "weights/checkpoint_folder.h"

namespace cohort::train {
namespace {

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
  // Of how many ranks the whole job is, and with it the batch, each node reckons from its own.
  const std::string own = format("{}", group.environment().full_world_size);
  const std::vector<std::string> all = group.all_gather_bytes(own);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    COHORT_THROW_UNLESS(
        all[rank] == all[0],
        "with all of its nodes this job would have {} processes by rank 0, but {} by rank {}: nodes "
        "that come and go need the same --nproc_per_node, or the batch of a step would not stay the same",
        all[0], all[rank], rank);
  config::Json common = config::Json::object();
  common["job"] = job.name();
  common.update(fields.to_json());
  common["number of training samples"] = job.dataset(Part::kTrain)->size();
  run::check_same_settings(common, group);
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

/// "cuda:0" or "cuda:0, cuda:1".
std::string device_names(const std::vector<DeviceId>& devices) {
  std::string names;
  for (const DeviceId device : devices) names += (names.empty() ? "" : ", ") + tensors::to_torch_device(device).str();
  return names;
}

/// What rank 0 says, on all ranks.
bool as_rank_0_says(bool of_rank_0, dist::Group* group) {
  return group ? group->broadcast_bytes(of_rank_0 ? "1" : "0", 0) == "1" : of_rank_0;
}

/// A job that was started again goes on with its own run. Every rank looks for it: rank 0 makes a new one only after
/// all of them have.
void choose_run(RunSettings& settings, const std::vector<std::string>& overrides) {
  const run::LaunchedJob launched = run::read_launched_job();
  const std::string asked = settings.resume;
  settings.resume =
      run::find_run(asked, std::filesystem::path(settings.output_dir) / settings.name, launched, overrides);
  // Where it began is behind it: it goes on from its own last checkpoint, unless one of them was named now.
  const bool own = settings.resume != asked || launched.restarted();
  if (own && !settings.resume.empty() &&
      !weights::CheckpointFolder(std::filesystem::path(settings.resume) / "checkpoints").steps().empty())
    settings.train.checkpoint.resume = CheckpointSettings().resume;
}

/// For `cohort launch`, which does not start a program again that fails at its start.
void tell_first_step() {
  if (const auto file = dist::process_variable("COHORT_FIRST_STEP_FILE")) std::ofstream(*file) << "\n";
}

/// Refuses, before a step is made, what only a validation would find.
void check_watched_metric(const Job& job, const RunSettings& settings) {
  const std::string& watched = settings.train.early_stopping.metric;
  const bool has_validation = job.dataset(Part::kValidation) != nullptr;
  if (watched.empty() || (!has_validation && !settings.rollout.enabled)) return;
  std::vector<std::string> names;
  if (has_validation) names = job.validation_figure_names();
  if (has_validation) names.insert(names.begin(), report::metric::kValidationLoss);
  // Watched can be what every validation measures, and what is better when it is smaller.
  if (settings.rollout.enabled && settings.rollout.rate == 1 && settings.rollout.warmstart == 0)
    names.emplace_back(report::metric::kRolloutFailure);
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

/// The devices of this process, and how the run uses them.
parallel::Plan plan_devices(const RunSettings& settings, const dist::RankEnvironment& environment) {
  const std::vector<DeviceId> devices =
      dist::usable_devices({.backend = parse_backend(settings.backend),
                            .names = settings.devices,
                            .local_rank = environment.launched() ? environment.local_rank : 0});
  parallel::Plan plan = parallel::make_plan({.environment = environment, .devices = devices},
                                            {.mode = settings.mode,
                                             .batch_size = settings.train.batch_size,
                                             .global_batch_size = settings.train.global_batch_size,
                                             .accumulation = settings.train.gradient_accumulation_steps,
                                             .workers = settings.loader.workers,
                                             .zero = settings.parallel.zero});
  if (parse_precision(settings.train.precision) == Precision::kFp16 && plan.devices[0].kind == DeviceKind::kCpu) {
    plan.warnings.emplace_back(
        "train.precision=fp16 on a CPU, which computes in it by software: a step takes about 20 times as long as in "
        "fp32; take fp32 or bf16");
  }
  return plan;
}

/// This rank's batches: for training in the seed's order, for validation in that of the data.
struct Feed {
  LoaderSource train;
  std::optional<LoaderSource> validation;

  Feed(Job& job, const RunSettings& settings, std::int64_t batch_size, const dist::RankEnvironment& environment,
       c10::Device device)
      : train(job.dataset(Part::kTrain),
              {.world_size = environment.world_size,
               .rank = environment.rank,
               .drop_last = settings.drop_last,
               .seed = settings.train.seed},
              loader(settings, batch_size, settings.drop_last), tensors::host_allocator_for(device.type())) {
    if (!job.dataset(Part::kValidation)) return;
    validation.emplace(
        job.dataset(Part::kValidation),
        data::SamplerSettings{.world_size = environment.world_size, .rank = environment.rank, .shuffle = false},
        loader(settings, batch_size, false), tensors::host_allocator_for(device.type()));
  }

 private:
  static data::LoaderSettings loader(const RunSettings& settings, std::int64_t batch_size, bool drop_last) {
    data::LoaderSettings loader = settings.loader;
    loader.batch_size = batch_size;
    loader.drop_last = drop_last;
    return loader;
  }
};

}  // namespace

void describe(config::Fields& fields, RunSettings& s) {
  fields.add("name", s.name, "of the run: results go to output_dir/name/<date-time>; empty: the job's name");
  fields.add("output_dir", s.output_dir, "folder of all runs");
  fields.add("resume", s.resume,
             "run to continue, on the command line only: its folder, or one of its checkpoints; auto: this job's own "
             "run, else "
             "the newest of this name; empty: a new run, or its own where the job was restarted");
  fields.add(
      "init_from", s.init_from,
      "run or checkpoint whose weights a new run begins with (its moving average where it has one); nothing else "
      "is taken over");
  fields.add_choice("backend", s.backend, {"gpu", "cuda", "metal", "cpu"},
                    "gpu: the best one present, the CPU if there is none; the others are forced");
  fields.add("devices", s.devices, "of this process, e.g. cuda:0,cuda:1 or cpu,cpu; empty: all of the backend");
  fields.add("threads", s.threads, "CPU threads inside an operation, per process; 0: OMP_NUM_THREADS, else all cores");
  fields.add("drop_last", s.drop_last, "leave out a last training batch that is not full");
  fields.add("tensorboard", s.tensorboard,
             "write TensorBoard events: output_dir/name/tensorboard/<date-time>; the metrics of metrics.jsonl");
  fields.add("tensorboard_charts", s.tensorboard_charts, "show the report's charts in TensorBoard, too, as pictures");
  fields.add("charts", s.charts, "draw charts and report.html at the end");
  fields.add("rank_status", s.rank_status,
             "every rank says in ranks/rank_N.json of the run's folder what it is doing, at most once a second, for "
             "cohort top and cohort doctor");
  fields.section("train", [&] { describe(fields, s.train); });
  fields.section("loader", [&] { data::describe(fields, s.loader); });
  fields.section("parallel", [&] {
    fields.add_choice("mode", s.mode, {"auto", "single", "dp", "ddp"}, "how several devices are used");
    fields.add("zero", s.parallel.zero,
               "what ranks divide among them: 0 nothing, 1 the optimizer's state, 2 the gradients, too");
    fields.section("ddp", [&] { parallel::describe(fields, s.parallel.ddp); });
    fields.section("dp", [&] { parallel::describe(fields, s.parallel.dp); });
  });
  fields.section("rollout", [&] { describe(fields, s.rollout); });
  fields.section("dist", [&] {
    fields.add("store_timeout_s", s.store_timeout_s, "seconds that ranks wait for each other at the start");
    fields.add("collective_timeout_s", s.collective_timeout_s,
               "seconds that one collective may take; a rank that is later counts as lost");
  });
}

int run(Job& job, RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides,
        const RolloutFunction& rollouts) {
  if (settings.name.empty()) settings.name = job.name();
  const dist::RankEnvironment environment = dist::read_rank_environment();
  const bool first = environment.rank == 0;
  log::set_console(first);
  settings.train.validate();
  const std::unique_ptr<dist::Recovery> recovery = dist::Recovery::of_this_process();
  const bool replaces = recovery && recovery->replaces();  // a dead rank, in whose run it goes on
  if (recovery) recovery->say(launch::RankPhase::kStart, 0);
  if (replaces)
    settings.resume = recovery->note();
  else if (settings.resume.empty() || settings.resume == "auto")
    choose_run(settings, overrides);
  COHORT_THROW_UNLESS(settings.threads >= 0, "threads = {} must not be negative; 0 leaves their number open",
                      settings.threads);
  const auto store_timeout = timeout_of("dist.store_timeout_s", settings.store_timeout_s);
  const auto collective_timeout = timeout_of("dist.collective_timeout_s", settings.collective_timeout_s);

  // Bad input ends the run here, before a device, a port or a folder is touched.
  if (!settings.resume.empty()) run::check_data_of_run(fields);
  job.load();
  COHORT_THROW_UNLESS(job.dataset(Part::kTrain), "the split leaves no training samples");
  check_watched_metric(job, settings);
  COHORT_THROW_UNLESS(!settings.rollout.enabled || rollouts,
                      "rollout.enabled=true: this build, or this job, has no task to play episodes of");
  COHORT_THROW_UNLESS(
      !settings.rollout.enabled || settings.train.weights == "fp32",
      "rollout.enabled=true plays episodes with weights of float32, and train.weights=bf16 trains none: "
      "leave one of them out");
  const parallel::Plan plan = plan_devices(settings, environment);
  check_batches(job.dataset(Part::kTrain)->size(), plan.batch_size, environment.world_size, settings.drop_last);
  at::set_num_threads(cpu_threads(settings, environment));
  tensors::settle_processor();  // the model's first weights are drawn before there is a strategy
  const DeviceId device = plan.devices.front();
  const c10::Device torch_device = tensors::to_torch_device(device);

  // The others wait for a rank that takes a dead one's place: it makes its model before it joins them.
  std::shared_ptr<torch::nn::Module> model = replaces ? job.make_model(settings.train.seed) : nullptr;
  std::shared_ptr<dist::Group> group;
  if (plan.mode == parallel::Mode::kDistributedDataParallel) {
    group = dist::Group::create(
        replaces ? recovery->wait_to_join(environment) : environment,
        {.store_timeout = store_timeout, .collective_timeout = collective_timeout, .device = device});
    if (!replaces) check_ranks_agree(job, fields, *group);
  }
  std::optional<report::ClaimedFolder> claimed;  // rank 0; outlives everything that writes into it
  if (!model) model = job.make_model(settings.train.seed);
  // A run that goes on has its own weights, whatever it began with.
  if (!settings.init_from.empty() && settings.resume.empty())
    load(*model, run::read_initial_weights(settings.init_from, job.name()));
  const auto in_its_type = [&settings](std::shared_ptr<torch::nn::Module> made) {
    if (settings.train.weights == "bf16") convert_parameters(*made, at::kBFloat16);
    return made;
  };
  const std::unique_ptr<parallel::Strategy> strategy =
      parallel::make_strategy(plan, in_its_type(model), group, settings.parallel,
                              [&] { return in_its_type(job.make_model(settings.train.seed)); });
  Feed feed(job, settings, plan.batch_size, environment, torch_device);
  TrainJob training = train_job(job, *strategy, feed.train);
  if (feed.validation)
    training.validator = validator_of(job, *feed.validation, parse_precision(settings.train.precision), torch_device);

  // Models, strategy and loaders stand: from here on the run has a folder.
  const report::RunFolder folder = replaces && !first
                                       ? report::RunFolder::open(settings.resume)
                                       : open_folder(settings, replaces ? nullptr : group.get(), claimed);
  if (recovery) recovery->set_note(folder.path().string());
  RunOutput output(job, settings, folder, first ? &*claimed : nullptr, fields, overrides);
  output.announce(plan, *model, feed.validation.has_value(), replaces ? nullptr : group.get());
  output.attach(training);
  if (first && settings.links_results) training.checkpoint_links = settings.output_dir;
  // A run that was finished before stays as it was: the job has not trained in it.
  if (first)
    training.started = [&, begin = training.started](std::int64_t step) {
      begin(step);
      run::record_job(folder.path(), run::read_launched_job(), overrides);
      if (settings.links_results) report::link_results(settings.output_dir, folder.path());
    };
  if (settings.rollout.enabled) {
    RolloutRequest request{.configuration = training.configuration,
                           .statistics = training.dataset_statistics,
                           .rank = environment.rank,
                           .world_size = environment.world_size};
    training.validator = with_rollouts(std::move(training.validator), settings.rollout, rollouts, request);
    // A policy that does not fit the task is refused before the first step.
    request.model = &strategy->module();
    request.check_only = true;
    rollouts(request);
  }
  if (!replaces)
    training.leave_finished =
        as_rank_0_says(first && output.is_complete(job.dataset(Part::kTest) != nullptr), group.get());
  training.recovery = recovery.get();
  training.group = group.get();
  training.constant_buffers = settings.parallel.ddp.constant_buffers;

  training.first_step = tell_first_step;
  run::RankBeats beats(folder.path(), {.rank = environment.rank,
                                       .world_size = environment.world_size,
                                       .job = job.name(),
                                       .device = device_names(plan.devices),
                                       .batch_size = plan.batch_size});
  training.beat = output.counting(settings.rank_status ? beats.observer() : BeatObserver());

  run::install_stop_signals(first ? "stops after this step, with a checkpoint; Ctrl-C again: at once, without one"
                                  : nullptr);
  TrainSettings train = settings.train;
  train.batch_size = plan.batch_size;
  train.global_batch_size.reset();
  train.gradient_accumulation_steps = plan.accumulation;
  TrainLoop loop(train, std::move(training));
  output.set_total_steps(loop.total_steps());
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  TrainResult result;
  try {
    result = loop.run();
  } catch (const std::exception& e) {
    // No report among several ranks: the launcher should hear of the failure first, and may end this process any time.
    output.failed(without_stack(e.what()), seconds(), !group);
    throw;
  }
  if (result.status == TrainStatus::kParked) {
    beats.end("stopped");
    return 0;
  }
  if (result.status == TrainStatus::kNothingLeft) {
    output.left_as_it_was(result);
    if (group) group->close();
    return 0;
  }
  output.trained(result, seconds());

  std::optional<TestResult> test;
  if (result.status != TrainStatus::kStopped && job.dataset(Part::kTest)) {
    const EmaWeightsGuard averaged(loop.ema());
    test = run_test_set(job, strategy->module(), torch_device, group.get(),
                        {.batch_size = plan.batch_size,
                         .workers = std::min(1, settings.loader.workers),
                         .memory_budget_bytes = settings.loader.memory_budget_bytes,
                         .precision = parse_precision(settings.train.precision)});
  }
  output.finish(test ? &*test : nullptr);
  beats.end(result.status == TrainStatus::kStopped ? "stopped" : "finished");
  if (group) group->close();
  if (result.status == TrainStatus::kStopped && run::stop_signal() != 0) return 128 + run::stop_signal();
  return 0;
}

}  // namespace cohort::train
