#include "train/jobs/robomimic_overrides.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json_section.h"
#include "core/json_text.h"
#include "core/utf8.h"
#include "train/jobs/robomimic_reading.h"

namespace cohort::train {
namespace {

using config::Json;

/// Keys of robomimic's section "train" that a command line may set though the file lacks them: those that read_train() asks
/// for. What else begins with "train." is the job's own (train.lr, train.steps, ...).
const std::vector<std::string>& train_keys() {
  static const std::vector<std::string> kAll = [] {
    const Json none = Json::object();
    RobomimicReading reading;
    config::JsonSection section(none, ".train", reading.refused);
    read_train(section, reading);
    return section.asked();
  }();
  return kAll;
}

/// A value as a command line writes it: JSON, Python's words, a list without quotation marks, or text.
Json value_of(const std::string& text) {
  if (text == "None") return Json(nullptr);
  if (text == "True") return Json(true);
  if (text == "False") return Json(false);
  Json parsed = try_json<Json>(text);
  if (!parsed.is_discarded()) return parsed;
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    Json list = Json::array();
    const std::string inside = text.substr(1, text.size() - 2);
    std::size_t begin = 0;
    while (begin < inside.size()) {
      const std::size_t comma = std::min(inside.find(',', begin), inside.size());
      std::string item = inside.substr(begin, comma - begin);
      while (item.starts_with(' ')) item.erase(0, 1);
      while (item.ends_with(' ')) item.pop_back();
      list.push_back(value_of(item));
      begin = comma + 1;
    }
    return list;
  }
  return Json(bytes_to_utf8(text));
}

bool has_path(const Json& json, const std::string& path) {
  const Json* node = &json;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t dot = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, dot - begin);
    if (!node->is_object() || !node->contains(key)) return false;
    node = &node->at(key);
    begin = dot + 1;
  }
  return true;
}

void set_path(Json& json, const std::string& path, Json value) {
  Json* node = &json;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1) {
    node = &(*node)[path.substr(begin, dot - begin)];
    if (!node->is_object()) *node = Json::object();
  }
  (*node)[path.substr(begin)] = std::move(value);
}

bool is_robomimic_key(const Json& json, const std::string& path) {
  for (const char* section : {"algo.", "observation.", "experiment.", "meta."})
    if (path.starts_with(section)) return true;
  if (path == "algo_name" || has_path(json, path)) return true;
  if (!path.starts_with("train.")) return false;
  const std::string key = path.substr(6, path.find('.', 6) - 6);
  return std::ranges::find(train_keys(), key) != train_keys().end();
}

/// The flags of robomimic's train.py that are no keys of its configuration. --name is a setting of ours, --resume is
/// resume=auto.
bool is_script_flag(const std::string& key) {
  return key == "algo" || key == "dataset" || key == "debug";
}

/// --dataset FILE, --algo NAME and --debug as train.py means them (robomimic/scripts/train.py, main).
void set_script_flags(Json& json, const std::vector<std::string>& overrides, const std::string& path) {
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (!is_script_flag(key)) continue;
    const Json value = value_of(text.substr(std::min(text.size(), key.size() + 1)));
    if (key == "algo") {
      COHORT_THROW_UNLESS(json.contains("algo_name") && json.at("algo_name") == value,
                          "--algo {}: {} is a configuration of {}; leave --algo out", text.substr(key.size() + 1), path,
                          json.contains("algo_name") ? json_text(json.at("algo_name")) : "no algorithm");
    } else if (key == "dataset") {
      const bool rlds = has_path(json, "train.data_format") && json["train"]["data_format"] == "droid_rlds";
      if (!rlds && has_path(json, "train.data_path")) set_path(json, "train.data_path", nullptr);
      set_path(json, rlds ? "train.data_path" : "train.data", value);
    } else if (value == true) {
      const std::filesystem::path out = std::filesystem::temp_directory_path() / "tmp_trained_models";
      for (const auto& [setting, number] :
           {std::pair{"experiment.epoch_every_n_steps", 3}, std::pair{"train.num_epochs", 2},
            std::pair{"experiment.rollout.rate", 1}, std::pair{"experiment.rollout.n", 2},
            std::pair{"experiment.rollout.horizon", 10}})
        set_path(json, setting, number);
      set_path(json, "train.output_dir", bytes_to_utf8(out.string()));
    }
  }
}

}  // namespace

std::string near_robomimic_key(const std::string& key) {
  if (!key.starts_with("train.")) return "";
  const std::string near = config::nearest(key.substr(6), train_keys());
  return near.empty() ? "" : "train." + near;
}

bool is_robomimic_word(const Json& json, const std::string& key) {
  return is_script_flag(key) || key.starts_with("train.optim_params.") || is_robomimic_key(json, key);
}

std::vector<std::string> lay_over(Json& json, const std::vector<std::string>& overrides, const std::string& path) {
  std::vector<std::string> of_job;
  set_script_flags(json, overrides, path);
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    std::string key = text.substr(0, equals);
    if (is_script_flag(key)) continue;
    if (key.starts_with("train.optim_params.")) key = "algo." + key.substr(6);
    if (equals != std::string::npos && is_robomimic_key(json, key))
      set_path(json, key, value_of(text.substr(equals + 1)));
    else
      of_job.push_back(text);
  }
  return of_job;
}

}  // namespace cohort::train
