#include "rl/run.h"

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
#include "dist/rank_environment.h"
#include "policy/checkpoint.h"
#include "report/run_folder.h"
#include "rl/run_output.h"
#include "rl/runner.h"
#include "tasks/registry.h"
#include "tensors/vector_math.h"
#include "train/checkpoint_writer.h"
#include "train/continue_command.h"
#include "train/job_runs.h"
#include "train/run_banner.h"
#include "train/stop_request.h"

namespace cohort::rl {
namespace fs = std::filesystem;
namespace {

std::unique_ptr<tasks::Task> make_task(const PpoRunSettings& settings) {
  if (settings.task.empty()) {
    std::string names;
    for (const tasks::TaskEntry& entry : tasks::all_tasks()) names += (names.empty() ? "" : ", ") + entry.name;
    throw Error(format("say what is to be learnt: task=NAME, one of {}", names));
  }
  return tasks::make_task(settings.task, {.n_envs = settings.n_envs,
                                          .threads = settings.threads,
                                          .engine = settings.engine,
                                          .overrides = settings.task_settings});
}

std::vector<std::pair<std::string, std::string>> banner(const PpoRunSettings& settings, const tasks::Task& task,
                                                        const PpoRunner& runner) {
  const tasks::TaskSpec& spec = task.spec();
  return {{"job", format("ppo: {}", spec.summary)},
          {"task", format("{}, {} observations, {} actions, {} steps of {:g} s at most, rewards {}", spec.name,
                          runner.networks()->observation_width(), runner.networks()->action_width(), spec.horizon,
                          spec.control_period, join(spec.reward_terms, " + "))},
          {"model", train::describe_model(*runner.networks())},
          {"rollouts", format("{} of {} environments x {} steps, {} x {} minibatches each",
                              settings.runner.max_iterations, settings.n_envs, settings.runner.num_steps_per_env,
                              settings.algorithm.num_learning_epochs, settings.algorithm.num_mini_batches)},
          {"devices", format("the CPU, {} threads for the simulator, {} for learning", settings.threads,
                             settings.learner_threads)}};
}

/// For `cohort launch`, which does not start a program again that fails at its start.
void tell_first_iteration() {
  if (const auto file = dist::process_variable("COHORT_FIRST_STEP_FILE")) std::ofstream(*file) << "\n";
}

/// The loop between the folder that stands and the report.
class Training {
 public:
  Training(const PpoRunSettings& settings, PpoRunner& runner, PpoOutput& output, const report::RunFolder& folder,
           std::string configuration)
      : settings_(settings),
        runner_(runner),
        output_(output),
        configuration_(std::move(configuration)),
        writer_(policy::CheckpointFolder(folder.checkpoints()), settings.keep_checkpoints) {}

  void run() {
    if (runner_.iteration() == 0) save();
    while (runner_.iteration() < settings_.runner.max_iterations && !train::stop_requested()) {
      output_.observe(iterate());
      if (runner_.iteration() % settings_.save_interval == 0) save();
      if (std::exchange(first_, false)) tell_first_iteration();
    }
    save();
    writer_.finish();
  }
  void resumed() { saved_ = runner_.iteration(); }

 private:
  Iteration iterate() {
    try {
      return runner_.iterate();
    } catch (const Error& e) {
      writer_.finish();
      throw Error(
          format("{}; the last good checkpoint is {}. Lower algorithm.learning_rate or reward_scale, or look "
                 "at the task's observations and rewards",
                 e.what(), writer_.folder().checkpoint(saved_).string()));
    }
  }
  void save() {
    if (saved_ == runner_.iteration()) return;
    output_.sync();
    policy::CheckpointContent content = runner_.checkpoint();
    content.state.configuration = configuration_;
    writer_.save(content);
    saved_ = runner_.iteration();
  }

  const PpoRunSettings& settings_;
  PpoRunner& runner_;
  PpoOutput& output_;
  std::string configuration_;
  train::CheckpointWriter writer_;
  std::int64_t saved_ = -1;
  bool first_ = true;
};

}  // namespace

void describe(config::Fields& fields, PpoRunSettings& s) {
  fields.add("task", s.task, "what is learnt; its name");
  fields.add("task_settings", s.task_settings, "settings of the task, [key=value,...]");
  fields.add("engine", s.engine, "of the simulation: batched or mujoco");
  fields.add("n_envs", s.n_envs, "environments that are simulated at a time");
  fields.add("name", s.name, "of the run: results go to output_dir/name/<date-time>; empty: the task's name");
  fields.add("output_dir", s.output_dir, "folder of all runs");
  fields.add("resume", s.resume,
             "folder of a run to continue, on the command line only; auto: the newest of this name; empty: a new run");
  fields.add("threads", s.threads, "cores for the simulator; 0: all; no result depends on it");
  fields.add("learner_threads", s.learner_threads, "cores for LibTorch; more than 1 pays for wide networks only");
  fields.add("save_interval", s.save_interval, "iterations between checkpoints");
  fields.add("keep_checkpoints", s.keep_checkpoints, "the newest checkpoints that are kept; 0: all");
  fields.add("tensorboard", s.tensorboard, "write TensorBoard events beside metrics.jsonl");
  fields.add("charts", s.charts, "draw charts and report.html at the end");
  describe(fields, s.runner);
  fields.section("algorithm", [&] { describe(fields, s.algorithm); });
  fields.section("policy", [&] { describe(fields, s.policy); });
}

int run(PpoRunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides) {
  const dist::RankEnvironment environment = dist::read_rank_environment();
  COHORT_THROW_UNLESS(environment.world_size == 1,
                      "`cohort train ppo` runs in one process, with as many threads as there are cores; this is one of "
                      "{} ranks: start it without a launcher, or with one process",
                      environment.world_size);
  COHORT_THROW_UNLESS(settings.save_interval >= 1, "save_interval = {}: at least 1 iteration", settings.save_interval);
  COHORT_THROW_UNLESS(settings.keep_checkpoints >= 0, "keep_checkpoints = {} must not be negative; 0 keeps all",
                      settings.keep_checkpoints);
  COHORT_THROW_UNLESS(settings.threads >= 0, "threads = {} must not be negative; 0 takes all cores", settings.threads);
  const config::Json resolved_as_given = fields.to_json();
  COHORT_THROW_UNLESS(settings.learner_threads >= 1, "learner_threads = {}: at least 1", settings.learner_threads);
  if (settings.threads == 0) settings.threads = available_cores();
  if (settings.name.empty()) settings.name = settings.task;
  check(settings.policy);
  check(settings.runner, settings.algorithm, settings.n_envs);
  at::set_num_threads(settings.learner_threads);
  tensors::resolve_vector_math();

  // Bad input ends the run here, before a folder is touched.
  const std::unique_ptr<tasks::Task> task = make_task(settings);
  PpoRunner runner(*task, settings.runner, settings.algorithm, settings.policy);
  if (settings.resume.empty() || settings.resume == "auto")
    settings.resume = train::find_run(settings.resume, fs::path(settings.output_dir) / settings.name,
                                      train::read_launched_job(), overrides);
  const bool resumes = !settings.resume.empty();
  std::optional<policy::ResumePoint> point;
  if (resumes) point = policy::find_resume_point("auto", fs::path(settings.resume) / "checkpoints");
  if (point) runner.resume(point->content, point->path.string());

  std::optional<report::ClaimedFolder> claimed;
  if (resumes)
    claimed.emplace(settings.resume);
  else
    claimed.emplace(settings.output_dir, settings.name);
  const report::RunFolder& folder = claimed->folder();
  log::add_file(folder.log_file().string());
  train::record_job(folder.path(), train::read_launched_job(), overrides);
  config::Json resolved = resolved_as_given;
  resolved["resume"] = "";  // who starts from this configuration starts another run
  folder.save_configuration(resolved.dump(2) + "\n", overrides);
  const auto rows = banner(settings, *task, runner);
  for (const auto& [label, text] : rows) log::info("{:<9} {}", label, text);
  log::info("{:<9} {}", "results", folder.path().string());
  if (point) log::info("resuming from {}: iteration {}", point->path.string(), runner.iteration());
  if (resumes && !point) log::warning("{}: there is no checkpoint to continue; training begins anew", settings.resume);

  PpoOutput output(settings, folder, rows);
  output.begin(runner.iteration(), resumes);
  claimed->keep();
  train::install_stop_signals();
  Training training(settings, runner, output, folder, resolved.dump());
  if (point) training.resumed();
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  try {
    training.run();
  } catch (const std::exception& e) {
    output.finish(format("failed: {}", e.what()), true, seconds());
    throw;
  }
  const bool stopped = runner.iteration() < settings.runner.max_iterations;
  const train::ContinueCommand command = train::continue_command(settings.program, folder.path(), environment);
  const std::string status =
      stopped ? format("stopped at iteration {}; continue with: {}", runner.iteration(), command.text) : "finished";
  log::info("training {} after {}", status, format_duration(seconds()));
  output.finish(status, false, seconds());
  log::info("weights  {}", (folder.checkpoints() / "last" / policy::kModelFile).string());
  if (settings.charts) log::info("report   {}", folder.report_file().string());
  return stopped && train::stop_signal() != 0 ? 128 + train::stop_signal() : 0;
}

}  // namespace cohort::rl
