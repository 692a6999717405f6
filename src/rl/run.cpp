#include "rl/run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "dist/cuda_plugin.h"
#include "dist/group.h"
#include "dist/rank_environment.h"
#include "dist/usable_devices.h"
#include "parallel/plan.h"
#include "report/run_folder.h"
#include "rl/fused_mlp.h"
#include "rl/learner_memory.h"
#include "rl/ranks.h"
#include "rl/resumed_settings.h"
#include "rl/run_output.h"
#include "rl/run_watch.h"
#include "rl/runner.h"
#include "run/continue_command.h"
#include "run/initial_weights.h"
#include "run/launched_job.h"
#include "run/stop_request.h"
#include "sim/host_memory.h"
#include "tasks/registry.h"
#include "tasks/task_check.h"
#include "tensors/convert.h"
#include "tensors/processor.h"
#include "train/checkpoint_writer.h"
#include "run/banner.h"
#include "weights/checkpoint.h"

namespace cohort::rl {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kVeryMany = 1 << 16;  // environments

/// With this rank's share of the environments.
std::unique_ptr<tasks::Task> make_task(const PpoRunSettings& settings, const Shares& shares, DeviceId device) {
  if (settings.task.empty()) {
    std::string names;
    for (const tasks::TaskEntry& entry : tasks::all_tasks()) names += (names.empty() ? "" : ", ") + entry.name;
    throw Error(format("say what is to be learnt: task=NAME, one of {}", names));
  }
  return tasks::make_task(settings.task, {.n_envs = static_cast<int>(shares.environments),
                                          .threads = settings.threads,
                                          .engine = settings.engine,
                                          .device = device,
                                          .overrides = settings.task_settings});
}

std::vector<int> cuda_indices(const std::vector<DeviceId>& devices) {
  std::vector<int> indices;
  for (const DeviceId device : devices)
    if (device.kind == DeviceKind::kCuda) indices.push_back(device.index);
  return indices;
}

/// "cuda:0" or "cpu, cpu".
std::string names_of(const std::vector<DeviceId>& devices) {
  std::string names;
  for (const DeviceId device : devices) names += (names.empty() ? "" : ", ") + tensors::to_torch_device(device).str();
  return names;
}

std::vector<std::pair<std::string, std::string>> banner(const PpoRunSettings& settings, const tasks::Task& task,
                                                        const PpoRunner& runner, const Ranks& ranks,
                                                        const std::vector<DeviceId>& devices) {
  const tasks::TaskSpec& spec = task.spec();
  return {{"job", format("ppo: {}", spec.summary)},
          {"task", format("{}, {} observations, {} actions, {} steps of {:g} s at most, rewards {}", spec.name,
                          runner.networks()->observation_width(), runner.networks()->action_width(), spec.horizon,
                          spec.control_period, join(spec.reward_terms, " + "))},
          {"model", run::describe_model(*runner.networks())},
          {"rollouts", format("{} of {} environments x {} steps, {} x {} minibatches each",
                              settings.runner.max_iterations, settings.n_envs, settings.runner.num_steps_per_env,
                              settings.algorithm.num_learning_epochs, settings.algorithm.num_mini_batches)},
          {"devices", format("{}, {}{} threads for the simulator, {} for learning", names_of(devices),
                             ranks.size() > 1 ? format("{} ranks of ", ranks.size()) : std::string(), settings.threads,
                             settings.learner_threads)}};
}

/// For `cohort launch`, which does not start a program again that fails at its start.
void tell_first_iteration() {
  if (const auto file = dist::process_variable("COHORT_FIRST_STEP_FILE")) std::ofstream(*file) << "\n";
}

/// The loop between the folder that stands and the report. Rank 0 writes; the others have no output.
class Training {
 public:
  Training(const PpoRunSettings& settings, const tasks::Task& task, PpoRunner& runner, Ranks& ranks, RunWatch& watch,
           PpoOutput* output, const report::RunFolder* folder, std::string configuration)
      : settings_(settings),
        task_(task),
        runner_(runner),
        ranks_(ranks),
        watch_(watch),
        output_(output),
        configuration_(std::move(configuration)) {
    if (folder) writer_.emplace(weights::CheckpointFolder(folder->checkpoints()), settings.keep_checkpoints);
  }

  void run() {
    watch_.begin(runner_.iteration());
    if (runner_.iteration() == 0) save();
    while (runner_.iteration() < settings_.runner.max_iterations && !some_rank_stops()) {
      const Iteration figures = iterate();
      refuse_if_all_broke(figures);
      warn_if_hovering_pays();
      const IterationTimes times = watch_.iterated(figures.number);
      if (output_) output_->observe(figures, times);
      if (runner_.iteration() % settings_.save_interval == 0) save();
      if (std::exchange(first_, false)) tell_first_iteration();
    }
    save();
    if (writer_) writer_->finish();
  }
  void resumed() { saved_ = runner_.iteration(), broken_.reset(); }

 private:
  /// A few that break cost little. Where every control step breaks its environment there is nothing to learn.
  void refuse_if_all_broke(const Iteration& figures) {
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
  void warn_if_hovering_pays() {
    const Environments::Payments& paid = runner_.environments().payments();
    if (!output_ || hovering_said_ || paid.steps == 0) return;
    const bool ends =
        paid.successes > 0 ? 2 * paid.ended > paid.successes : tasks::ends_on_success_with_dense_reward(task_);
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
  double gamma() const { return std::min(settings_.algorithm.gamma, 1 - 1e-6); }
  Iteration iterate() {
    try {
      return runner_.iterate();
    } catch (const Diverged& e) {
      if (!writer_) throw;
      writer_->finish();
      throw Error(
          format("{}; the last good checkpoint is {}. Lower algorithm.learning_rate or reward_scale, or look "
                 "at the task's observations and rewards",
                 e.what(), writer_->folder().checkpoint(saved_).string()));
    }
  }
  void save() {
    if (saved_ == runner_.iteration()) return;
    const auto saving = watch_.saving();
    if (output_) output_->sync();
    weights::CheckpointContent content = runner_.checkpoint();  // all ranks take part
    content.state.configuration = configuration_;
    if (writer_) writer_->save(content);
    saved_ = runner_.iteration();
  }
  /// A signal reaches ranks at different times; all end behind the same iteration.
  bool some_rank_stops() {
    if (ranks_.size() == 1) return run::stop_requested();
    at::Tensor wishes = at::full({1}, run::stop_requested() ? 1.0 : 0.0, at::kDouble);
    ranks_.mean(wishes);
    return wishes.item<double>() > 0;
  }

  const PpoRunSettings& settings_;
  const tasks::Task& task_;
  PpoRunner& runner_;
  Ranks& ranks_;
  RunWatch& watch_;
  PpoOutput* output_;
  std::string configuration_;
  std::optional<train::CheckpointWriter> writer_;
  std::int64_t saved_ = -1;
  std::optional<std::int64_t> broken_ = 0;  ///< environments of all ranks so far; unknown behind a resume
  bool first_ = true, hovering_said_ = false;
};

}  // namespace

void describe(config::Fields& fields, PpoRunSettings& s) {
  fields.add("task", s.task, "what is learnt; its name");
  fields.add("task_settings", s.task_settings, "settings of the task, [key=value,...]");
  fields.add("task_library", s.task_library,
             "shared library that the task comes from: noted by a run, for whoever goes on with it or evaluates it; "
             "COHORT_TASKS names another");
  fields.add("init_from", s.init_from,
             "run or checkpoint whose weights, and statistics of observations, a new run begins with; nothing else is "
             "taken over");
  fields.add("engine", s.engine, "of the simulation: batched or mujoco");
  fields.add_choice("backend", s.backend, {"cpu", "cuda", "gpu"},
                    "where simulator and learner are; observations and rewards are computed on the CPU. gpu: the CPU "
                    "where there is none. Small networks and few environments are faster on the CPU");
  fields.add(
      "devices", s.devices,
      "of this process, e.g. [cuda:0,cuda:1]: every minibatch is divided among them, the simulator is on the first; "
      "empty: the backend's first");
  fields.add("n_envs", s.n_envs, "environments that are simulated at a time, over all ranks");
  fields.add("name", s.name, "of the run: results go to output_dir/name/<date-time>; empty: the task's name");
  fields.add("output_dir", s.output_dir, "folder of all runs");
  fields.add(
      "resume", s.resume,
      "run to continue, on the command line only: its folder, or one of its checkpoints; auto: the newest of this "
      "name; empty: a new run");
  fields.add("threads", s.threads, "cores for the simulator, of each rank; 0: all; no result depends on it");
  fields.add("learner_threads", s.learner_threads,
             "cores for learning, of each rank; 0: all; in fp32 no result depends on it");
  fields.add("save_interval", s.save_interval, "iterations between checkpoints");
  fields.add("keep_checkpoints", s.keep_checkpoints, "the newest checkpoints that are kept; 0: all");
  fields.add("tensorboard", s.tensorboard,
             "write TensorBoard events: output_dir/name/tensorboard/<date-time>; the metrics of metrics.jsonl");
  fields.add("tensorboard_charts", s.tensorboard_charts, "show the report's charts in TensorBoard, too, as pictures");
  fields.add("charts", s.charts, "draw charts and report.html at the end");
  fields.add("rank_status", s.rank_status, "every rank keeps ranks/rank_N.json in the run's folder for `cohort top`");
  describe(fields, s.runner);
  fields.section("algorithm", [&] { describe(fields, s.algorithm); });
  fields.section("policy", [&] { describe(fields, s.policy); });
}

namespace {

void check_run(const PpoRunSettings& s) {
  COHORT_THROW_UNLESS(s.save_interval >= 1, "save_interval = {}: at least 1 iteration", s.save_interval);
  COHORT_THROW_UNLESS(s.keep_checkpoints >= 0, "keep_checkpoints = {} must not be negative; 0 keeps all",
                      s.keep_checkpoints);
  COHORT_THROW_UNLESS(s.threads >= 0, "threads = {} must not be negative; 0 takes all cores", s.threads);
  COHORT_THROW_UNLESS(s.learner_threads >= 0, "learner_threads = {} must not be negative; 0 takes all cores",
                      s.learner_threads);
  check(s.policy);
  check(s.runner, s.algorithm, s.n_envs, s.policy.recurrent());
}

/// The devices of this process: the first for the simulator, all for learning.
std::vector<DeviceId> own_devices(const PpoRunSettings& settings, const dist::RankEnvironment& environment) {
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

/// What rank 0 says of the run that is continued, or "".
std::string run_to_resume(const PpoRunSettings& settings, const std::vector<std::string>& overrides,
                          dist::Group* group) {
  if (!settings.resume.empty() && settings.resume != "auto") return settings.resume;
  std::string found;
  if (!group || group->rank() == 0)
    found = run::find_run(settings.resume, fs::path(settings.output_dir) / settings.name, run::read_launched_job(),
                          overrides);
  return group ? group->broadcast_bytes(found) : found;
}

/// Whether the run that is continued has nothing left to do, its report included; what rank 0 says.
bool was_finished(const PpoRunSettings& settings, std::int64_t iteration, dist::Group* group) {
  if (iteration < settings.runner.max_iterations) return false;
  const bool complete = !settings.charts || fs::exists(fs::path(settings.resume) / "report.html");
  return group ? group->broadcast_bytes(complete ? "1" : "0") == "1" : complete;
}

/// Refuses more environments than this machine has memory to learn from.
void need_memory_for(const PpoRunSettings& settings, const tasks::TaskSpec& task,
                     const dist::RankEnvironment& environment, int ranks) {
  // Ranks that start together take it from each other, but where each was given a part of it.
  const int sharing = dist::process_variable(sim::kHostMemoryVariable) ? 1 : std::max(1, environment.local_world_size);
  need_memory({.policy = settings.policy,
               .ppo = settings.algorithm,
               .runner = settings.runner,
               .task = task,
               .n_envs = settings.n_envs,
               .ranks = ranks},
              sim::available_host_memory() / sharing);
}

/// Goes on from a checkpoint, whose own settings hold where they must.
void go_on_from(const weights::ResumePoint& point, const PpoRunSettings& settings, const config::Json& resolved,
                bool says, PpoRunner& runner) {
  const config::Json saved = config::Json::parse(point.content.state.configuration, nullptr, false);
  const std::vector<ChangedSetting> changed =
      settings_changed_since(saved, resolved, point.path.string(), settings.resume);
  runner.resume(point.content, point.path.string());
  for (const ChangedSetting& one : changed) {
    if (says) log::warning("{}={} from here on, and not {} as before", one.path, one.now, one.before);
    if (one.path == "algorithm.learning_rate") runner.set_learning_rate(settings.algorithm.learning_rate);
  }
  const PpoSettings& ppo = settings.algorithm;
  if (!says || ppo.schedule != "linear" || ppo.decay_iterations > 0 || !saved.is_object()) return;
  const std::int64_t before = saved.value("max_iterations", settings.runner.max_iterations);
  if (before != settings.runner.max_iterations)
    log::warning(
        "max_iterations={} stretches algorithm.schedule=linear: the learning rate goes on at {:.3g}, and with {} it "
        "would "
        "at {:.3g}, which algorithm.decay_iterations={} keeps",
        settings.runner.max_iterations, linear_rate(ppo, runner.iteration(), settings.runner.max_iterations), before,
        linear_rate(ppo, runner.iteration(), before), before);
}

}  // namespace

int run(PpoRunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides) {
  const dist::RankEnvironment environment = dist::read_rank_environment();
  log::set_console(environment.rank == 0);
  if (!settings.task.empty()) settings.task_library = tasks::library_of(settings.task);
  const config::Json resolved_as_given = fields.to_json();
  const int cores = std::max(1, available_cores() / std::max(1, environment.local_world_size));
  if (settings.threads == 0) settings.threads = cores;
  if (settings.learner_threads == 0) settings.learner_threads = cores;
  if (settings.name.empty()) settings.name = settings.task;
  check_run(settings);
  // FusedMlp divides the work among threads of its own; LibTorch's cost more than they bring in networks of this size.
  const bool fused = FusedMlp::activation(settings.policy.activation).has_value() && settings.devices.size() < 2 &&
                     learner_precision(settings.runner) == train::Precision::kFp32;
  at::set_num_threads(fused ? 1 : settings.learner_threads);
  tensors::settle_processor();

  // Before the group: the CUDA plug-in has to be there before anything asks LibTorch about CUDA.
  const std::vector<DeviceId> devices = own_devices(settings, environment);
  const DeviceId device = devices.front();
  if (device.kind == DeviceKind::kCuda) dist::load_cuda_plugin().set_device(device.index);
  std::shared_ptr<dist::Group> group;
  if (environment.world_size > 1) group = dist::Group::create(environment);
  Ranks alone;
  std::optional<GroupRanks> several;
  if (group) several.emplace(*group);
  Ranks& ranks = several ? static_cast<Ranks&>(*several) : alone;
  const bool first = ranks.rank() == 0;

  // Bad input ends the run here, before a folder is touched.
  const Shares shares =
      share_environments(settings.n_envs, settings.policy.recurrent() ? 1 : settings.runner.num_steps_per_env,
                         settings.algorithm.num_mini_batches, ranks);
  const std::int64_t samples = (settings.policy.recurrent() ? 1 : settings.runner.num_steps_per_env) *
                               shares.environments / settings.algorithm.num_mini_batches;
  COHORT_THROW_UNLESS(samples >= std::ssize(devices),
                      "devices names {}, which share every minibatch, and a minibatch has {} {}: raise n_envs, lower "
                      "algorithm.num_mini_batches, or name fewer devices",
                      devices.size(), samples, settings.policy.recurrent() ? "environments" : "transitions");
  // Very many are refused before the simulator has spent minutes on them.
  if (device.kind == DeviceKind::kCpu && shares.environments > kVeryMany)
    need_memory_for(settings, make_task(settings, {.environments = 1}, device)->spec(), environment, ranks.size());
  const std::unique_ptr<tasks::Task> task = make_task(settings, shares, device);
  if (device.kind == DeviceKind::kCpu) need_memory_for(settings, task->spec(), environment, ranks.size());
  PpoRunner runner(*task, settings.runner, settings.algorithm, settings.policy,
                   {.ranks = &ranks,
                    .threads = settings.learner_threads,
                    .device = tensors::to_torch_device(device),
                    .devices = devices});
  settings.resume = run_to_resume(settings, overrides, group.get());
  const bool resumes = !settings.resume.empty();
  std::optional<weights::ResumePoint> point;
  if (resumes)
    point = weights::find_resume_point(settings.checkpoint.empty() ? "auto" : settings.checkpoint,
                                       fs::path(settings.resume) / "checkpoints");
  if (point)
    go_on_from(*point, settings, resolved_as_given, first, runner);
  else if (!settings.init_from.empty())
    runner.begin_with(run::read_initial_weights(settings.init_from, "ppo"));
  if (point && was_finished(settings, runner.iteration(), group.get())) {
    log::info(
        "{}: this training was finished at iteration {}; its folder was left as it was. To train on, raise "
        "max_iterations",
        settings.resume, runner.iteration());
    if (group) group->close();
    return 0;
  }

  config::Json resolved = resolved_as_given;
  resolved["resume"] = "";  // who starts from this configuration starts another run
  std::optional<report::ClaimedFolder> claimed;
  std::optional<PpoOutput> output;
  if (first) {
    if (resumes)
      claimed.emplace(settings.resume);
    else
      claimed.emplace(settings.output_dir, settings.name);
    const report::RunFolder& folder = claimed->folder();
    log::add_file(folder.log_file().string());
    run::record_job(folder.path(), run::read_launched_job(), overrides);
    folder.save_configuration(resolved.dump(2) + "\n", overrides);
    const auto rows = banner(settings, *task, runner, ranks, devices);
    for (const auto& [label, text] : rows) log::info("{:<9} {}", label, text);
    log::info("{:<9} {}", "results", folder.path().string());
    if (point) log::info("resuming from {}: iteration {}", point->path.string(), runner.iteration());
    if (!point && !settings.init_from.empty()) log::info("{:<9} of {}", "weights", settings.init_from);
    if (resumes && !point)
      log::warning("{}: there is no checkpoint to continue; training begins anew", settings.resume);
    output.emplace(settings, folder, rows, run::watched_gpus(cuda_indices(devices), environment.local_world_size));
    output->begin(runner.iteration(), resumes);
    claimed->keep();
  }
  std::string run_path = first ? claimed->folder().path().string() : std::string();
  if (group) run_path = group->broadcast_bytes(run_path);
  RunWatch watch(
      ranks, tensors::to_torch_device(device),
      {.samples = shares.environments * settings.runner.num_steps_per_env, .total = settings.runner.max_iterations});
  if (settings.rank_status)
    watch.keep_status(run_path, {.rank = environment.rank,
                                 .world_size = ranks.size(),
                                 .job = "ppo",
                                 .device = names_of(devices),
                                 .batch_size = shares.environments});
  run::install_stop_signals(first ? "stops after this iteration, with a checkpoint; Ctrl-C again: at once, without one"
                                  : nullptr);
  Training training(settings, *task, runner, ranks, watch, output ? &*output : nullptr,
                    claimed ? &claimed->folder() : nullptr, resolved.dump());
  if (point) training.resumed();
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  try {
    training.run();
  } catch (const std::exception& e) {
    if (output) {
      output->finish(format("failed: {}", e.what()), true, seconds());
      log::info("what was saved goes on, once the cause is mended, with: {}",
                run::continue_command(settings.program, claimed->folder().path(), environment).text);
    }
    throw;
  }
  const bool stopped = runner.iteration() < settings.runner.max_iterations;
  const std::vector<run::RankTotals> of_ranks = watch.of_all_ranks();
  if (first) {
    const report::RunFolder& folder = claimed->folder();
    const run::ContinueCommand command = run::continue_command(settings.program, folder.path(), environment);
    const std::string remark = command.remark.empty() ? "" : ", " + command.remark + ",";
    const std::string status =
        stopped ? format("stopped at iteration {}; continue{} with: {}", runner.iteration(), remark, command.text)
                : "finished";
    if (stopped) {
      log::info("training stopped at iteration {} after {}; go on{} with", runner.iteration(),
                format_duration(seconds()), remark);
      log::info("  {}", command.text);
    } else {
      log::info("training finished after {}", format_duration(seconds()));
    }
    output->finish(status, false, seconds(), of_ranks);
    const char* weights = settings.runner.ema.enabled ? weights::kEmaFile : weights::kModelFile;
    log::info("weights  {}", (folder.checkpoints() / "last" / weights).string());
    if (settings.charts) log::info("report   {}", folder.report_file().string());
    say_what_next(settings, *task, folder.path());
  }
  watch.end(stopped ? "stopped" : "finished");
  if (group) group->close();
  return stopped && run::stop_signal() != 0 ? 128 + run::stop_signal() : 0;
}

}  // namespace cohort::rl
