#include "rl/training.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "core/command_line.h"
#include "core/error.h"
#include "core/log.h"
#include "rl/presets.h"
#include "rl/run.h"
#include "run/launched_job.h"
#include "run/typed_settings.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"

namespace cohort::rl {
namespace {

/// Whether the task has a setting of that name.
bool is_setting_of(const std::string& task, const std::string& key) {
  if (task.empty()) return false;
  try {
    const tasks::TaskFields fields = tasks::settings_of(task);
    return fields && fields->has(key);
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
void check_words(const std::vector<std::string>& words, const PpoRunSettings& settings) {
  run::TypedSettings typed(words);
  typed.needs(settings.algorithm.schedule == "adaptive", {"algorithm.desired_kl"}, "add algorithm.schedule=adaptive");
  typed.needs(settings.policy.recurrent(), {"policy.rnn_type", "policy.rnn_hidden_dim", "policy.rnn_num_layers"},
              "nothing remembers: add policy.class_name=ActorCriticRecurrent");
  typed.needs(settings.runner.ema.enabled || typed.has("ema.enabled"), {"ema."},
              "there is no moving average: add ema.enabled=true");
  typed.needs(!typed.has("resume") || settings.resume.empty(), {"init_from"},
              format("{} goes on with a run's own weights: leave resume out", typed.word("resume")));
  typed.refuse_what_does_nothing();
}

class PpoTraining final : public run::Training {
 public:
  std::string name() const override { return "ppo"; }
  std::string summary() const override {
    return "a policy by reinforcement learning, in the simulation loop: task=NAME";
  }
  std::string usage() const override {
    return "usage: cohort train ppo task=NAME [--config FILE] [key.path=value ...]\n"
           "       cohort train resume=RUN [key.path=value ...]\n\n"
           "Learns a task by proximal policy optimization, while it is simulated. With task=NAME before --help the\n"
           "defaults are those of this task.\n\n";
  }
  std::vector<std::string> basic_settings() const override {
    return {"task",
            "task_settings",
            "n_envs",
            "max_iterations",
            "num_steps_per_env",
            "name",
            "output_dir",
            "resume",
            "backend",
            "devices",
            "threads",
            "seed",
            "save_interval",
            "stop_at_return",
            "precision",
            "reward_scale",
            "algorithm.learning_rate",
            "algorithm.num_learning_epochs",
            "algorithm.num_mini_batches",
            "algorithm.gamma",
            "algorithm.entropy_coef",
            "algorithm.clip_param",
            "algorithm.desired_kl",
            "policy.actor_hidden_dims",
            "policy.critic_hidden_dims",
            "policy.init_noise_std"};
  }
  PpoRunSettings& settings() override { return settings_; }
  std::string key_of_bare_word() const override { return "task"; }
  std::string read_switch(const std::string& word) const override {
    return word == "headless" ? "" : word;  // Isaac Lab's: nothing is shown in any case
  }
  void describe(config::Fields& fields, const run::TrainingWords& words) override;
  bool has_defaults_for(const std::string& task) override {
    if (!settings_.task.empty()) return false;
    shown_task_ = task;
    return true;
  }
  void read(config::Fields& fields, const run::TrainingWords& words) override;
  void check() override {
    rl::check(settings_);
    if (!settings_.task.empty())
      (void)tasks::make_task(settings_.task, {.n_envs = 1, .overrides = settings_.task_settings});
  }
  std::string measure(const run::Measurement& measurement, const config::Fields&) override {
    throw Error(
        measurement.kind == run::Measurement::Kind::kParts
            ? "ppo has no loader: what it learns from is simulated; its report says where the time goes"
            : "`cohort estimate` is for trainings with data; ppo's speed is that of its simulator: train it for "
              "a few iterations with max_iterations=3");
  }
  int run(const config::Fields& fields, const std::vector<std::string>& typed) override {
    return rl::run(settings_, fields, typed);
  }

 private:
  void bind(config::Fields& fields);
  void apply(config::Fields& fields, const run::TrainingWords& words);
  void apply_word(config::Fields& fields, const std::string& text);
  void leave_out_the_presets_return(const std::vector<std::string>& words);

  std::string name_ = "ppo", shown_task_;
  PpoRunSettings settings_;
};

void PpoTraining::bind(config::Fields& fields) {
  fields.add_choice("job", name_, {name_}, "what is trained: the word behind `cohort train`");
  rl::describe(fields, settings_);
  fields.alias("num_envs", "n_envs");  // rsl_rl's and Isaac Lab's names
  fields.alias("experiment_name", "name");
  fields.alias("score_to_win", "stop_at_return");  // rl_games
}

/// The task's name chooses the defaults of the others, and may stand anywhere.
void PpoTraining::describe(config::Fields& fields, const run::TrainingWords& words) {
  settings_ = PpoRunSettings();
  settings_.task = shown_task_;
  if (shown_task_.empty()) {
    config::Fields named;
    bind(named);
    apply(named, words);
  }
  settings_ = preset(settings_.task);
  bind(fields);
}

void PpoTraining::apply_word(config::Fields& fields, const std::string& text) {
  constexpr std::string_view kOfTask = "task_settings.";
  if (text.starts_with(kOfTask)) return set_of_task(settings_.task_settings, text.substr(kOfTask.size()));
  try {
    fields.apply_override(text);
  } catch (const Error&) {
    const std::string key = text.substr(0, text.find('='));
    if (const std::string form = instead_of(key); !form.empty() && !fields.has(key))
      throw Error(format("ppo has no setting '{}': {}", key, form));
    // As `cohort evaluate` takes them.
    if (fields.has(key) || !is_setting_of(settings_.task, key)) throw;
    set_of_task(settings_.task_settings, text);
  }
}

void PpoTraining::apply(config::Fields& fields, const run::TrainingWords& words) {
  if (!words.resumed.empty()) fields.apply_file(words.resumed);
  for (const std::string& file : words.files) fields.apply_file(file);
  settings_.resume.clear();  // which run is continued, the command line alone says
  settings_.checkpoint = words.checkpoint;
  // Whose the task's settings are, its name says, wherever it stands; and a run that goes on keeps its task.
  for (const std::string& text : words.settings)
    for (const char* key : {"task=", "task_library=", "name=", "experiment_name=", "output_dir=", "resume="})
      if (text.starts_with(key)) fields.apply_override(text);
  tasks::use_library(settings_.task_library, words.resumed.empty() ? "this configuration" : words.resumed);
  if (!words.resumed.empty())
    tasks::use_kept_task(settings_.task, std::filesystem::path(words.resumed).parent_path(), false);
  else if (const std::string own = run::run_to_continue(settings_, tasks::task_title(settings_.task), words.settings);
           !own.empty())
    tasks::use_kept_task(settings_.task, own, true);
  for (const std::string& text : words.settings) apply_word(fields, text);
}

/// The return at which a preset ends is that of its task as it is: another horizon or another reward has others.
void PpoTraining::leave_out_the_presets_return(const std::vector<std::string>& words) {
  const std::optional<double> of_preset = preset(settings_.task).stop_at_return;
  const run::TypedSettings typed(words);
  if (settings_.task_settings.empty() || !of_preset || settings_.stop_at_return != of_preset ||
      typed.has("stop_at_return") || typed.has("score_to_win"))
    return;
  settings_.stop_at_return.reset();
  log::info("stop_at_return={:g} of {}'s preset is left out: it is for the task without task_settings", *of_preset,
            settings_.task);
}

void PpoTraining::read(config::Fields& fields, const run::TrainingWords& words) {
  apply(fields, words);
  check_words(words.settings, settings_);
  leave_out_the_presets_return(words.settings);
}

}  // namespace

std::unique_ptr<run::Training> ppo_training() {
  return std::make_unique<PpoTraining>();
}

}  // namespace cohort::rl
