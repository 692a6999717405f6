#include "train/run.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/command_line.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/utf8.h"
#include "dist/usable_devices.h"
#include "report/metric_names.h"
#include "run/initial_weights.h"
#include "run/run.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/loader_source.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/run_banner.h"
#include "train/run_figures.h"
#include "train/run_report.h"
#include "train/run_test_set.h"

namespace cohort::train {
namespace {

int cpu_threads(const RunSettings& settings, const rank::Environment& environment) {
  if (settings.threads > 0) return settings.threads;
  if (std::getenv("OMP_NUM_THREADS")) return at::get_num_threads();
  return std::max(1, available_cores() / std::max(1, environment.local_world_size));
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
parallel::Plan plan_devices(const RunSettings& settings, const rank::Environment& environment) {
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

  Feed(Job& job, const RunSettings& settings, std::int64_t batch_size, const rank::Environment& environment,
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

/// "stopped early at step 400, best at 250".
run::Outcome outcome_of(const TrainResult& result, const TrainSettings& train) {
  run::Outcome outcome{.step = result.step, .ranks = result.ranks};
  switch (result.status) {
    case TrainStatus::kFinished:
      break;
    case TrainStatus::kEarlyStopped:
      outcome.status = format("stopped early at step {}, best at step {}", result.step, result.best_step);
      break;
    case TrainStatus::kParked:
      outcome.ending = run::Ending::kParked;
      break;
    case TrainStatus::kNothingLeft:
      outcome.ending = run::Ending::kNothingLeft;
      outcome.remedy =
          format("raise train.steps or train.epochs{}",
                 train.early_stopping.patience > 0 ? ", and train.early_stopping.patience where that ended it" : "");
      break;
    case TrainStatus::kStopped:
      outcome.ending = run::Ending::kStopped;
      outcome.status = format("stopped by a signal at step {}", result.step);
      break;
  }
  return outcome;
}

/// The command that uses what was trained: in its task where rollouts say which, else on its own data.
std::vector<std::pair<std::string, std::string>> next_commands(const RunSettings& settings, const run::Run& run) {
  const std::string trained = shell_quoted(run.folder().path().string());
  if (!settings.rollout.task.empty()) {
    std::string command = format("{} evaluate --task {}", settings.program, shell_quoted(settings.rollout.task));
    for (const std::string& setting : settings.rollout.task_settings) command += " " + shell_quoted(setting);
    return {{"evaluate", format("{} --policy {} --episodes 100 --record-video --out {}", command, trained,
                                shell_quoted((run.folder().path() / "evaluation").string()))}};
  }
  const config::Json data = run.configuration().value("data", config::Json::object());
  std::string file = data.value("path", std::string());
  if (file.empty() && data.contains("paths") && !data.at("paths").empty()) file = data.at("paths").at(0);
  if (file.empty()) return {};
  return {{"predict", format("{} predict {} {} --out {}", settings.program, trained, shell_quoted(utf8_to_bytes(file)),
                             shell_quoted((run.folder().path() / "predictions.csv").string()))}};
}

/// A job's model, loop and data in a run.
class SupervisedLearner final : public run::Learner {
 public:
  SupervisedLearner(Job& job, RunSettings& settings, const RolloutFunction& rollouts)
      : job_(job), settings_(settings), rollouts_(rollouts) {}

  std::string job() const override { return job_.name(); }
  run::Counting counting() const override { return {.label = "train", .short_unit = "step", .unit = "step"}; }
  void goes_on_with_own_run() override { settings_.train.checkpoint.resume = CheckpointSettings().resume; }
  run::Resources prepare(run::Run& run) override;
  void prepare_to_join() override { model_ = job_.make_model(settings_.train.seed); }
  config::Json common() const override { return {{"number of training samples", job_.dataset(Part::kTrain)->size()}}; }
  void build(run::Run& run) override;
  std::int64_t batch_size() const override { return plan_.batch_size; }
  std::vector<run::BannerRow> banner(run::Run& run) const override;
  run::Outcome train(run::Run& run) override;
  void conclude(run::Run& run, const run::Outcome& outcome) override;
  run::Results results(double seconds) const override;

 private:
  void warn() const;
  void use_rollouts(const run::Run& run, TrainJob& training);
  c10::Device device() const { return tensors::to_torch_device(plan_.devices.front()); }

  Job& job_;
  RunSettings& settings_;
  const RolloutFunction& rollouts_;
  parallel::Plan plan_;
  std::shared_ptr<torch::nn::Module> model_;
  std::unique_ptr<parallel::Strategy> strategy_;
  std::optional<Feed> feed_;
  std::optional<RunFigures> figures_;
  std::optional<TrainLoop> loop_;
  std::vector<std::pair<std::string, std::string>> commands_;
  TrainResult result_;
  std::optional<TestResult> test_;
};

run::Resources SupervisedLearner::prepare(run::Run& run) {
  const TrainSettings& train = settings_.train;
  train.validate();
  job_.load();
  COHORT_THROW_UNLESS(job_.dataset(Part::kTrain), "the split leaves no training samples");
  check_watched_metric(job_, settings_);
  COHORT_THROW_UNLESS(!settings_.rollout.enabled || rollouts_,
                      "rollout.enabled=true: this build, or this job, has no task to play episodes of");
  COHORT_THROW_UNLESS(
      !settings_.rollout.enabled || train.weights == "fp32",
      "rollout.enabled=true plays episodes with weights of float32, and train.weights=bf16 trains none: "
      "leave one of them out");
  const rank::Environment& environment = run.environment();
  plan_ = plan_devices(settings_, environment);
  check_batches(job_.dataset(Part::kTrain)->size(), plan_.batch_size, environment.world_size, settings_.drop_last);
  return {.devices = plan_.devices,
          .threads = cpu_threads(settings_, environment),
          .several_ranks = plan_.mode == parallel::Mode::kDistributedDataParallel,
          .exchange = plan_.devices.front()};
}

void SupervisedLearner::build(run::Run& run) {
  const std::uint64_t seed = settings_.train.seed;
  if (!model_) model_ = job_.make_model(seed);
  // A run that goes on has its own weights, whatever it began with.
  if (!settings_.init_from.empty() && !run.resumes())
    run::load(*model_, run::read_initial_weights(settings_.init_from, job_.name()));
  const auto in_its_type = [this](std::shared_ptr<torch::nn::Module> made) {
    if (settings_.train.weights == "bf16") convert_parameters(*made, at::kBFloat16);
    return made;
  };
  strategy_ = parallel::make_strategy(plan_, in_its_type(model_), run.group(), settings_.parallel,
                                      [this, in_its_type, seed] { return in_its_type(job_.make_model(seed)); });
  feed_.emplace(job_, settings_, plan_.batch_size, run.environment(), device());
}

std::vector<run::BannerRow> SupervisedLearner::banner(run::Run& run) const {
  std::vector<run::BannerRow> rows = banner_rows(job_, settings_, plan_, *model_);
  // A rank in a dead one's place is alone here.
  if (!run.group() || run.replaces()) return rows;
  constexpr std::size_t kMostRanksOnScreen = 8;
  const std::vector<std::string> ranks = parallel::world_lines(plan_, *run.group());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    rows.push_back({.text = ranks[i], .on_screen = i < kMostRanksOnScreen, .in_report = false});
  if (ranks.size() > kMostRanksOnScreen)
    rows.push_back(
        {.text = format("and {} more, which the log names", ranks.size() - kMostRanksOnScreen), .in_report = false});
  return rows;
}

void SupervisedLearner::warn() const {
  for (const std::string& warning : plan_.warnings) log::warning("{}", warning);
  if (settings_.train.early_stopping.patience > 0 && !feed_->validation)
    log::warning(
        "train.early_stopping.patience = {} has no effect: no data are kept for a validation; change the split, or set "
        "the patience to 0",
        settings_.train.early_stopping.patience);
}

void SupervisedLearner::use_rollouts(const run::Run& run, TrainJob& training) {
  RolloutRequest request{.configuration = training.configuration,
                         .statistics = training.dataset_statistics,
                         .rank = run.environment().rank,
                         .world_size = run.environment().world_size};
  training.validator = with_rollouts(std::move(training.validator), settings_.rollout, rollouts_, request);
  // A policy that does not fit the task is refused before the first step.
  request.model = &strategy_->module();
  request.check_only = true;
  rollouts_(request);
}

run::Outcome SupervisedLearner::train(run::Run& run) {
  warn();
  TrainJob training = train_job(job_, *strategy_, feed_->train);
  if (feed_->validation)
    training.validator = validator_of(job_, *feed_->validation, parse_precision(settings_.train.precision), device());
  training.checkpoints = run.folder().checkpoints();
  training.configuration = json_text(run.configuration(), 2);
  if (settings_.rollout.enabled) use_rollouts(run, training);
  training.started = [this, &run](std::int64_t step) {
    if (run.is_first() && run.resumes()) remove_test_results(run.folder());
    run.begin(step, loop_->total_steps(),
              step > 0                                      ? ""
              : settings_.train.checkpoint.resume == "none" ? "train.checkpoint.resume=none says so"
                                                            : "there is no checkpoint to continue");
    if (!run.is_first() || !settings_.rollout.enabled) return;
    RolloutRequest keeping;
    keeping.keep_in = run.folder().path();
    rollouts_(keeping);
  };
  if (run.is_first()) {
    figures_.emplace(run, settings_);
    training.step_observers.push_back([this](const StepStats& s) { figures_->observe_step(s); });
    training.validation_observers.push_back([this](const ValidationStats& s) { figures_->observe_validation(s); });
    if (settings_.links_results) training.checkpoint_links = settings_.output_dir;
  }
  const bool tests = job_.dataset(Part::kTest) != nullptr;
  if (!run.replaces())
    training.leave_finished =
        run.is_complete(tests ? std::vector<std::string>{"test_metrics.json"} : std::vector<std::string>());
  training.recovery = run.recovery();
  training.group = run.group().get();
  training.constant_buffers = settings_.parallel.ddp.constant_buffers;
  training.first_step = run::Run::first_step;
  training.beat = run.beats();
  commands_ = next_commands(settings_, run);

  TrainSettings settings = settings_.train;
  settings.batch_size = plan_.batch_size;
  settings.global_batch_size.reset();
  settings.gradient_accumulation_steps = plan_.accumulation;
  loop_.emplace(settings, std::move(training));
  result_ = loop_->run();
  return outcome_of(result_, settings);
}

void SupervisedLearner::conclude(run::Run& run, const run::Outcome& outcome) {
  if (const std::string skipped = skipped_text(result_); !skipped.empty()) log::warning("{}", skipped);
  if (outcome.ending == run::Ending::kStopped || !job_.dataset(Part::kTest)) return;
  const EmaWeightsGuard averaged(loop_->ema());
  test_ = run_test_set(job_, strategy_->module(), device(), run.group().get(),
                       {.batch_size = plan_.batch_size,
                        .workers = std::min(1, settings_.loader.workers),
                        .memory_budget_bytes = settings_.loader.memory_budget_bytes,
                        .precision = parse_precision(settings_.train.precision)});
  if (!run.is_first()) return;
  log::info("{}", describe_test(*test_));
  write_test_metrics(run.folder(), *test_);
}

run::Results SupervisedLearner::results(double seconds) const {
  TrainResult result = result_;
  if (result.step == 0 && figures_) result.step = figures_->step();  // it failed
  run::Results results =
      results_of(job_, settings_, result, figures_ ? figures_->samples_per_s() : 0, seconds, test_ ? &*test_ : nullptr);
  results.commands = commands_;
  return results;
}

}  // namespace

void describe(config::Fields& fields, RunSettings& s) {
  run::describe(fields, s);
  fields.add("drop_last", s.drop_last, "leave out a last training batch that is not full");
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
}

int run(Job& job, RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides,
        const RolloutFunction& rollouts) {
  if (settings.name.empty()) settings.name = job.name();
  SupervisedLearner learner(job, settings, rollouts);
  return run::Run(settings, fields, overrides).carry_out(learner);
}

}  // namespace cohort::train
