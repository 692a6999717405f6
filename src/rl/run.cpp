#include "rl/run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/command_line.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "dist/cuda_plugin.h"
#include "dist/usable_devices.h"
#include "parallel/plan.h"
#include "rl/fused_mlp.h"
#include "rl/learner_memory.h"
#include "rl/ranks.h"
#include "rl/resumed_settings.h"
#include "rl/run_figures.h"
#include "rl/run_watch.h"
#include "rl/runner.h"
#include "run/banner.h"
#include "run/initial_weights.h"
#include "run/run.h"
#include "run/stop_request.h"
#include "sim/host_memory.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"
#include "tasks/task_check.h"
#include "tensors/convert.h"
#include "train/checkpoint_writer.h"
#include "weights/checkpoint.h"

namespace cohort::rl {
namespace {

constexpr std::int64_t kVeryMany = 1 << 16;  // environments

std::unique_ptr<tasks::Task> make_task(const PpoRunSettings& settings, std::int64_t environments, int threads,
                                       DeviceId device) {
  if (settings.task.empty()) {
    std::string names;
    for (const tasks::TaskEntry& entry : tasks::all_tasks()) names += (names.empty() ? "" : ", ") + entry.name;
    throw Error(format("say what is to be learnt: task=NAME, one of {}", names));
  }
  return tasks::make_task(settings.task, {.n_envs = static_cast<int>(environments),
                                          .threads = threads,
                                          .engine = settings.engine,
                                          .device = device,
                                          .overrides = settings.task_settings,
                                          .learning = true});
}

/// The devices of this process: the first for the simulator, all for learning.
std::vector<DeviceId> own_devices(const PpoRunSettings& settings, const rank::Environment& environment) {
  COHORT_THROW_UNLESS(settings.devices.size() < 2 || environment.world_size == 1,
                      "devices names {} devices, but each of {} ranks has one of its own: leave devices out, or start "
                      "one process",
                      settings.devices.size(), environment.world_size);
  const std::vector<DeviceId> devices =
      dist::usable_devices({.backend = parse_backend(settings.backend),
                            .names = settings.devices,
                            .local_rank = environment.launched() ? environment.local_rank : 0});
  if (!settings.devices.empty()) return devices;
  return {environment.launched() ? parallel::device_of_rank({.environment = environment, .devices = devices})
                                 : devices.front()};
}

/// Refuses more environments than this machine has memory to learn from.
void need_memory_for(const PpoRunSettings& settings, const tasks::TaskSpec& task, const rank::Environment& environment,
                     int ranks) {
  // Ranks that start together take it from each other, but where each was given a part of it.
  const int sharing = rank::process_variable(sim::kHostMemoryVariable) ? 1 : std::max(1, environment.local_world_size);
  need_memory({.policy = settings.policy,
               .ppo = settings.algorithm,
               .runner = settings.runner,
               .task = task,
               .n_envs = settings.n_envs,
               .ranks = ranks},
              sim::available_host_memory() / sharing);
}

/// A task's environments and PPO in a run.
class PpoLearner final : public run::Learner {
 public:
  explicit PpoLearner(PpoRunSettings& settings) : settings_(settings) {}

  std::string job() const override { return "ppo"; }
  std::string default_name() const override { return tasks::task_title(settings_.task); }
  run::Counting counting() const override { return {.label = "ppo", .short_unit = "it", .unit = "iteration"}; }
  run::Resources prepare(run::Run& run) override;
  void build(run::Run& run) override;
  std::int64_t batch_size() const override { return shares_.environments; }
  std::vector<run::BannerRow> banner(run::Run& run) const override;
  run::Outcome train(run::Run& run) override;
  void conclude(run::Run&, const run::Outcome&) override {
    if (figures_) figures_->say_last();
  }
  run::Results results(double seconds) const override;

 private:
  Ranks& ranks() { return several_ ? static_cast<Ranks&>(*several_) : alone_; }
  void go_on_from(const weights::ResumePoint& point, const run::Run& run);
  void warn_of_stretched_schedule(const config::Json& saved) const;
  void learn(run::Run& run, RunWatch& watch);
  Iteration iterate();
  void save(run::Run& run, RunWatch& watch);
  bool some_rank_stops();
  void refuse_if_all_broke(const Iteration& figures);
  void warn_if_hovering_pays();
  double gamma() const { return std::min(settings_.algorithm.gamma, 1 - 1e-6); }
  std::int64_t last_iteration() const { return settings_.runner.max_iterations; }

  PpoRunSettings& settings_;
  int simulator_threads_ = 1, learner_threads_ = 1;
  std::vector<DeviceId> devices_;
  Ranks alone_;
  std::optional<GroupRanks> several_;
  Shares shares_;
  std::unique_ptr<tasks::Task> task_;
  std::optional<PpoRunner> runner_;
  std::optional<weights::ResumePoint> point_;
  std::string configuration_;
  std::filesystem::path folder_;
  std::optional<IterationFigures> figures_;        // rank 0
  std::optional<train::CheckpointWriter> writer_;  // rank 0
  std::int64_t saved_ = -1;
  std::optional<std::int64_t> broken_ = 0;  ///< environments of all ranks so far; unknown behind a resume
  bool hovering_said_ = false;
  std::string reached_;  ///< the return that ended the run, "" otherwise
};

run::Resources PpoLearner::prepare(run::Run& run) {
  const rank::Environment& environment = run.environment();
  // Also of a run that was found by itself, and for a rank that takes another's place.
  if (run.resumes()) tasks::use_kept_task(settings_.task, settings_.resume, false);
  if (!settings_.task.empty()) settings_.task_library = tasks::library_of(settings_.task);
  const int cores = std::max(1, available_cores() / std::max(1, environment.local_world_size));
  simulator_threads_ = settings_.threads > 0 ? settings_.threads : cores;
  check(settings_);
  learner_threads_ = settings_.learner_threads > 0 ? settings_.learner_threads : cores;
  // FusedMlp divides the work among threads of its own; LibTorch's cost more than they bring in networks of this size.
  const bool fused = FusedMlp::activation(settings_.policy.activation).has_value() && settings_.devices.size() < 2 &&
                     learner_precision(settings_.runner) == train::Precision::kFp32;
  // The CUDA plug-in has to be there before anything asks LibTorch about CUDA.
  devices_ = own_devices(settings_, environment);
  if (devices_.front().kind == DeviceKind::kCuda) dist::load_cuda_plugin().set_device(devices_.front().index);
  return {.devices = devices_,
          .threads = fused ? 1 : learner_threads_,
          .several_ranks = environment.world_size > 1,
          .exchange = devices_.front()};
}

void PpoLearner::build(run::Run& run) {
  if (run.group()) several_.emplace(run.group());
  const DeviceId device = devices_.front();
  const bool recurrent = settings_.policy.recurrent();
  const int steps = recurrent ? 1 : settings_.runner.num_steps_per_env;
  shares_ = share_environments(settings_.n_envs, steps, settings_.algorithm.num_mini_batches, ranks());
  const std::int64_t samples = steps * shares_.environments / settings_.algorithm.num_mini_batches;
  COHORT_THROW_UNLESS(samples >= std::ssize(devices_),
                      "devices names {}, which share every minibatch, and a minibatch has {} {}: raise n_envs, lower "
                      "algorithm.num_mini_batches, or name fewer devices",
                      devices_.size(), samples, recurrent ? "environments" : "transitions");
  const auto need_memory_of = [&](const tasks::Task& task) {
    need_memory_for(settings_, task.spec(), run.environment(), ranks().size());
  };
  // Very many are refused before the simulator has spent minutes on them.
  const bool on_host = device.kind == DeviceKind::kCpu;
  if (on_host && shares_.environments > kVeryMany) need_memory_of(*make_task(settings_, 1, simulator_threads_, device));
  task_ = make_task(settings_, shares_.environments, simulator_threads_, device);
  if (on_host) need_memory_of(*task_);
  runner_.emplace(*task_, settings_.runner, settings_.algorithm, settings_.policy,
                  PpoResources{.ranks = &ranks(), .threads = learner_threads_, .devices = devices_});
  if (run.resumes())
    point_ = weights::find_resume_point(settings_.checkpoint.empty() ? "auto" : settings_.checkpoint,
                                        std::filesystem::path(settings_.resume) / "checkpoints");
  if (point_)
    go_on_from(*point_, run);
  else if (!settings_.init_from.empty())
    runner_->begin_with(run::read_initial_weights(settings_.init_from, job()));
}

/// Goes on from a checkpoint, whose own settings hold where they must.
void PpoLearner::go_on_from(const weights::ResumePoint& point, const run::Run& run) {
  const config::Json saved = try_json<config::Json>(point.content.state.configuration);
  const std::vector<ChangedSetting> changed =
      settings_changed_since(saved, run.configuration(), point.path.string(), settings_.resume);
  runner_->resume(point.content, point.path.string());
  if (run.is_first()) {
    run::say_changed_settings(changed);
    run::say_what_only_a_beginning_reads(saved, run.configuration(), point.path.string(), settings_.resume);
  }
  for (const ChangedSetting& one : changed) {
    if (one.path == "algorithm.learning_rate") runner_->set_learning_rate(settings_.algorithm.learning_rate);
  }
  if (run.is_first() && saved.is_object()) warn_of_stretched_schedule(saved);
}

void PpoLearner::warn_of_stretched_schedule(const config::Json& saved) const {
  const PpoSettings& ppo = settings_.algorithm;
  const std::int64_t before = saved.value("max_iterations", last_iteration());
  if (ppo.schedule != "linear" || ppo.decay_iterations > 0 || before == last_iteration()) return;
  log::warning(
      "max_iterations={} stretches algorithm.schedule=linear: the learning rate goes on at {:.3g}, and with {} it "
      "would "
      "at {:.3g}, which algorithm.decay_iterations={} keeps",
      last_iteration(), linear_rate(ppo, runner_->iteration(), last_iteration()), before,
      linear_rate(ppo, runner_->iteration(), before), before);
}

std::vector<run::BannerRow> PpoLearner::banner(run::Run& run) const {
  const tasks::TaskSpec& spec = task_->spec();
  const int ranks = run.group() ? run.group()->world_size() : 1;
  std::vector<run::BannerRow> rows{
      {"job", format("ppo: {}", spec.summary)},
      {"task", format("{}, {} observations, {} actions, {} steps of {:g} s at most, rewards {}", spec.name,
                      runner_->networks()->observation_width(), runner_->networks()->action_width(), spec.horizon,
                      spec.control_period, join(spec.reward_terms, " + "))},
      {"model", run::describe_model(*runner_->networks())},
      {"rollouts", format("{} of {} environments x {} steps, {} x {} minibatches each", last_iteration(),
                          settings_.n_envs, settings_.runner.num_steps_per_env, settings_.algorithm.num_learning_epochs,
                          settings_.algorithm.num_mini_batches)},
      {"devices",
       format("{}, {}{} threads for the simulator, {} for learning", run::device_names(devices_),
              ranks > 1 ? format("{} ranks of ", ranks) : std::string(), simulator_threads_, learner_threads_)}};
  if (!divides_as_one_rank(ranks))
    rows.push_back(
        {"partition",
         format("{} ranks divide the environments into other minibatches than 1, 2, 3, 4, 6, 8, 12, 16, 24 or "
                "48 do: figures are of this number of ranks",
                ranks)});
  return rows;
}

run::Outcome PpoLearner::train(run::Run& run) {
  if (point_ && runner_->iteration() >= last_iteration() && run.is_complete())
    return {.ending = run::Ending::kNothingLeft, .step = runner_->iteration(), .remedy = "raise max_iterations"};
  if (point_) {
    log::info("resuming from {}: iteration {}", point_->path.string(), runner_->iteration());
    saved_ = runner_->iteration(), broken_.reset();
  }
  configuration_ = json_text(run.configuration());
  folder_ = run.folder().path();
  run.begin(runner_->iteration(), last_iteration(), point_ ? "" : "there is no checkpoint to continue");
  if (run.is_first()) {
    tasks::keep_task(settings_.task, folder_, settings_.task_settings);
    figures_.emplace(run, settings_, runner_->iteration());
    writer_.emplace(weights::CheckpointFolder(run.folder().checkpoints()), settings_.keep_checkpoints);
  }
  RunWatch watch(ranks(), tensors::to_torch_device(devices_.front()),
                 {.samples = shares_.environments * settings_.runner.num_steps_per_env, .total = last_iteration()},
                 run.beats());
  learn(run, watch);
  if (figures_) figures_->end();
  run::Outcome outcome{.step = runner_->iteration(), .ranks = watch.of_all_ranks()};
  if (!reached_.empty()) {
    outcome.status = format("stopped at iteration {}: {}", runner_->iteration(), reached_);
  } else if (runner_->iteration() < last_iteration()) {
    outcome.ending = run::Ending::kStopped;
    outcome.status = format("stopped at iteration {}", runner_->iteration());
  }
  watch.end();
  return outcome;
}

void PpoLearner::learn(run::Run& run, RunWatch& watch) {
  bool first = true;
  watch.begin(runner_->iteration());
  if (runner_->iteration() == 0) save(run, watch);
  while (runner_->iteration() < last_iteration() && !some_rank_stops()) {
    const Iteration iteration = iterate();
    refuse_if_all_broke(iteration);
    warn_if_hovering_pays();
    const IterationTimes times = watch.iterated(iteration.number);
    if (figures_) figures_->observe(iteration, times);
    if (runner_->iteration() % settings_.save_interval == 0) save(run, watch);
    if (std::exchange(first, false)) run::Run::first_step();
    if (has_reached_return(settings_, iteration)) {
      reached_ = format("the mean return {:.4g} has reached stop_at_return={:g} (null: never)",
                        iteration.episodes.mean_return, *settings_.stop_at_return);
      break;
    }
  }
  save(run, watch);
  if (writer_) writer_->finish();
}

/// A few that break cost little. Where every control step breaks its environment there is nothing to learn.
void PpoLearner::refuse_if_all_broke(const Iteration& figures) {
  const std::int64_t transitions = figures.steps / figures.number;
  const std::int64_t now = figures.episodes.broken, before = std::exchange(broken_, now).value_or(now);
  COHORT_THROW_UNLESS(now - before < transitions,
                      "in iteration {} each of {} control steps broke its environment: state, observations or reward "
                      "of {} are not finite after a single one. Look at its model (a smaller timestep, weaker "
                      "actuators, limits), and at what it observes and pays",
                      figures.number, transitions, settings_.task);
}

/// A reward above 0 that success ends: what is learnt is to stay just short of the goal. Said once, by the mean of all
/// steps so far: in most tasks behind the first iteration.
void PpoLearner::warn_if_hovering_pays() {
  const Environments::Payments& paid = runner_->environments().payments();
  if (!figures_ || hovering_said_ || paid.steps == 0) return;
  const bool ends =
      paid.successes > 0 ? 2 * paid.ended > paid.successes : tasks::ends_on_success_with_dense_reward(*task_);
  const double step = paid.without_success / static_cast<double>(paid.steps), going_on = step / (1 - gamma());
  const double success = paid.successes > 0 ? paid.with_success / static_cast<double>(paid.successes) : 0;
  if (!ends || step <= 0 || success >= going_on) return;
  hovering_said_ = true;
  log::warning(
      "a step of {} without success pays {:.3g} on average, and success ends the episode: going on is worth {:.3g} "
      "({:.3g} / (1 - {:g})){}. PPO then learns to stay short of the goal: task_settings=[end_on_success=false], or "
      "a "
      "bonus for success above that; `cohort tasks {} --check` looks closer",
      settings_.task, step, going_on, step, gamma(),
      paid.successes > 0 ? format(", the step that succeeds {:.3g}", success) : std::string(), settings_.task);
}

Iteration PpoLearner::iterate() {
  try {
    return runner_->iterate();
  } catch (const Diverged& e) {
    if (!writer_) throw;
    writer_->finish();
    throw Error(
        format("{}; the last good checkpoint is {}. Lower algorithm.learning_rate or reward_scale, or look "
               "at the task's observations and rewards",
               e.what(), writer_->folder().checkpoint(saved_).string()));
  }
}

void PpoLearner::save(run::Run& run, RunWatch& watch) {
  if (saved_ == runner_->iteration()) return;
  const auto saving = watch.saving();
  run.sync_metrics();
  weights::CheckpointContent content = runner_->checkpoint();  // all ranks take part
  content.state.configuration = configuration_;
  if (writer_) writer_->save(content);
  saved_ = runner_->iteration();
}

/// A signal reaches ranks at different times; all end behind the same iteration.
bool PpoLearner::some_rank_stops() {
  if (ranks().size() == 1) return run::stop_requested();
  at::Tensor wishes = at::full({1}, run::stop_requested() ? 1.0 : 0.0, at::kDouble);
  ranks().mean(wishes);
  return wishes.item<double>() > 0;
}

run::Results PpoLearner::results(double seconds) const {
  run::Results results{.step = figures_ ? figures_->last_iteration() : 0};
  results.report.loss_name = "surrogate + value - entropy";
  results.report.content.title = format("ppo: {}", settings_.task);
  if (figures_) figures_->add_to(results.report.content, seconds);
  results.weights = std::filesystem::path("checkpoints") / "last" /
                    (settings_.runner.ema.enabled ? weights::kEmaFile : weights::kModelFile);
  std::string command = format("{} evaluate --task {}", settings_.program, settings_.task);
  for (const std::string& setting : settings_.task_settings) command += " " + shell_quoted(setting);
  if (settings_.engine != "batched") command += " --engine " + settings_.engine;
  const std::string policy = " --policy " + shell_quoted(folder_.string());  // takes all words up to the next flag
  results.commands.emplace_back("evaluate", command + policy + " --episodes 100");
  // What a task's file changes for who watches it.
  const tasks::TaskFields own = task_->settings();
  if (own && own->has("play")) command += " play=true";
  if (!task_->spec().cameras.empty())
    results.commands.emplace_back("video", format("{}{} --episodes 4 --out {} --record-video", command, policy,
                                                  shell_quoted((folder_ / "video").string())));
  return results;
}

}  // namespace

void describe(config::Fields& fields, PpoRunSettings& s) {
  fields.add("task", s.task, "what is learnt; its name");
  fields.add("task_settings", s.task_settings, "settings of the task, [key=value,...]");
  fields.add("task_library", s.task_library,
             "shared library that the task comes from: noted by a run, for whoever goes on with it or evaluates it; "
             "COHORT_TASKS names another");
  fields.add("engine", s.engine, "of the simulation: batched or mujoco");
  fields.add("n_envs", s.n_envs, "environments that are simulated at a time, over all ranks");
  run::describe(
      fields, s,
      {.name = "of the run: results go to output_dir/name/<date-time>; empty: the task's name",
       .init_from = "run or checkpoint whose weights, and statistics of observations, a new run begins with; nothing "
                    "else is taken over",
       .backends = {"cpu", "cuda", "gpu"},
       .backend = "where simulator and learner are; a task from a file computes observations and rewards there too, "
                  "others on the CPU. gpu: the CPU where there is none. Small networks and few environments are faster "
                  "on the CPU",
       .devices = "of this process, e.g. [cuda:0,cuda:1]: every minibatch is divided among them, the simulator is on "
                  "the first; empty: the backend's first",
       .threads = "cores for the simulator, of each rank; 0: all; no result depends on it"});
  fields.add("learner_threads", s.learner_threads,
             "cores for learning, of each rank; 0: all; in fp32 no result depends on it");
  fields.add("save_interval", s.save_interval, "iterations between checkpoints");
  fields.add("keep_checkpoints", s.keep_checkpoints, "the newest checkpoints that are kept; 0: all");
  fields.add("log_interval", s.log_interval,
             "iterations between the log's figures: return, losses, reward terms; 0: ten times in a run");
  fields.add("stop_at_return", s.stop_at_return,
             "the run ends, with a checkpoint, once the mean return of the last hundred episodes has reached it");
  describe(fields, s.runner);
  fields.section("algorithm", [&] { describe(fields, s.algorithm); });
  fields.section("policy", [&] { describe(fields, s.policy); });
}

void check(const PpoRunSettings& s) {
  COHORT_THROW_UNLESS(s.save_interval >= 1, "save_interval = {}: at least 1 iteration", s.save_interval);
  COHORT_THROW_UNLESS(s.keep_checkpoints >= 0, "keep_checkpoints = {} must not be negative; 0 keeps all",
                      s.keep_checkpoints);
  COHORT_THROW_UNLESS(s.log_interval >= 0, "log_interval = {} must not be negative; 0: ten times in a run",
                      s.log_interval);
  COHORT_THROW_UNLESS(s.learner_threads >= 0, "learner_threads = {} must not be negative; 0 takes all cores",
                      s.learner_threads);
  check(s.policy);
  check(s.runner, s.algorithm, s.n_envs, s.policy.recurrent());
}

int run(PpoRunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides) {
  PpoLearner learner(settings);
  return run::Run(settings, fields, overrides).carry_out(learner);
}

bool has_reached_return(const PpoRunSettings& settings, const Iteration& iteration) {
  constexpr std::int64_t kEpisodes = 100;  // fewer say little
  return settings.stop_at_return && iteration.episodes.counted >= kEpisodes &&
         iteration.episodes.mean_return >= *settings.stop_at_return;
}

}  // namespace cohort::rl
