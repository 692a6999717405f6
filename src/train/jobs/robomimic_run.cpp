#include "train/jobs/robomimic_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/json_section.h"
#include "core/settings_file.h"
#include "core/utf8.h"
#include "data/robot_windows.h"
#include "policies/algorithm.h"
#include "policies/policy_settings.h"
#include "train/jobs/robomimic_names.h"
#include "train/jobs/robomimic_overrides.h"
#include "train/jobs/robomimic_policy.h"
#include "train/jobs/robomimic_reading.h"
#include "train/jobs/robomimic_sets.h"

namespace cohort::train {
namespace {

using config::Json;
using config::JsonSection;

/// rollout.*, and what has to be so for them in `train`. `validation_epochs`: epochs between validations; 0: there are
/// none.
void set_rollouts(RobomimicReading& r, const data::RobotDataSettings& data, const std::vector<std::string>& overrides,
                  const RolloutTaskFunction& rollout_task, std::int64_t validation_epochs, Json& settings,
                  Json& train) {
  if (!r.rollouts) return;
  Json rollout = Json::object();
  std::string named;
  for (const std::string& text : overrides)
    if (text.starts_with("rollout.task=")) named = text.substr(text.find('=') + 1);
  if (named.empty() && r.environment.empty() && !r.rlds() && !data.paths.empty())
    r.environment = environment_of(data.paths.front());
  const std::string& environment = named.empty() ? r.environment : named;
  RolloutTask found{.why_not = "neither experiment.env nor the data say in which environment"};
  if (!environment.empty() && rollout_task)
    found = rollout_task(environment, r.rollout_horizon, r.rollouts_end);
  else if (!environment.empty())
    found.why_not = "this build has no tasks";
  if (named.empty() && found.task.empty()) {
    r.notes.push_back(
        format("experiment.rollout.enabled = true: there are no rollouts, since {}; "
               "rollout.task=NAME names a task (`cohort tasks`)",
               found.why_not));
    return;
  }
  if (!found.task.empty()) {
    rollout["task"] = found.task;
    rollout["task_settings"] = found.settings;
    if (environment != found.task || !found.settings.empty())
      r.notes.push_back(format("experiment.rollout: environment {} is the task {}{}", environment, found.task,
                               found.settings.empty() ? "" : " with " + join(found.settings, " ")));
  }
  // An epoch with rollouts has a validation, and each validation is counted.
  const std::int64_t between = validation_epochs > 0 ? std::gcd(validation_epochs, r.rollout_rate) : r.rollout_rate;
  if (r.epoch_steps > 0) {
    train["validate_every"] = r.epoch_steps * between;
  } else if (between != 1) {
    r.notes.push_back("experiment.epoch_every_n_steps = null: there is a validation after every epoch");
  }
  const std::int64_t unit = r.epoch_steps > 0 ? between : 1;
  rollout["enabled"] = true;
  rollout["n"] = r.rollout_n;
  rollout["horizon"] = r.rollout_horizon;
  rollout["rate"] = r.rollout_rate / unit;
  rollout["warmstart"] = r.rollout_warmstart / unit;
  rollout["terminate_on_success"] = r.rollouts_end;
  if (r.rollouts_batched) rollout["n_envs"] = r.rollout_envs;
  settings["rollout"] = std::move(rollout);
}

/// The settings that are not those of `other`, nested; a list is one value.
Json difference(const Json& json, const Json& other) {
  Json found = Json::object();
  for (const auto& [key, value] : json.items()) {
    const bool known = other.contains(key);
    if (value.is_object() && known && other.at(key).is_object()) {
      if (Json inside = difference(value, other.at(key)); !inside.empty()) found[key] = std::move(inside);
    } else if (!known || other.at(key) != value) {
      found[key] = value;
    }
  }
  return found;
}

void add_paths(const Json& json, const std::string& above, std::vector<std::string>& paths) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      add_paths(value, above + key + ".", paths);
    else
      paths.push_back(above + key);
  }
}

/// Names the words of the command line among the refused settings: the file is not to blame for them.
void name_typed(const std::vector<std::string>& overrides, std::vector<std::string>& refused) {
  for (std::string& line : refused)
    for (const std::string& text : overrides) {
      std::string key = text.substr(0, text.find('='));
      if (key.starts_with("train.optim_params.")) key = "algo." + key.substr(6);
      if (line.starts_with(key + " = ")) {
        line = "the command line's " + line;
        break;
      }
    }
}

/// Whether the file's sequences hold what the policy learns from, and how windows are filled up at the ends of an episode.
/// `understood`: of another algorithm's sequences nothing can be said.
void fit_windows(RobomimicReading& r, bool understood, policies::PolicySettings& model, data::RobotDataSettings& data) {
  if (r.rlds()) {
    if (const std::string why_not = policies::algorithm_of(model).fit_robomimic_stream(model); !why_not.empty())
      r.refused.push_back(why_not);
  } else {
    const std::int64_t rows = r.frame_stack + r.seq_length - 1;
    const policies::Algorithm& learner = policies::algorithm_of(model);
    const int frames = learner.frames_per_decision(model), action_rows = learner.action_steps(model);
    if (understood && r.frame_stack != frames)
      r.refused.push_back(
          format("train.frame_stack = {} is not supported for a policy that sees {} frames: set train.frame_stack={}",
                 r.frame_stack, frames, frames));
    if (understood && (rows < action_rows || (!r.pad_seq_length && rows != action_rows)))
      r.refused.push_back(format(
          "train.seq_length = {} gives {} rows of actions, but the policy learns from {}: set train.seq_length={}",
          r.seq_length, rows, action_rows, action_rows - frames + 1));
    data.pad_before = r.pad_frame_stack ? "repeat" : "drop";
    data.pad_after = r.pad_seq_length ? "repeat" : "drop";
    if (frames < learner.observation_steps(model)) {  // it remembers the others
      // Sequences end at a step here and begin at one there; those that lie inside an episode are the same.
      data.pad_before = r.pad_seq_length ? "repeat" : "drop";
      if (r.pad_seq_length)
        r.notes.push_back(
            "train.pad_seq_length = true: sequences are filled up before an episode's first step, not "
            "behind its last one");
    }
  }
}

/// The section "train" but for validation and rollouts.
Json train_settings(RobomimicReading& r, const policies::RobomimicPolicy& rules, const std::string& path) {
  Json t = Json::object();
  t["batch_size"] = r.batch_size;
  t["seed"] = r.seed;
  t["lr"] = rules.optimizer.learning_rate;
  t["optimizer"] = rules.optimizer.kind;
  t["weight_decay"] = rules.optimizer.weight_decay;
  t["clip_norm"] = r.max_grad_norm;
  t["ema"]["enabled"] = rules.ema_enabled;
  t["ema"]["power"] = rules.ema_power;
  const std::int64_t per_epoch = r.epoch_steps;
  if (per_epoch > 0)
    t["steps"] = r.epochs * per_epoch;
  else
    t["epochs"] = r.epochs;
  if (rules.optimizer.schedule == "cosine") {
    t["schedule"] = "cosine";
    t["warmup_steps"] = rules.optimizer.warmup_steps;
  }
  if (!rules.optimizer.epochs.empty()) {
    COHORT_THROW_UNLESS(per_epoch > 0,
                        "{}: algo.optim_params.policy.learning_rate.epoch_schedule counts epochs: set "
                        "experiment.epoch_every_n_steps, which says how many steps one has",
                        path);
    t["schedule"] = "multistep";
    t["gamma"] = rules.optimizer.decay;
    t["milestones"] = Json::array();
    for (const int epoch : rules.optimizer.epochs) t["milestones"].push_back(epoch * per_epoch);
  }
  t["checkpoint"]["save_best"] = r.save && r.save_best;
  if (r.save)
    t["checkpoint"]["keep"] = 0;  // all, as the reference does
  else
    r.notes.push_back("experiment.save.enabled = false: a run ends in a checkpoint all the same");
  if (r.save && r.save_epochs > 0)
    t["checkpoint"][per_epoch > 0 ? "every" : "every_epochs"] = r.save_epochs * std::max<std::int64_t>(1, per_epoch);
  return t;
}

/// Fills in what is validated and how often; returns after how many epochs, 0 where nothing is.
std::int64_t set_validation(RobomimicReading& r, const std::string& path, Json& s, Json& t) {
  if (r.mse && !r.validate && !r.rlds())
    r.notes.push_back(
        "experiment.mse.enabled = true: drawn actions are compared on validation data, which "
        "experiment.validate = false leaves out");
  std::int64_t validation_epochs = 0;
  if (r.validate || r.mse) {
    if (r.rlds() && r.validation_splits.size() == r.set_names.size())
      s["validation"]["splits"] = r.validation_splits;
    else if (r.rlds())
      r.notes.push_back(
          "experiment.mse, experiment.validate: a data set is too small to leave 5 % of it for validation; "
          "there is none, unless validation.splits names some");
    else if (r.validate)
      s["validation"]["splits"] = Json::array({r.validation_filter_key});
    COHORT_THROW_UNLESS(r.rlds() || !r.validate || !r.validation_filter_key.empty(),
                        "{}: experiment.validate = true needs train.hdf5_validation_filter_key, a mask of the file",
                        path);
    s["validation"]["sampled"] = r.mse ? r.mse_samples : 0;
    // Without a number of its own, at every checkpoint.
    const std::int64_t drawn = r.mse_epochs > 0 ? r.mse_epochs : r.save_epochs;
    validation_epochs = r.validate ? 1 : std::max<std::int64_t>(1, drawn);
    if (r.epoch_steps > 0) t["validate_every"] = r.epoch_steps * validation_epochs;
  }
  return validation_epochs;
}

}  // namespace

bool is_robomimic_file(const std::string& path) {
  const Json json = read_settings_file(path);
  return json.is_object() && json.contains("algo_name");
}

RobomimicRun read_robomimic_run(const std::string& path, const std::vector<std::string>& overrides,
                                const RolloutTaskFunction& rollout_task) {
  RobomimicRun run;
  Json json = read_settings_file(path);
  COHORT_THROW_UNLESS(json.is_object(), "{}: a configuration is a JSON object", path);
  run.overrides = lay_over(json, overrides, path);

  RobomimicReading r;
  std::string algorithm;
  Json algo, observation;
  {
    JsonSection root(json, "", r.refused);
    root.take("algo_name", algorithm);
    root.in("experiment", [&](JsonSection& s) { read_experiment(s, r); });
    root.in("train", [&](JsonSection& s) { read_train(s, r); });
    algo = root.get("algo");
    observation = root.get("observation");
    root.ignore("meta");  // notes of the generator of configurations
  }
  for (std::string& line : r.refused)
    if (line.starts_with(".")) line.erase(0, 1);

  policies::PolicySettings model;
  policies::RobomimicPolicy rules;
  try {
    rules = read_policy(algorithm, algo, observation, path, r.order(), model);
  } catch (const Error& e) {
    r.refused.push_back(e.what());
  }
  model.initial_weights = utf8_to_bytes(r.checkpoint);
  model.pretrained_backbone = rules.pretrained_backbone;

  data::RobotDataSettings data;
  if (r.rlds())
    read_rlds_sets(r, model.language.required, data);
  else
    read_hdf5_sets(r, data);
  read_actions(r, data);
  for (const std::string& name : model.low_dim) data.proprio.push_back(observation_field(name, r.format));
  for (const std::string& name : model.rgb) data.images.push_back(observation_field(name, r.format));
  if (!model.rgb.empty()) {
    data.image_transforms.clear();  // as they are stored
    if (model.image_size.size() == 2)
      data.image_transforms = {format("resize({}, {})", model.image_size[0], model.image_size[1])};
  }
  data.seed = static_cast<std::uint64_t>(r.seed);
  data.constant_elements = "error";  // as the reference refuses them
  fit_windows(r, policies::is_robomimics(algorithm), model, data);

  name_typed(overrides, r.refused);
  std::string list;
  for (const std::string& line : r.refused) list += "\n  " + line;
  COHORT_THROW_UNLESS(r.refused.empty(), "{}: settings that cannot be honoured:{}", path, list);

  config::Fields fields;
  fields.section("data", [&] { data::describe(fields, data); });
  fields.section("model", [&] { describe(fields, model); });
  run.settings = fields.to_json();
  // These follow from the model and the data.
  const auto leave_out = [&](const char* section, const char* key) {
    COHORT_CHECK(run.settings[section].erase(key) == 1, "there is no setting {}.{}", section, key);
  };
  for (const char* key : {"observation_steps", "action_steps", "action_begin"}) leave_out("data", key);
  for (const char* key : {"action_width", "action_widths", "low_dim_widths", "image_size", "recorded"})
    leave_out("model", key);
  run.settings["data"]["combine_statistics"] = true;

  Json& s = run.settings;
  if (!r.name.empty()) s["name"] = r.name;
  if (!r.output_dir.empty()) s["output_dir"] = r.output_dir;
  if (!r.cuda) s["backend"] = "cpu";
  s["tensorboard"] = r.tensorboard;
  s["drop_last"] = !r.rlds();  // a stream has no last batch
  if (r.workers > 0) s["loader"]["workers"] = r.workers;
  Json t = train_settings(r, rules, path);
  const std::int64_t validation_epochs = set_validation(r, path, s, t);
  set_rollouts(r, data, run.overrides, rollout_task, validation_epochs, s, t);
  s["train"] = std::move(t);
  for (std::string& note : r.notes)
    if (note.starts_with(".")) note.erase(0, 1);
  run.notes = std::move(r.notes);
  return run;
}

config::Json settings_of_robomimic_words(const std::string& path, const std::vector<std::string>& overrides,
                                         const std::vector<std::string>& of_job) {
  const Json file = read_settings_file(path);
  std::vector<std::string> keys;  // robomimic's, each once
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (is_robomimic_word(file, key) && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  Json changed = Json::object();
  if (keys.empty()) return changed;
  const Json whole = read_robomimic_run(path, overrides).settings;
  for (const std::string& key : keys) {
    // Episodes that are played are not read here, for they need a task.
    constexpr std::string_view kRollouts = "experiment.rollout.";
    if (key.starts_with(kRollouts))
      for (const std::string& own : of_job)
        COHORT_THROW_UNLESS(own.substr(0, own.find('=')) != "rollout." + key.substr(kRollouts.size()),
                            "{} and {} set the same thing: leave one of them out", key, own);
    std::vector<std::string> others;
    std::string typed;
    for (const std::string& text : overrides) {
      const bool is_it = text.substr(0, text.find('=')) == key;
      if (is_it) typed = text;
      if (!is_it) others.push_back(text);
    }
    Json of_key;
    try {
      of_key = difference(whole, read_robomimic_run(path, others).settings);
    } catch (const Error&) {
      continue;  // the file needs this word: it stands against nothing
    }
    std::vector<std::string> paths;
    add_paths(of_key, "", paths);
    // Either of the two decides how long the training is.
    const auto sets = [](const std::string& text, const std::string& setting) {
      const std::string own = text.substr(0, text.find('='));
      const auto is_length = [](const std::string& name) { return name == "train.steps" || name == "train.epochs"; };
      return own == setting || (is_length(own) && is_length(setting));
    };
    const auto rival = [&](const std::string& setting) {
      const auto found =
          std::find_if(of_job.begin(), of_job.end(), [&](const auto& text) { return sets(text, setting); });
      return found == of_job.end() ? std::string() : *found;
    };
    const bool outranked =
        !paths.empty() && std::all_of(paths.begin(), paths.end(), [&](const auto& one) { return !rival(one).empty(); });
    COHORT_THROW_UNLESS(!outranked, "{} and {} set the same thing: leave one of them out", typed, rival(paths.front()));
    changed.merge_patch(of_key);
  }
  return changed;
}

}  // namespace cohort::train
