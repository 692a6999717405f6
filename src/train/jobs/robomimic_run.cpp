#include "train/jobs/robomimic_run.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/utf8.h"
#include "data/open_episodes.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/schema.h"
#include "data/robot_windows.h"
#include "models/diffusion_policy/json_section.h"
#include "models/diffusion_policy/robomimic_config.h"
#include "policy/algorithm.h"
#include "policy/policy_settings.h"
#include "train/jobs/robomimic_names.h"
#include "train/jobs/robomimic_overrides.h"
#include "train/jobs/robomimic_policy.h"

namespace cohort::train {
namespace {

using config::Json;
using models::JsonSection;

Json read_json(const std::string& path) {
  try {
    return Json::parse(read_file(path), nullptr, true, true);
  } catch (const Json::parse_error& e) {
    throw Error(format("{}: not valid JSON: {}", path, e.what()));
  }
}

/// What the sections say, before it becomes settings.
struct Reading {
  std::vector<std::string> refused, notes;
  // experiment
  std::string name;
  bool validate = false, mse = false, tensorboard = true, save = true, save_best = false;
  std::int64_t mse_epochs = 50, mse_samples = 20, save_epochs = 50, epoch_steps = 100;
  std::string checkpoint, environment;
  bool rollouts = true, rollouts_end = true, rollouts_batched = false;  // robomimic's defaults
  std::int64_t rollout_n = 50, rollout_horizon = 400, rollout_rate = 50, rollout_warmstart = 0, rollout_envs = 1;
  // train
  std::string format = "robomimic", data_path, output_dir, filter_key, validation_filter_key;
  std::vector<std::string> validation_splits, set_names, action_keys{"actions"};
  std::vector<double> weights;
  Json data, action_config = Json::object(), action_shapes;
  std::int64_t batch_size = 100, epochs = 2000, seed = 1, subsample_length = 100, shuffle_buffer = 0, workers = 0;
  std::int64_t seq_length = 1, frame_stack = 1;
  bool pad_seq_length = true, pad_frame_stack = true, cuda = true;
  bool weights_of_windows = false;  // train.data's weights: of every window of a file, not of the file
  double max_grad_norm = 0;

  bool rlds() const { return format == "droid_rlds"; }
  models::ObservationOrder order() const {
    return rlds()              ? models::ObservationOrder::kAsListed
           : format == "droid" ? models::ObservationOrder::kDroid
                               : models::ObservationOrder::kByName;
  }
};

/// Reads a key whose value has no effect here; says so where it asks for something.
void without_effect(JsonSection& section, Reading& r, const std::string& key, const std::string& reason) {
  const Json& value = section.get(key);
  if (value.is_null() || models::is_empty(value)) return;
  r.notes.push_back(format("{}.{} = {}: {}", section.path(), key, value.dump(), reason));
}

void read_experiment(JsonSection& s, Reading& r) {
  s.take_or_null("name", r.name, {});
  s.take("validate", r.validate);
  s.in("logging", [&](JsonSection& logging) {
    logging.ignore("terminal_output_to_txt");  // there always is a training.log
    logging.take("log_tb", r.tensorboard);
    without_effect(logging, r, "log_wandb",
                   "nothing is sent anywhere; metrics.jsonl and TensorBoard events hold it all");
    logging.ignore("wandb_proj_name");
  });
  s.in("mse", [&](JsonSection& mse) {
    mse.take("enabled", r.mse);
    mse.take_or_null("every_n_epochs", r.mse_epochs, std::int64_t{0});
    mse.take("num_samples", r.mse_samples);
    mse.ignore("on_save_ckpt");
    mse.ignore("visualize");  // the report always shows predicted beside true actions
  });
  s.in("save", [&](JsonSection& save) {
    save.take("enabled", r.save);
    save.take_or_null("every_n_epochs", r.save_epochs, std::int64_t{0});
    save.off("every_n_seconds", models::is_empty, "is not supported: checkpoints are counted in steps and epochs");
    save.off("epochs", models::is_empty, "is not supported: use experiment.save.every_n_epochs");
    save.take("on_best_validation", r.save_best);
    save.ignore("on_best_rollout_return");
    save.ignore("on_best_rollout_success_rate");
  });
  s.take_or_null("epoch_every_n_steps", r.epoch_steps, std::int64_t{0});
  if (s.has("epoch_every_n_steps") && !s.get("epoch_every_n_steps").is_null() && r.epoch_steps < 1)
    s.refuse("experiment.epoch_every_n_steps", s.get("epoch_every_n_steps"),
             "is no number of steps; null makes an epoch a pass over the data");
  without_effect(s, r, "validation_epoch_every_n_steps", "a validation goes through all of its windows");
  s.take_or_null("env", r.environment, {});
  without_effect(s, r, "additional_envs", "rollouts are played in one environment");
  without_effect(s, r, "env_meta_update_dict", "rollout.task_settings=[key=value] are settings of the task");
  for (const char* key : {"render", "render_video", "keep_all_videos", "video_skip"}) s.ignore(key);
  s.in("rollout", [&](JsonSection& rollout) {
    rollout.take("enabled", r.rollouts);
    rollout.take("n", r.rollout_n);
    rollout.take("horizon", r.rollout_horizon);
    rollout.take("rate", r.rollout_rate);
    rollout.take_or_null("warmstart", r.rollout_warmstart, std::int64_t{0});
    rollout.take("terminate_on_success", r.rollouts_end);
    rollout.take("batched", r.rollouts_batched);
    rollout.take_or_null("num_batch_envs", r.rollout_envs, std::int64_t{1});
    for (const auto& [key, value] :
         {std::pair{"n", r.rollout_n}, std::pair{"horizon", r.rollout_horizon}, std::pair{"rate", r.rollout_rate}})
      if (value < 1) rollout.refuse(format("{}.{}", rollout.path(), key), Json(value), "must be at least 1");
  });
  s.take_or_null("ckpt_path", r.checkpoint, {});
  if (!r.checkpoint.empty() && !r.checkpoint.ends_with(".safetensors"))
    s.refuse("experiment.ckpt_path", Json(r.checkpoint),
             "is no .safetensors file: save the weights as one first, as docs/guide/policies.md shows");
}

void read_train(JsonSection& s, Reading& r) {
  s.take("data_format", r.format);
  if (r.format != "droid_rlds" && r.format != "robomimic" && r.format != "droid")
    s.refuse("train.data_format", Json(r.format), "is not supported; there are droid_rlds, robomimic and droid");
  r.data = s.get("data");
  s.take_or_null("data_path", r.data_path, {});
  s.take_or_null("dataset_names", r.set_names, {});
  s.take_or_null("sample_weights", r.weights, {});
  s.take_or_null("output_dir", r.output_dir, {});
  s.take("batch_size", r.batch_size);
  s.take("num_epochs", r.epochs);
  s.take("seed", r.seed);
  s.take("cuda", r.cuda);
  s.take_or_null("max_grad_norm", r.max_grad_norm, 0.0);
  s.take("seq_length", r.seq_length);
  s.take("frame_stack", r.frame_stack);
  s.take("pad_seq_length", r.pad_seq_length);
  s.take("pad_frame_stack", r.pad_frame_stack);
  s.take("subsample_length", r.subsample_length);
  s.take("shuffle_buffer_size", r.shuffle_buffer);
  s.take("num_data_workers", r.workers);
  if (s.has("normalize_weights_by_ds_size")) {  // robomimic's; the fork always does so
    bool normalize = true;
    s.take("normalize_weights_by_ds_size", normalize);
    r.weights_of_windows = !normalize;
  }
  s.take_or_null("hdf5_filter_key", r.filter_key, {});
  s.take_or_null("hdf5_validation_filter_key", r.validation_filter_key, {});
  for (const char* key : {"num_parallel_calls", "traj_transform_threads", "traj_read_threads"})
    without_effect(s, r, key, "loader.workers says how many threads prepare batches");
  for (const char* key :
       {"hdf5_cache_mode", "hdf5_use_swmr", "hdf5_load_next_obs", "dataset_keys", "truncated_geom_factor"})
    s.ignore(key);
  s.off("hdf5_normalize_obs", models::is_false, "is not supported: set data.proprio_normalization=[normal]");
  s.off("goal_mode", models::is_empty, "is not supported: policies have no goal observations");
  if (r.rlds())
    s.ignore("shuffled_obs_key_groups");  // the reference reads it for HDF5 data only, and generates it for RLDS, too
  else
    s.off("shuffled_obs_key_groups", models::is_empty, "is not supported");
  s.off(
      "view_dropout_prob", [](const Json& v) { return v == 0; }, "is not supported");
  // robomimic takes the keys as a list, or as an object whose values are their action_config.
  const Json& keys = s.get("action_keys");
  if (keys.is_object()) {
    r.action_keys.clear();
    for (const auto& item : keys.items()) {
      r.action_keys.push_back(item.key());
      r.action_config[item.key()] = item.value();
    }
  } else {
    s.take("action_keys", r.action_keys);
  }
  const Json& normalization = s.get("action_config");
  if (normalization.is_object())
    for (const auto& item : normalization.items()) r.action_config[item.key()] = item.value();
  else if (!normalization.is_null())
    s.refuse("train.action_config", normalization, "is no object");
  r.action_shapes = s.get("action_shapes");
}

/// The fields of the first data set; none where that cannot be said, which ends in a clear error later.
std::vector<std::string> stored_fields(const data::RobotDataSettings& data) {
  std::vector<std::string> names;
  if (data.paths.empty()) return names;
  try {
    const auto source = data::open_episodes(data.paths[0], {.format = data.format, .split = data.splits.at(0)});
    for (const data::StepField& field : source->fields()) names.push_back(field.name);
  } catch (const Error&) {
    return names;
  }
  return names;
}

/// The components of the action, their normalisation and their width.
void read_actions(Reading& r, data::RobotDataSettings& data) {
  data.actions.clear();
  data.action_normalization.clear();
  const std::vector<std::string> stored = r.format == "droid" ? stored_fields(data) : std::vector<std::string>{};
  for (const std::string& key : r.action_keys) {
    std::string component = action_field(key, r.format, stored);
    Json normalization = r.rlds() ? Json("min_max") : Json(nullptr);
    const auto refuse = [&](const std::string& name, const Json& value, const std::string& why) {
      r.refused.push_back(format("train.action_config.{}.{} = {} {}", key, name, value.dump(), why));
    };
    if (!r.rlds() && !r.action_config.empty() && !r.action_config.contains(key))
      r.refused.push_back(
          format("train.action_keys: {} has no entry in train.action_config: say how it is normalised, "
                 "{{\"normalization\": \"min_max\"}}, or null in its place to take it as it is",
                 key));
    if (r.action_config.contains(key) && r.action_config.at(key).is_object()) {
      for (const auto& item : r.action_config.at(key).items()) {
        if (item.key() == "normalization") {
          normalization = item.value();
        } else if (item.key() == "rot_conversion") {
          if (item.value() == "axis_angle_to_6d")
            component += " | axis_angle->rotation_6d";
          else if (!item.value().is_null())
            refuse(item.key(), item.value(), "is not supported; only axis_angle_to_6d is");
        } else if (item.key() != "format" && item.key() != "convert_at_runtime") {  // these two concern rollouts
          refuse(item.key(), item.value(), "is unknown here");
        }
      }
    }
    std::string kind = "none";
    if (normalization == "min_max")
      kind = "bounds";
    else if (normalization == "gaussian")
      kind = "normal";
    else if (!normalization.is_null())
      refuse("normalization", normalization, "is not supported; there are min_max, gaussian and null");
    if (r.rlds() && kind != "bounds")
      refuse("normalization", normalization, "contradicts the RLDS pipeline, which brings all actions to their bounds");
    data.actions.push_back(component);
    data.action_normalization.push_back(kind);
  }
  if (r.rlds() && r.action_shapes.is_array()) {
    for (const Json& shape : r.action_shapes) {
      if (shape.is_array() && shape.size() == 2 && shape[1].is_number_integer())
        data.action_width += shape[1].get<std::int64_t>();
      else
        r.refused.push_back(format("train.action_shapes = {} is no list of (1, width)", r.action_shapes.dump()));
    }
  }
}

/// The splits that the reference takes for training and validation: train and val where the set has a split of that
/// name, else 95 % and 5 % of train. The second is empty where that leaves no episode.
std::pair<std::string, std::string> splits_of(const std::string& path) {
  std::pair<std::string, std::string> splits{"train[:95%]", "train[95%:]"};
  data::DatasetInfo info;
  try {
    const std::filesystem::path file = data::find_dataset_folder(path) / "dataset_info.json";
    info = data::parse_dataset_info(read_file(file), file.string());
  } catch (const Error&) {
    return splits;  // what is wrong is said where the data are opened
  }
  if (std::any_of(info.splits.begin(), info.splits.end(), [](const auto& split) { return split.name == "val"; }))
    return {"train", "val"};
  try {
    data::select_split(info, splits.second);
  } catch (const Error&) {
    splits.second.clear();
  }
  return splits;
}

/// Whether the steps of the set have instructions; true where that cannot be said, which ends in a clear error later.
bool has_instructions(const std::string& path) {
  try {
    const std::filesystem::path file = data::find_dataset_folder(path) / "features.json";
    const auto leaves = data::list_leaves(data::parse_features(read_file(file), file.string()));
    return std::any_of(leaves.begin(), leaves.end(),
                       [](const data::FeatureLeaf& leaf) { return leaf.key == "steps/language_instruction"; });
  } catch (const Error&) {
    return true;
  }
}

void read_rlds_sets(Reading& r, bool wants_language, data::RobotDataSettings& data) {
  if (r.data_path.empty()) r.refused.push_back("train.data_path is empty: set it to the folder of the RLDS data sets");
  if (r.set_names.empty()) r.refused.push_back("train.dataset_names is empty: name at least one data set");
  for (const std::string& name : r.set_names) data.paths.push_back(utf8_to_bytes(r.data_path + "/" + name));
  if (r.weights.size() == r.set_names.size())
    data.weights = r.weights;
  else if (!r.weights.empty())
    r.refused.push_back(
        format("train.sample_weights has {} numbers for {} data sets", r.weights.size(), r.set_names.size()));
  // The reference's own rules: success for droid only, and an instruction (skip_unlabeled).
  for (std::size_t d = 0; d < r.set_names.size(); ++d) {
    const std::string of_set = r.set_names.size() == 1 ? "" : format("{}: ", d);
    const bool droid = r.set_names[d] == "droid";
    if (droid) data.filters.push_back(of_set + "metadata_contains(episode_metadata/file_path, /success/)");
    if (droid || has_instructions(data.paths[d]))
      data.filters.push_back(of_set + "labeled(language_instruction)");
    else
      r.notes.push_back(
          format("{} has no language_instruction: no episode is left out for lack of one, as the reference would",
                 data.paths[d]));
  }
  data.format = "rlds";
  data.splits.clear();
  for (const std::string& path : data.paths) {
    const auto [train, validation] = splits_of(path);
    data.splits.push_back(train);
    if (!validation.empty()) r.validation_splits.push_back(validation);
  }
  if (wants_language) data.instruction = "language_instruction";
  data.windows_per_episode = r.subsample_length;
  data.shuffle_buffer_size = r.shuffle_buffer;
}

void read_hdf5_sets(Reading& r, data::RobotDataSettings& data) {
  data.format = "hdf5";
  data.splits.clear();
  Json list = r.data;
  if (!r.data_path.empty()) {
    if (!list.is_null() && list != Json(r.data_path))
      r.notes.push_back(format("train.data = {} is not read: train.data_path names the data", list.dump()));
    list = Json(r.data_path);
  }
  if (list.is_string()) {
    Json entry = Json::object();
    entry["path"] = list;
    list = Json::array();
    list.push_back(std::move(entry));
  }
  if (!list.is_array() || list.empty()) {
    r.refused.push_back(format("train.data = {} is no file and no list of {{\"path\": FILE}}", r.data.dump()));
    return;
  }
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("path") || !entry.at("path").is_string()) {
      r.refused.push_back(format("train.data: {} has no path", entry.dump()));
      continue;
    }
    std::string path = entry.at("path").get<std::string>();
    const char* home = std::getenv("HOME");
    if (path.starts_with("~/") && home) path = home + path.substr(1);
    data.paths.push_back(utf8_to_bytes(path));
    std::string mask = r.filter_key;
    double weight = 1.0;
    JsonSection section(entry, "train.data", r.refused);
    section.ignore("path");
    section.take_or_null("filter_key", mask, r.filter_key);
    section.take("weight", weight);
    for (const char* key : {"horizon", "do_eval", "lang", "dataset_fingerprint"}) section.ignore(key);
    data.splits.push_back(mask);
    data.weights.push_back(weight);
  }
  // Weights are of whole files (the fork's MetaDataset.get_dataset_sampler): equal ones draw from a short file as often
  // as from a long one. robomimic's own, where they are not normalised, are of windows: our empty list where equal.
  if (r.weights_of_windows) {
    const bool equal =
        std::all_of(data.weights.begin(), data.weights.end(), [&](double weight) { return weight == data.weights[0]; });
    if (!equal)
      r.refused.push_back(
          "train.data: different weights with train.normalize_weights_by_ds_size = false are not supported; with true, "
          "a weight says how often its file is drawn from");
  }
  if (r.weights_of_windows || data.paths.size() == 1) data.weights.clear();
}

/// env_args' name of the environment that the file was recorded in; empty where it has none or cannot be read, which is
/// said when the data are opened.
std::string environment_of(const std::string& path) {
  try {
    const auto source = data::open_episodes(path, {.format = "hdf5", .index_cache = "never"});
    if (source->size() == 0) return "";
    const Json args = Json::parse(source->open(0)->metadata("data/env_args"), nullptr, false);
    if (args.is_object() && args.contains("env_name") && args.at("env_name").is_string())
      return args.at("env_name").get<std::string>();
  } catch (const Error&) {
  }
  return "";
}

/// rollout.*, and what has to be so for them in `train`. `validation_epochs`: epochs between validations; 0: there are
/// none.
void set_rollouts(Reading& r, const data::RobotDataSettings& data, const std::vector<std::string>& overrides,
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

}  // namespace

bool is_robomimic_file(const std::string& path) {
  const Json json = read_json(path);
  return json.is_object() && json.contains("algo_name");
}

RobomimicRun read_robomimic_run(const std::string& path, const std::vector<std::string>& overrides,
                                const RolloutTaskFunction& rollout_task) {
  RobomimicRun run;
  Json json = read_json(path);
  COHORT_THROW_UNLESS(json.is_object(), "{}: a configuration is a JSON object", path);
  run.overrides = lay_over(json, overrides, path);

  Reading r;
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

  policy::PolicySettings model;
  TrainingRules rules;
  // Of another algorithm's sequences nothing can be said.
  const bool understood = algorithm == "diffusion_policy" || algorithm == "bc";
  try {
    read_policy(algorithm, algo, observation, path, r.order(), model, rules);
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
  if (r.rlds()) {
    model.diffusion.horizon.first_action = 0;  // its chunks begin with the newest frame
    if (algorithm == "bc")
      r.refused.push_back(
          "algo_name = \"bc\" on RLDS data is not supported: the pipeline is the "
          "diffusion policy's");
  } else {
    const std::int64_t rows = r.frame_stack + r.seq_length - 1;
    const policy::Algorithm& learner = policy::algorithm_of(model);
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

  std::string list;
  for (const std::string& line : r.refused) list += "\n  " + line;
  COHORT_THROW_UNLESS(r.refused.empty(), "{}: settings that cannot be honoured:{}", path, list);

  config::Fields fields;
  fields.section("data", [&] { data::describe(fields, data); });
  fields.section("model", [&] { describe(fields, model); });
  run.settings = fields.to_json();
  // These follow from the model and the data.
  for (const char* key : {"observation_steps", "action_steps", "action_begin"}) run.settings["data"].erase(key);
  for (const char* key : {"action_width", "action_widths", "low_dim_widths", "image_size", "recorded"})
    run.settings["model"].erase(key);
  run.settings["data"]["combine_statistics"] = true;

  Json& s = run.settings;
  if (!r.name.empty()) s["name"] = r.name;
  if (!r.output_dir.empty()) s["output_dir"] = r.output_dir;
  if (!r.cuda) s["backend"] = "cpu";
  s["tensorboard"] = r.tensorboard;
  s["drop_last"] = !r.rlds();  // a stream has no last batch
  if (r.workers > 0) s["loader"]["workers"] = r.workers;
  Json t = Json::object();  // by value: a reference into `s` would not outlive the next key
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
    if (per_epoch > 0) t["validate_every"] = per_epoch * validation_epochs;
  }
  set_rollouts(r, data, run.overrides, rollout_task, validation_epochs, s, t);
  s["train"] = std::move(t);
  for (std::string& note : r.notes)
    if (note.starts_with(".")) note.erase(0, 1);
  run.notes = std::move(r.notes);
  return run;
}

}  // namespace cohort::train
