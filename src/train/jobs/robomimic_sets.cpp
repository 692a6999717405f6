#include "train/jobs/robomimic_sets.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/utf8.h"
#include "data/open_episodes.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/schema.h"
#include "train/jobs/robomimic_names.h"

namespace cohort::train {
namespace {

using config::Json;
using config::JsonSection;

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
  if (std::any_of(info.splits.begin(), info.splits.end(),
                  [](const auto& split) { return split.name == "val" && split.size() > 0; }))
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

}  // namespace

void read_actions(RobomimicReading& r, data::RobotDataSettings& data) {
  data.actions.clear();
  data.action_normalization.clear();
  std::vector<std::string> answers;
  const std::vector<std::string> stored = r.format == "droid" ? stored_fields(data) : std::vector<std::string>{};
  for (const std::string& key : r.action_keys) {
    std::string component = action_field(key, r.format, stored);
    Json form(nullptr), at_runtime(nullptr);
    Json normalization = r.rlds() ? Json("min_max") : Json(nullptr);
    const auto refuse = [&](const std::string& name, const Json& value, const std::string& why) {
      r.refused.push_back(format("train.action_config.{}.{} = {} {}", key, name, json_text(value), why));
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
        } else if (item.key() == "format") {
          form = item.value();
        } else if (item.key() == "convert_at_runtime") {
          at_runtime = item.value();
        } else {
          refuse(item.key(), item.value(), "is unknown here");
        }
      }
    }
    // robomimic's policies turn stored 6-D rotations into what the robot takes, axis-angle unless another form is named
    // (algo/algo.py, RolloutPolicy); what is turned into them here is turned back anyway.
    std::string answer;
    if (form == "rot_6d" && component.find('|') == std::string::npos) {
      if (at_runtime.is_null() || at_runtime == "rot_axis_angle")
        answer = "rotation_6d->axis_angle";
      else if (at_runtime == "rot_euler")
        answer = "rotation_6d->euler_XYZ";
      else
        refuse("convert_at_runtime", at_runtime, "is not supported; there are rot_axis_angle and rot_euler");
    }
    answers.push_back(answer);
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
  if (std::any_of(answers.begin(), answers.end(), [](const auto& answer) { return !answer.empty(); }))
    data.action_answers = answers;
  if (r.rlds() && r.action_shapes.is_array()) {
    for (const Json& shape : r.action_shapes) {
      if (shape.is_array() && shape.size() == 2 && shape[1].is_number_integer())
        data.action_width += shape[1].get<std::int64_t>();
      else
        r.refused.push_back(format("train.action_shapes = {} is no list of (1, width)", json_text(r.action_shapes)));
    }
  }
}

void read_rlds_sets(RobomimicReading& r, bool wants_language, data::RobotDataSettings& data) {
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

void read_hdf5_sets(RobomimicReading& r, data::RobotDataSettings& data) {
  data.format = "hdf5";
  data.splits.clear();
  Json list = r.data;
  if (!r.data_path.empty()) {
    if (!list.is_null() && list != Json(r.data_path))
      r.notes.push_back(format("train.data = {} is not read: train.data_path names the data", json_text(list)));
    list = Json(r.data_path);
  }
  if (list.is_string()) {
    Json entry = Json::object();
    entry["path"] = list;
    list = Json::array();
    list.push_back(std::move(entry));
  }
  if (!list.is_array() || list.empty()) {
    r.refused.push_back(format("train.data = {} is no file and no list of {{\"path\": FILE}}", json_text(r.data)));
    return;
  }
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("path") || !entry.at("path").is_string()) {
      r.refused.push_back(format("train.data: {} has no path", json_text(entry)));
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

std::string environment_of(const std::string& path) {
  try {
    const auto source = data::open_episodes(path, {.format = "hdf5", .index_cache = "never"});
    if (source->size() == 0) return "";
    const Json args = try_json<Json>(source->open(0)->metadata("data/env_args"));
    if (args.is_object() && args.contains("env_name") && args.at("env_name").is_string())
      return args.at("env_name").get<std::string>();
  } catch (const Error&) {
  }
  return "";
}

}  // namespace cohort::train
