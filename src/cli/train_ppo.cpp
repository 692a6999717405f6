#include "cli/train_ppo.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/settings_help.h"
#include "cli/subcommand.h"
#include "core/command_line.h"
#include "core/config.h"
#include "core/error.h"
#include "rl/presets.h"
#include "rl/run.h"
#include "run/typed_settings.h"
#include "tasks/registry.h"

namespace cohort::cli {
namespace {

/// Whether the task has a setting of that name.
bool is_setting_of(const std::string& task, const std::string& key) {
  if (task.empty()) return false;
  try {
    const std::string help = tasks::make_task(task, {})->settings_help();
    return ("\n" + help).find("\n  " + key + " = ") != std::string::npos;
  } catch (const Error&) {
    return false;  // a task that cannot be made has its own message
  }
}

/// What stands here for a setting of rsl_rl, Isaac Lab or stable-baselines3 that has another form; empty: nothing does.
std::string instead_of(const std::string& key) {
  static constexpr std::pair<const char*, const char*> kForms[] = {
      {"load_run", "resume=outputs/NAME/RUN goes on with a run, `cohort evaluate --policy outputs/NAME/RUN` shows it"},
      {"checkpoint", "resume=outputs/NAME/RUN/checkpoints/checkpoint-50 goes on from that checkpoint"},
      {"run_name", "runs lie in outputs/NAME/<date-time>: write name=NAME, or name=GROUP/NAME"},
      {"total_timesteps", "write max_iterations=N: each is n_envs x num_steps_per_env control steps"},
      {"device", "write backend=cuda, or devices=[cuda:0]"},
      {"logger", "metrics.jsonl and TensorBoard events are in the run's folder; leave it out"},
      {"headless", "nothing is shown while it learns: leave it out"},
      {"video", "`cohort evaluate --policy RUN --record-video` makes videos: leave it out"},
  };
  for (const auto& [name, form] : kForms)
    if (key == name) return form;
  return "";
}

/// A task's setting in place of one of the same name, which a file or an earlier word has given.
void set_of_task(std::vector<std::string>& settings, const std::string& text) {
  const std::string key = text.substr(0, text.find('=') + 1);
  std::erase_if(settings, [&](const std::string& other) { return other.starts_with(key); });
  settings.push_back(text);
}

/// Words that would do nothing beside the others are refused by name.
void check_words(const std::vector<std::string>& words, const rl::PpoRunSettings& settings) {
  run::TypedSettings typed(words);
  typed.needs(settings.algorithm.schedule == "adaptive", {"algorithm.desired_kl"}, "add algorithm.schedule=adaptive");
  typed.needs(settings.policy.recurrent(), {"policy.rnn_type", "policy.rnn_hidden_dim", "policy.rnn_num_layers"},
              "nothing remembers: add policy.class_name=ActorCriticRecurrent");
  typed.needs(settings.runner.ema.enabled || typed.has("ema.enabled"),
              {"ema.counting", "ema.power", "ema.inv_gamma", "ema.min_decay", "ema.max_decay", "ema.update_after_step",
               "ema.copy_batch_norm"},
              "there is no moving average: add ema.enabled=true");
  typed.needs(!typed.has("resume") || settings.resume.empty(), {"init_from"},
              format("{} goes on with a run's own weights: leave resume out", typed.word("resume")));
  typed.refuse_what_does_nothing();
}

/// The settings of the command line on top of `settings`, which has the defaults; all of them under their names in
/// `fields`.
void read_settings(const PpoArguments& arguments, std::string& job, rl::PpoRunSettings& settings,
                   config::Fields& fields) {
  fields.add_choice("job", job, {job}, "what is trained: the word behind `cohort train`");
  rl::describe(fields, settings);
  fields.alias("num_envs", "n_envs");  // rsl_rl's and Isaac Lab's names
  fields.alias("experiment_name", "name");
  if (!arguments.resumed.empty()) fields.apply_file(arguments.resumed);
  for (const std::string& file : arguments.files) fields.apply_file(file);
  settings.resume.clear();  // which run is continued, the command line alone says
  // Whose the task's settings are, its name says, wherever it stands.
  for (const std::string& text : arguments.overrides)
    if (text.starts_with("task=")) settings.task = text.substr(5);
  tasks::use_library(settings.task_library, arguments.resumed.empty() ? "this configuration" : arguments.resumed);
  for (const std::string& override_text : arguments.overrides) {
    constexpr std::string_view kOfTask = "task_settings.";
    if (override_text.starts_with(kOfTask)) {
      set_of_task(settings.task_settings, override_text.substr(kOfTask.size()));
      continue;
    }
    try {
      fields.apply_override(override_text);
    } catch (const Error& error) {
      const std::string key = override_text.substr(0, override_text.find('='));
      if (const std::string form = instead_of(key); !form.empty() && !fields.has(key))
        throw Error(format("ppo has no setting '{}': {}", key, form));
      // As `cohort evaluate` takes them.
      if (fields.has(key) || !is_setting_of(settings.task, key)) throw;
      set_of_task(settings.task_settings, override_text);
    }
  }
}

}  // namespace

int run_ppo(const PpoArguments& arguments) {
  std::string job = "ppo";
  // The task's name chooses the defaults of the others, and may stand anywhere.
  rl::PpoRunSettings named;
  std::vector<std::string> keys;
  {
    config::Fields fields;
    read_settings(arguments, job, named, fields);
    for (const std::string& key : arguments.keys) {
      if (names_setting(fields, key) || key == "all" || !named.task.empty())
        keys.push_back(key);
      else
        named.task = key;
    }
  }
  rl::PpoRunSettings settings = rl::preset(named.task);
  if (arguments.help) {
    config::Fields fields;
    rl::describe(fields, settings);
    std::printf(
        "usage: cohort train ppo task=NAME [--config FILE] [key.path=value ...]\n"
        "       cohort train resume=RUN [key.path=value ...]\n\n"
        "Learns a task by proximal policy optimization, while it is simulated. With task=NAME before --help the\n"
        "defaults are those of this task.\n\n%s",
        settings_help(fields, "ppo", keys).c_str());
    return 0;
  }
  config::Fields fields;
  read_settings(arguments, job, settings, fields);
  check_words(arguments.overrides, settings);
  if (only_checks_words()) {
    if (!settings.task.empty())
      (void)tasks::make_task(settings.task, {.n_envs = 1, .overrides = settings.task_settings});
    return 0;
  }
  settings.program = typed_name(sibling("cohort"));
  settings.checkpoint = arguments.checkpoint;
  return rl::run(settings, fields, arguments.overrides);
}

}  // namespace cohort::cli
