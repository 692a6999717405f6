// `cohort tasks`: which tasks there are, and what there is to know about one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/check_policy.h"
#include "cli/check_rows.h"
#include "cli/child_command.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/take_task.h"
#include "cli/tasks_new.h"
#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/format.h"
#include "core/log.h"
#include "render/video.h"
#include "tasks/actor.h"
#include "tasks/file/quantities.h"
#include "tasks/file/task_file.h"
#include "tasks/file/term_table.h"
#include "tasks/libero/catalogue.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"
#include "tasks/task_check.h"

namespace cohort::cli {
namespace {

using tasks::FieldSpec;
using tasks::TaskSpec;

/// What a task's file can name.
void list_terms() {
  std::string text;
  const auto section = [&](const char* title, char kind) {
    text += format("{}\n", title);
    for (const tasks::TermEntry& entry : tasks::term_entries()) {
      if (std::string_view(entry.kinds).find(kind) == std::string_view::npos) continue;
      text += format("  {}  {}{}\n      {}\n", entry.name, entry.means, *entry.unit ? format(" [{}]", entry.unit) : "",
                     entry.formula);
      for (const tasks::TermParameterEntry& parameter : entry.parameters)
        text += format("      {}{}: {}\n", parameter.name,
                       *parameter.standard ? format(" = {}", parameter.standard) : "", parameter.means);
    }
  };
  section("observations", 'o');
  section("rewards", 'r');
  section("terminations, and what success is", 't');
  text += "quantities of formulas\n";
  for (const tasks::QuantityEntry& entry : tasks::quantity_entries())
    text += format("  {:<28} {:<6} {:<14} {}\n", entry.name, entry.shape, entry.unit, entry.means);
  text += "functions of formulas\n";
  for (const tasks::terms::FunctionEntry& entry : tasks::terms::formula_functions())
    text += format("  {:<28} {}\n", entry.call, entry.means);
  text.pop_back();
  std::puts(text.c_str());
}

void list_tasks() {
  std::size_t width = 4;
  constexpr std::size_t kWidest = 24;  // LIBERO's names have up to 90 letters
  for (const tasks::TaskEntry& entry : tasks::all_tasks())
    if (entry.name.size() <= kWidest) width = std::max(width, entry.name.size());
  for (const tasks::TaskEntry& entry : tasks::all_tasks()) {
    std::puts(format("{:<{}}  {}{}", entry.name, width, entry.summary,
                     entry.origin.empty() ? "" : format(" ({})", entry.origin))
                  .c_str());
  }
  std::puts("\n`cohort tasks NAME` shows one: observations, actions, cameras, horizon, expert, settings.");
}

std::string shape_of(const FieldSpec& field) {
  std::string text;
  for (const std::int64_t size : field.shape) text += format("{}{}", text.empty() ? "" : " x ", size);
  return text.empty() ? "1" : text;
}

std::string or_none(std::span<const std::string> texts) {
  return texts.empty() ? "none" : join(texts, ", ");
}

/// What `cohort train ppo` says about what the task asks of it; "": it takes all of that, or this program does not train.
std::string trouble_of_training(const std::string& name) {
  try {
    (void)sibling("cohort-train");
  } catch (const Error& e) {
    log::debug("{}", e.what());
    return "";
  }
  const ChildOutput said = check_words({"train", "ppo", "task=" + name});
  if (said.code == 0) return "";
  std::string text = said.err;
  while (text.ends_with('\n')) text.pop_back();
  constexpr std::string_view kProgram = "cohort train: ";
  if (text.starts_with(kProgram)) text.erase(0, kProgram.size());
  return text.empty() ? format("`cohort train ppo task={}` ends with code {}", name, said.code) : text;
}

/// Whether the task asks for settings of PPO that nobody has looked at: those of a file or of another library.
bool asks_of_ppo(const std::string& name) {
  const tasks::TaskEntry* const entry = tasks::find_task(name);
  return entry && !entry->ppo.empty() && (tasks::is_task_file(name) || !entry->origin.empty());
}

void show_task(const std::string& name, const tasks::TaskSettings& settings, const std::string& success) {
  const std::unique_ptr<tasks::Task> task = tasks::make_task(name, settings);
  if (asks_of_ppo(name))
    if (const std::string trouble = trouble_of_training(name); !trouble.empty()) throw Error(trouble);
  const TaskSpec& spec = task->spec();
  std::string text = format("{}: {}\n", spec.name, spec.summary);
  text += format("instruction   {}\n", spec.instruction);
  text += format("control       {:g} Hz, at most {} steps ({:g} s)\n", 1 / spec.control_period, spec.horizon,
                 spec.control_period * static_cast<double>(spec.horizon));
  text += "observations\n";
  std::size_t width = 0;
  for (const FieldSpec& field : spec.observations) width = std::max(width, field.name.size());
  for (const FieldSpec& field : spec.observations)
    text += format("  {:<{}}  {:>3}  {:<5}  {}\n", field.name, width, shape_of(field), field.unit,
                   field.summary + (field.privileged ? "; privileged: no robot measures it" : ""));
  text += format("actions       {} ({})\n", spec.action.width(), spec.action.unit);
  for (std::size_t i = 0; i < spec.action.names.size(); ++i)
    text += format("  {:<{}}  {:g} to {:g}\n", spec.action.names[i], width, spec.action.low[i], spec.action.high[i]);
  text += format("cameras       {}\n", or_none(spec.cameras));
  text +=
      format("reward        {}\n", spec.reward_terms.empty() ? "none" : "the sum of " + join(spec.reward_terms, ", "));
  if (!spec.metrics.empty()) {
    std::vector<std::string> metrics;
    for (const tasks::MetricSpec& metric : spec.metrics)
      metrics.push_back(metric.name + (metric.at_end ? " (at the end)" : ""));
    text += format("metrics       {}\n", join(metrics, ", "));
  }
  text += format("expert        {}\n", spec.has_expert ? spec.expert : "none");
  if (!success.empty()) text += format("              {}\n", success);
  text += format("simulation    {}\n", task->description());
  const tasks::TaskFields own = task->settings();
  text += own ? "settings      key=value\n" + own->help() : "settings      none of its own";
  while (text.ends_with('\n')) text.pop_back();
  std::puts(text.c_str());
}

/// How many of the seeds 0, 1, ... the expert solves, all at once.
std::string expert_success(const std::string& name, tasks::TaskSettings settings, int episodes) {
  settings.n_envs = episodes;
  settings.threads = available_cores();
  const std::unique_ptr<tasks::Task> task = tasks::make_task(name, settings);
  const std::unique_ptr<tasks::Actor> expert = task->make_expert(0);
  COHORT_THROW_UNLESS(expert, "{} has no expert, whose episodes --episodes counts", name);
  std::int64_t solved = 0, steps = 0;
  for (const tasks::EpisodeOutcome& outcome :
       tasks::run_episodes(*task, *expert, tasks::consecutive_seeds(0, episodes))) {
    solved += outcome.success;
    steps += outcome.success_step;
  }
  return format("solves {} of {} seeds, in {:.1f} steps on average", solved, episodes,
                static_cast<double>(steps) / static_cast<double>(std::max<std::int64_t>(1, solved)));
}

tasks::CheckRow check_ppo(const std::string& name) {
  tasks::CheckRow row{.name = "ppo"};
  const auto count = tasks::find_task(name)->ppo.size();
  row.found = trouble_of_training(name);
  if (row.found.empty()) {
    row.found = format("{} setting{} of `cohort train ppo`", count, count == 1 ? "" : "s");
  } else {
    row.outcome = tasks::CheckRow::Outcome::kFail;
    row.remedy = "`cohort train ppo --help` lists what there is, with its defaults";
  }
  return row;
}

/// A line for each check, with what to do below those that failed. False where one did.
bool print_check(const std::string& name, tasks::TaskSettings settings) {
  settings.threads = available_cores();
  std::vector<tasks::CheckRow> rows = tasks::check_task([&](int n_envs) {
    settings.n_envs = n_envs;
    return tasks::make_task(name, settings);
  });
  if (rows.front().outcome != tasks::CheckRow::Outcome::kFail && asks_of_ppo(name)) rows.push_back(check_ppo(name));
  return print_check_rows(rows, format("{} passes", name), name);
}

/// What `--picture` asks for.
struct PictureOptions {
  std::string file, camera;
  std::uint64_t seed = 0;
  int steps = 0;
};

/// An episode's picture after some steps of the expert.
void save_picture(const std::string& name, tasks::TaskSettings settings, const PictureOptions& options) {
  if (!options.file.ends_with(".png"))
    throw UsageError(format("--picture {}: a picture's name ends in .png", options.file));
  const std::unique_ptr<tasks::Task> task = tasks::make_task(name, settings);
  const TaskSpec& spec = task->spec();
  COHORT_THROW_UNLESS(!spec.cameras.empty(), "{} has no cameras", name);
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {options.seed};
  task->reset(envs, seeds);
  if (options.steps > 0) {
    const std::unique_ptr<tasks::Actor> expert = task->make_expert(0);
    COHORT_THROW_UNLESS(expert, "{} has no expert, whose steps --steps counts", name);
    std::vector<float> action(static_cast<std::size_t>(spec.action.width()));
    const ArrayView view = make_view(action.data(), {1, spec.action.width()});
    expert->begin(envs, seeds, spec.instruction);
    for (int step = 0; step < options.steps; ++step) {
      expert->act(*task, envs, view);
      task->step(view);
    }
  }
  const ArrayView picture = task->picture(options.camera.empty() ? spec.cameras.front() : options.camera, envs);
  render::write_png(options.file, picture.span<std::uint8_t>(), static_cast<int>(picture.shape[2]),
                    static_cast<int>(picture.shape[1]));
}

int run_tasks(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "new") return run_tasks_new({arguments.begin() + 1, arguments.end()});
  std::string name;
  tasks::TaskSettings settings;
  CLI::App app("Lists the tasks, or shows one. `cohort tasks new FILE --robot ROBOT` writes one.", "cohort tasks");
  app.add_option("NAME", name, "task to show, by name or file (my_task.yaml); without it all are listed");
  app.add_option("SETTINGS", settings.overrides, "key=value of the task's own settings");
  std::string option;
  app.add_option("--task", option, "as NAME");
  app.add_option("--engine", settings.engine, "batched or mujoco; else the task's own")
      ->check(CLI::IsMember({"batched", "mujoco"}));
  std::string libero;
  app.add_option("--libero", libero, "folder of LIBERO's scenes (`cohort export-libero`); else COHORT_LIBERO's");
  int episodes = 0;
  app.add_option("--episodes", episodes,
                 "run the expert in so many seeds, and tell its success; of --check-policy: so many, not 20")
      ->check(CLI::Range(1, 100000));
  PolicyCheck policy;
  CLI::Option* const checks_policy = app.add_option("--check-policy,--check_policy", policy.file,
                                                    "play an ONNX file in it, and name what is in another order or "
                                                    "scale: observations, joints, pose, gains, actions, "
                                                    "control period; the exit code is 1 where something is");
  bool terms = false;
  app.add_flag("--terms", terms, "list the terms, quantities and functions of tasks from files (NAME.yaml)");
  bool check = false;
  app.add_flag(
      "--check", check,
      "play it, and see whether it keeps what training and evaluation rely on: widths, finite numbers, bounds, "
      "replay, resumed bits, what success pays; the exit code is 1 where it does not");
  PictureOptions picture;
  settings.pictures = {.height = 480, .width = 640};
  CLI::Option* const wanted = app.add_option("--picture", picture.file, "write a picture of an episode to this .png");
  app.add_option("--camera", picture.camera, "the picture's; the task's first where not given")->needs(wanted);
  CLI::Option* const seed =
      app.add_option("--seed", picture.seed, "the episode's, or the first one's of --check-policy")
          ->capture_default_str();
  app.add_option("--steps", picture.steps, "steps of the expert before the picture")
      ->needs(wanted)
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--renderer", settings.pictures.renderer, "raycast or mujoco; else the task's own")->needs(wanted);
  if (const auto code = parse_arguments(app, arguments)) return *code;
  if (!name.empty()) settings.overrides.insert(settings.overrides.begin(), name);
  name = take_task(settings.overrides, option);
  if (*seed && !*wanted && !*checks_policy)
    throw UsageError("--seed: of which episode? It goes with --picture or --check-policy");
  if (!libero.empty()) tasks::libero::set_libero_folder(libero);
  if (terms) {
    list_terms();
  } else if (name.empty()) {
    if (!picture.file.empty()) throw UsageError("--picture: of which task? `cohort tasks NAME --picture FILE.png`");
    if (check) throw UsageError("--check: of which task? `cohort tasks NAME --check`");
    if (!policy.file.empty())
      throw UsageError("--check-policy: in which task? `cohort tasks NAME --check-policy FILE`");
    list_tasks();
  } else if (*checks_policy) {
    if (episodes > 0) policy.episodes = episodes;
    policy.seed = picture.seed;
    return print_policy_check(name, settings, policy) ? 0 : 1;
  } else if (check) {
    return print_check(name, settings) ? 0 : 1;
  } else if (!picture.file.empty()) {
    save_picture(name, settings, picture);
  } else {
    show_task(name, settings, episodes > 0 ? expert_success(name, settings, episodes) : "");
  }
  return 0;
}

const Register kTasks({"tasks", "list the tasks, or show one", run_tasks, ""});

}  // namespace
}  // namespace cohort::cli
