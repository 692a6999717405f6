#include "policies/rdt/config.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/typed_text.h"
#include "core/yaml_file.h"
#include "policies/rdt/state_vector.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;
using config::Json;

/// Keys whose value is that of one setting.
const std::map<std::string, std::string>& setting_of_key() {
  static const std::map<std::string, std::string> all{
      {"common.img_history_size", "model.rdt.img_history_size"},
      {"common.action_chunk_size", "model.rdt.horizon"},
      {"common.num_cameras", "model.rdt.num_cameras"},
      {"dataset.tokenizer_max_length", "model.rdt.max_lang_cond_len"},
      {"model.lang_adaptor", "model.rdt.lang_adaptor"},
      {"model.img_adaptor", "model.rdt.img_adaptor"},
      {"model.state_adaptor", "model.rdt.state_adaptor"},
      {"model.lang_token_dim", "model.rdt.lang_token_dim"},
      {"model.img_token_dim", "model.rdt.img_token_dim"},
      {"model.rdt.hidden_size", "model.rdt.hidden_size"},
      {"model.rdt.depth", "model.rdt.depth"},
      {"model.rdt.num_heads", "model.rdt.num_heads"},
      {"model.noise_scheduler.num_train_timesteps", "model.rdt.schedule.num_train_timesteps"},
      {"model.noise_scheduler.num_inference_timesteps", "model.rdt.sampler.num_inference_timesteps"},
      {"model.noise_scheduler.beta_schedule", "model.rdt.schedule.beta_schedule"},
      {"model.noise_scheduler.prediction_type", "model.rdt.schedule.prediction_type"},
      {"model.ema.update_after_step", "train.ema.update_after_step"},
      {"model.ema.inv_gamma", "train.ema.inv_gamma"},
      {"model.ema.power", "train.ema.power"},
      {"model.ema.min_value", "train.ema.min_decay"},
      {"model.ema.max_value", "train.ema.max_decay"}};
  return all;
}

/// Keys that can have one value only.
const std::map<std::string, Json>& only_value_of_key() {
  static const std::map<std::string, Json> all{
      {"common.state_dim", models::kStateSlots}, {"model.state_token_dim", models::kStateSlots},
      {"dataset.image_aspect_ratio", "pad"},     {"model.rdt.cond_pos_embed_type", "multimodal"},
      {"model.noise_scheduler.type", "ddpm"},    {"model.noise_scheduler.clip_sample", false}};
  return all;
}

Json json_file(const fs::path& file) {
  Json json = try_json<Json>(read_file(file));
  COHORT_THROW_UNLESS(!json.is_discarded(), "{}: is no JSON", file.string());
  return json;
}

class ConfigReader {
 public:
  explicit ConfigReader(const RdtConfigRequest& request)
      : request_(request), folder_(fs::path(request.path).parent_path()) {
    const Json yaml = read_yaml_file(request.path);
    COHORT_THROW_UNLESS(yaml.is_object(), "{}: is no configuration: it has no keys", request.path);
    walk(yaml, "");
    COHORT_THROW_UNLESS(refused_.empty(), "{}: keys that cannot be honoured:{}", request.path, refused_);
    lengths();
    data_sets();
  }
  RdtConfig result() && { return std::move(config_); }

 private:
  void set(const std::string& name, const std::string& value) { config_.overrides.push_back(name + "=" + value); }
  void refuse(const std::string& key, const std::string& why) { refused_ += format("\n  {}: {}", key, why); }

  void walk(const Json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = prefix + name;
      if (value.is_object())
        walk(value, key + ".");
      else
        take(key, value);
    }
  }

  void take(const std::string& key, const Json& value) {
    const std::string text = typed_text(value);
    if (const auto same = setting_of_key().find(key); same != setting_of_key().end()) {
      set(same->second, text);
    } else if (const auto only = only_value_of_key().find(key); only != only_value_of_key().end()) {
      if (value != only->second)
        refuse(key, format("is {}, but only {} is done", json_text(value), json_text(only->second)));
    } else if (key == "dataset.epsd_len_thresh_low" || key == "dataset.epsd_len_thresh_high") {
      if (!value.is_number_integer() || value < 1)
        return refuse(key, format("is {}, but must be a number of steps", text));
      (key.ends_with("low") ? shortest_ : longest_) = value.get<std::int64_t>();
    } else if (key == "dataset.buf_path" || key == "dataset.buf_num_chunks" || key == "dataset.buf_chunk_size") {
      config_.notes.push_back(
          format("{}: {} has no effect: samples are read from the data themselves, there is no buffer on the disk",
                 request_.path, key));
    } else {
      std::vector<std::string> known;
      for (const auto& [name, setting] : setting_of_key()) known.push_back(name);
      for (const auto& [name, setting] : only_value_of_key()) known.push_back(name);
      const std::string near = config::nearest(key, known);
      refuse(key, near.empty() ? "is not known" : format("is not known; did you mean '{}'?", near));
    }
  }

  void lengths() {
    if (request_.load_from_hdf5) {
      if (shortest_ > 0 || longest_ > 0)
        config_.notes.push_back(format(
            "{}: dataset.epsd_len_thresh_low and _high have no effect with --load_from_hdf5, as in the reference; "
            "data.filters=[\"min_steps(N)\"] leaves short episodes out",
            request_.path));
      return;
    }
    if (shortest_ > 0) set("data.filters", format("[\"min_steps({})\"]", shortest_));
    if (longest_ > 0) set("data.windows_per_episode", std::to_string(longest_));
  }

  /// A file beside base.yaml; nothing, with a line, where it is not there.
  std::optional<Json> beside(const std::string& name, const char* without) {
    const fs::path file = folder_ / name;
    std::error_code error;
    if (fs::is_regular_file(file, error)) return json_file(file);
    config_.notes.push_back(format("{}: is not there: {}", file.string(), without));
    return std::nullopt;
  }

  const Json& entry(const Json& json, const std::string& file, const std::string& name, const std::string& list) const {
    COHORT_THROW_UNLESS(json.is_object() && json.contains(name),
                        "{}: does not name the data set {}, which {} lists: add it", (folder_ / file).string(), name,
                        list);
    return json.at(name);
  }

  void data_sets() {
    COHORT_THROW_UNLESS(request_.dataset_type == "finetune" || request_.dataset_type == "pretrain",
                        "--dataset_type={}: there are finetune and pretrain", request_.dataset_type);
    const std::string list_name = request_.dataset_type + "_datasets.json";
    const std::optional<Json> list = beside(list_name, "data.paths, data.weights and model.rdt.ctrl_freq say it all");
    if (!list) return;
    const std::string list_path = (folder_ / list_name).string();
    COHORT_THROW_UNLESS(list->is_array() && !list->empty() &&
                            std::all_of(list->begin(), list->end(), [](const Json& name) { return name.is_string(); }),
                        "{}: is no list of names of data sets", list_path);
    const auto names = list->get<std::vector<std::string>>();
    set("model.rdt.data_sets", json_text(*list));
    if (const auto json = beside("dataset_control_freq.json", "model.rdt.ctrl_freq says it")) {
      Json all = Json::array();
      for (const std::string& name : names) {
        const Json& value = entry(*json, "dataset_control_freq.json", name, list_path);
        COHORT_THROW_UNLESS(value.is_number() && value >= 0, "{}: {} = {} is no frequency",
                            (folder_ / "dataset_control_freq.json").string(), name, json_text(value));
        all.push_back(value);
      }
      set("model.rdt.ctrl_freq", json_text(all.front()));
      if (std::any_of(all.begin(), all.end(), [&](const Json& value) { return value != all.front(); }))
        set("model.rdt.ctrl_freqs", json_text(all));
    }
    if (names.size() > 1) {
      const std::string file = request_.dataset_type + "_sample_weights.json";
      if (const auto json = beside(file, "each data set is drawn from by its number of samples")) {
        Json all = Json::array();
        for (const std::string& name : names) {
          all.push_back(entry(*json, file, name, list_path));
          COHORT_THROW_UNLESS(all.back().is_number(), "{}: {} = {} is no weight", (folder_ / file).string(), name,
                              json_text(all.back()));
        }
        set("data.weights", json_text(all));
      }
    }
    images(names, list_path);
    std::error_code error;
    if (fs::is_regular_file(folder_ / "dataset_stat.json", error))
      set("model.rdt.dataset_stat", (folder_ / "dataset_stat.json").string());
    else
      config_.notes.push_back(format("{}: is not there: the state's mean is computed from the data",
                                     (folder_ / "dataset_stat.json").string()));
  }

  /// dataset_img_keys.json: of RLDS data, the places of cameras by their keys.
  void images(const std::vector<std::string>& names, const std::string& list_path) {
    if (request_.names_images || request_.load_from_hdf5) return;
    constexpr const char* kFile = "dataset_img_keys.json";
    const auto json = beside(kFile, "data.images names the cameras");
    if (!json) return;
    std::optional<Json> first;
    for (const std::string& name : names) {
      const Json& value = entry(*json, kFile, name, list_path);
      const std::string where = format("{}: {}", (folder_ / kFile).string(), name);
      COHORT_THROW_UNLESS(value.is_object() && value.contains("image_keys") && value["image_keys"].is_array() &&
                              value.contains("image_mask") && value["image_mask"].is_array() &&
                              value["image_keys"].size() == value["image_mask"].size(),
                          "{}: image_keys and image_mask are no lists of one length", where);
      Json cameras = Json::array();
      bool gap = false;
      for (std::size_t i = 0; i < value["image_keys"].size(); ++i) {
        COHORT_THROW_UNLESS(value["image_keys"][i].is_string(), "{}: image_keys[{}] is no name", where, i);
        if (value["image_mask"][i] != 1) {
          gap = true;
          continue;
        }
        COHORT_THROW_UNLESS(!gap,
                            "{}: place {} has a camera behind an empty place, which is not done: name the cameras in "
                            "their order with data.images",
                            where, i);
        cameras.push_back("observation/" + value["image_keys"][i].get<std::string>());
      }
      COHORT_THROW_UNLESS(!first || *first == cameras,
                          "{}: the cameras are not those of {}: name those that all data sets have with data.images",
                          where, names.front());
      first = cameras;
    }
    set("data.images", json_text(*first));
  }

  RdtConfigRequest request_;
  fs::path folder_;
  RdtConfig config_;
  std::string refused_;
  std::int64_t shortest_ = 0, longest_ = 0;
};

}  // namespace

RdtConfig read_rdt_config(const RdtConfigRequest& request) {
  return ConfigReader(request).result();
}

}  // namespace cohort::policies
