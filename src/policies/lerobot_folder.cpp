#include "policies/lerobot_folder.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "data/robot_statistics.h"
#include "data/robot_windows.h"
#include "data/transforms/component.h"
#include "data/transforms/normalization.h"
#include "policies/algorithm.h"
#include "policies/policy_settings.h"
#include "policies/statistics_of_set.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

namespace cohort::policies {
namespace {

using config::Json;
namespace fs = std::filesystem;

constexpr const char *kConfig = "config.json", *kWeights = "model.safetensors", *kOwn = "cohort.json",
                     *kBefore = "policy_preprocessor", *kAfter = "policy_postprocessor";
constexpr const char *kState = "observation.state", *kEnvironment = "observation.environment_state",
                     *kAction = "action";
constexpr double kEpsilon = 1e-8;  // NormalizerProcessorStep.eps
/// The deviation of a number that never changes: what differs from it all the same is normalised to nearly 0.
constexpr double kNeverChanges = 1e9;

/// As draccus and json.dump(indent=...) write them, a line at the end apart.
std::string text_of(const Json& json, int indent) {
  return json_text(json, indent);
}

Json read_json(const fs::path& path) {
  Json json = try_json<Json>(read_file(path));
  COHORT_THROW_UNLESS(json.is_object(), "{}: is no JSON object", path.string());
  return json;
}

/// A feature: a vector or a camera, as config.json names it.
struct Feature {
  std::string name, kind;  ///< kind: STATE, ENV, VISUAL, ACTION
  std::vector<std::int64_t> shape;
};

std::vector<Feature> features_of(const Json& json, const std::string& source) {
  std::vector<Feature> all;
  for (const auto& [name, value] : json.items()) {
    COHORT_THROW_UNLESS(value.is_object() && value.contains("type") && value.at("type").is_string() &&
                            value.contains("shape") && value.at("shape").is_array(),
                        "{}: the feature {} has no type and shape", source, name);
    Feature feature{.name = name, .kind = value.at("type").get<std::string>(), .shape = {}};
    for (const Json& extent : value.at("shape")) {
      COHORT_THROW_UNLESS(extent.is_number_integer() && extent.get<std::int64_t>() > 0,
                          "{}: the feature {} has the shape {}", source, name, json_text(value.at("shape")));
      feature.shape.push_back(extent.get<std::int64_t>());
    }
    all.push_back(std::move(feature));
  }
  return all;
}

Json json_of(const Feature& feature) {
  return Json{{"type", feature.kind}, {"shape", feature.shape}};
}

/// A pipeline of processors: what of it matters here.
struct Pipeline {
  std::map<std::string, std::string> renamed;  ///< the policy's name by the robot's
  std::map<std::string, std::string> modes;    ///< MEAN_STD, MIN_MAX, ... by kind of feature
  std::map<std::string, at::Tensor> statistics;
  std::string statistics_file;
};

Pipeline read_pipeline(const fs::path& folder, const char* name, const char* normalizer) {
  const fs::path path = folder / (std::string(name) + ".json");
  COHORT_THROW_UNLESS(
      fs::exists(path),
      "{}: is not there, and with it the statistics by which numbers are normalised; folders of LeRobot "
      "before 0.4 get it by `python -m lerobot.processor.migrate_policy_normalization "
      "--pretrained-path {}`",
      path.string(), folder.string());
  const Json json = read_json(path);
  COHORT_THROW_UNLESS(json.contains("steps") && json.at("steps").is_array(), "{}: lists no steps", path.string());
  Pipeline pipeline;
  std::size_t number = 0;
  bool normalises = false;
  for (const Json& step : json.at("steps")) {
    const std::string kind = step.value("registry_name", step.value("class", std::string("without a name")));
    const Json settings = step.value("config", Json::object());
    if (kind == "rename_observations_processor") {
      const Json names = settings.value("rename_map", Json::object());
      for (const auto& [robot, policy] : names.items()) pipeline.renamed[robot] = policy.get<std::string>();
    } else if (kind == normalizer) {
      normalises = true;
      const Json modes = settings.value("norm_map", Json::object());
      for (const auto& [feature, mode] : modes.items()) pipeline.modes[feature] = mode.get<std::string>();
      COHORT_THROW_UNLESS(!settings.contains("normalize_observation_keys"),
                          "{}: step {}, {}, normalises chosen observations only (normalize_observation_keys), which is "
                          "not done here",
                          path.string(), number, kind);
      const std::string file = step.value("state_file", std::string());
      COHORT_THROW_UNLESS(!file.empty() && fs::exists(folder / file),
                          "{}: the statistics of step {}, {}, are missing: {}; save the processors again with the data "
                          "set's statistics (make_pre_post_processors(..., dataset_stats=dataset.meta.stats))",
                          path.string(), number, kind,
                          file.empty() ? "it names no state_file" : format("there is no {}", file));
      pipeline.statistics_file = (folder / file).string();
      for (auto& [key, tensor] : weights::read_safetensors(folder / file).tensors)
        pipeline.statistics.emplace(key, tensor.to(at::kDouble).flatten().contiguous());
    } else {
      COHORT_THROW_UNLESS(kind == "to_batch_processor" || kind == "device_processor",
                          "{}: step {} is {}, which is not done here; known are rename_observations_processor, "
                          "to_batch_processor, device_processor and {}",
                          path.string(), number, kind, normalizer);
    }
    ++number;
  }
  COHORT_THROW_UNLESS(normalises, "{}: has no step {}, so the numbers would have no units", path.string(), normalizer);
  return pipeline;
}

/// "normal" and the like for LeRobot's NormalizationMode.
std::string kind_of(const Pipeline& pipeline, const std::string& feature_kind, const std::string& source) {
  const auto found = pipeline.modes.find(feature_kind);
  const std::string mode = found == pipeline.modes.end() ? "IDENTITY" : found->second;
  if (mode == "IDENTITY") return "none";
  if (mode == "MEAN_STD") return "normal";
  if (mode == "MIN_MAX") return "bounds";
  if (mode == "QUANTILES") return "quantiles";
  throw Error(format("{}: {} are normalised by {}; known are IDENTITY, MEAN_STD, MIN_MAX and QUANTILES", source,
                     feature_kind, mode));
}

/// The numbers of a statistic; throws Error where they are not there, or of another width.
std::vector<double> numbers_of(const Pipeline& pipeline, const std::string& feature, const char* statistic,
                               std::int64_t width) {
  const std::string key = feature + "." + statistic;
  const auto found = pipeline.statistics.find(key);
  COHORT_THROW_UNLESS(found != pipeline.statistics.end(),
                      "{}: has no {}, and LeRobot would leave {} as it is without a word; save the processors again "
                      "with the data set's statistics",
                      pipeline.statistics_file, key, feature);
  COHORT_THROW_UNLESS(found->second.numel() == width,
                      "{}: {} has {} numbers, but the feature has {}: the statistics are of another data set; save the "
                      "processors again with those of the data that it was trained on",
                      pipeline.statistics_file, key, found->second.numel(), width);
  const double* values = found->second.const_data_ptr<double>();
  return {values, values + width};
}

void append(std::vector<double>& list, const std::vector<double>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

/// Adds the statistics of a vector by which `kind` gives what LeRobot does: nothing else is known of the data.
void add_statistics(data::VectorStatistics& all, const Pipeline& pipeline, const std::string& feature,
                    const std::string& kind, std::int64_t width) {
  std::vector<double> mean(static_cast<std::size_t>(width), 0), std(mean.size(), 1), low(mean.size(), -1),
      high(mean.size(), 1);
  if (kind == "normal") {
    mean = numbers_of(pipeline, feature, "mean", width);
    std = numbers_of(pipeline, feature, "std", width);
    for (std::size_t i = 0; i < mean.size(); ++i) low[i] = mean[i] - std[i], high[i] = mean[i] + std[i];
  } else if (kind != "none") {
    low = numbers_of(pipeline, feature, kind == "bounds" ? "min" : "q01", width);
    high = numbers_of(pipeline, feature, kind == "bounds" ? "max" : "q99", width);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (low[i] + high[i]) / 2, std[i] = (high[i] - low[i]) / 2;
  }
  append(all.mean, mean);
  append(all.std, std);
  for (std::vector<double>* list : {&all.min, &all.q01}) append(*list, low);
  for (std::vector<double>* list : {&all.max, &all.q99}) append(*list, high);
}

/// Which observations of the policy one of LeRobot's vectors is made of: observation.state of eef_pos, gripper.
struct Group {
  std::string kind;                  ///< STATE, ENV
  std::vector<std::size_t> members;  ///< among low_dim, in the network's order
  std::int64_t width = 0;
};

/// The policy's settings and those of its data, bound as a run's configuration binds them.
struct Settings {
  data::RobotDataSettings data;
  PolicySettings model;
  bool combine_statistics = false;
  config::Fields fields;

  Settings() {
    fields.section("data", [&] {
      data::describe(fields, data);
      fields.add("combine_statistics", combine_statistics, "");
    });
    fields.section("model", [&] { describe(fields, model); });
  }
  void take(const Json& json, const std::string& source) {
    Json sections = Json::object();
    for (const char* name : {"data", "model"}) {
      COHORT_THROW_UNLESS(json.contains(name), "{}: has no section {}", source, name);
      sections[name] = json.at(name);
    }
    fields.apply_json(sections, source);
    model = without_files(std::move(model));
  }
};

const Algorithm& algorithm_of_type(const std::string& type, const std::string& source) {
  std::string known;
  for (const Algorithm* one : algorithms()) {
    if (one->lerobot_type().empty()) continue;
    if (one->lerobot_type() == type) return *one;
    known += (known.empty() ? "" : ", ") + one->lerobot_type();
  }
  throw Error(format("{}: its type is {}, and of LeRobot's policies these are known here: {}", source, type, known));
}

/// The vectors as LeRobot has them.
std::vector<Group> groups_of(const PolicySettings& model, const std::vector<std::string>& environment) {
  std::vector<Group> groups;
  for (const char* kind : {"STATE", "ENV"}) {
    Group group{.kind = kind, .members = {}};
    for (const models::ObservationSettings& o : observations_of(model)) {
      const auto place = std::find(model.low_dim.begin(), model.low_dim.end(), o.name);
      if (place == model.low_dim.end()) continue;
      const bool of_environment = std::find(environment.begin(), environment.end(), o.name) != environment.end();
      if (of_environment != (group.kind == "ENV")) continue;
      group.members.push_back(static_cast<std::size_t>(place - model.low_dim.begin()));
      group.width += o.shape[0];
    }
    if (!group.members.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

/// Cameras in the network's order.
std::vector<std::string> cameras_of(const PolicySettings& model) {
  std::vector<std::string> names;
  for (const models::ObservationSettings& o : observations_of(model))
    if (o.is_camera()) names.push_back(o.name);
  return names;
}

/// "observation.images.front" of "observation/front_image" and the like; names that are LeRobot's stay.
std::string camera_feature(const std::string& name) {
  if (name.starts_with("observation.image")) return name;
  const std::size_t cut = name.find_last_of("/.");
  return "observation.images." + (cut == std::string::npos ? name : name.substr(cut + 1));
}

std::string names_of(const std::vector<Feature>& features) {
  std::vector<std::string> names;
  for (const Feature& feature : features) names.push_back(feature.name);
  return join(names, ", ");
}

/// Both pipelines hold the action's statistics: two sets of data that were mixed up differ here.
void check_same_action(const Pipeline& before, const Pipeline& after) {
  for (const char* statistic : {"mean", "std", "min", "max"}) {
    const std::string key = std::string(kAction) + "." + statistic;
    const auto one = before.statistics.find(key), other = after.statistics.find(key);
    if (one == before.statistics.end() || other == after.statistics.end()) continue;
    COHORT_THROW_UNLESS(
        at::equal(one->second, other->second),
        "{} and {} have another {}: one of them is stale; save both processors again with the statistics "
        "of the data that the policy was trained on",
        before.statistics_file, after.statistics_file, key);
  }
}

/// `never`: the deviation of what never changes.
void add_scales(weights::NamedTensors& tensors, const std::string& feature,
                const std::vector<data::Normalizer::Scale>& scales, double never) {
  std::vector<float> mean, std;
  for (const data::Normalizer::Scale& one : scales) {
    mean.push_back(static_cast<float>(one.mean));
    // LeRobot adds its epsilon where it divides.
    std.push_back(static_cast<float>(one.std == 0 ? never : one.std - kEpsilon));
  }
  tensors.emplace_back(feature + ".mean", torch::tensor(mean));
  tensors.emplace_back(feature + ".std", torch::tensor(std));
}

/// Features of config.json in the settings of a policy that has none of its own: one observation for each.
void take_features(Settings& s, const std::vector<Feature>& inputs, const Pipeline& before,
                   std::vector<std::string>& environment) {
  const auto robots_name = [&](const std::string& feature) {
    for (const auto& [robot, policy] : before.renamed)
      if (policy == feature) return robot;
    return feature;
  };
  std::vector<Feature> ordered = inputs;
  // Networks that join vectors have the robot's first, whatever the order of the file.
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Feature& a, const Feature& b) { return a.kind != "ENV" && b.kind == "ENV"; });
  for (const Feature& feature : ordered) {
    if (feature.kind == "VISUAL") {
      s.model.rgb.push_back(feature.name);
      s.data.images.push_back(robots_name(feature.name));
      continue;
    }
    s.model.low_dim.push_back(feature.name);
    s.model.low_dim_widths.push_back(static_cast<int>(feature.shape[0]));
    s.data.proprio.push_back(robots_name(feature.name));
    s.model.recorded_fields.names.push_back(s.data.proprio.back());
    s.model.recorded_fields.widths.push_back(s.model.low_dim_widths.back());
    s.model.recorded_fields.elements.emplace_back();
    if (feature.kind == "ENV") environment.push_back(feature.name);
  }
  s.data.actions = {kAction};
}

}  // namespace

bool is_lerobot_folder(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path / kConfig, error)) return false;
  const Json json = try_json<Json>(read_file(path / kConfig));
  return json.is_object() && json.contains("type") && json.contains("input_features");
}

weights::CheckpointContent read_lerobot_folder(const fs::path& folder) {
  const std::string source = (folder / kConfig).string();
  LeRobotPolicy policy{
      .config = read_json(folder / kConfig), .environment_state = {}, .image_mean = {}, .image_std = {}};
  COHORT_THROW_UNLESS(policy.config.contains("type") && policy.config.at("type").is_string(), "{}: has no type",
                      source);
  const Algorithm& algorithm = algorithm_of_type(policy.config.at("type").get<std::string>(), source);
  const std::vector<Feature> inputs = features_of(policy.config.value("input_features", Json::object()), source),
                             outputs = features_of(policy.config.value("output_features", Json::object()), source);
  COHORT_THROW_UNLESS(outputs.size() == 1 && outputs[0].name == kAction && outputs[0].shape.size() == 1,
                      "{}: output_features must be one vector, action", source);
  std::vector<Feature> cameras, vectors;
  for (const Feature& feature : inputs) {
    const bool picture = feature.kind == "VISUAL";
    COHORT_THROW_UNLESS(picture ? feature.shape.size() == 3 && feature.shape[0] == 3
                                : (feature.kind == "STATE" || feature.kind == "ENV") && feature.shape.size() == 1,
                        "{}: the input {} is {} of {} dimensions; known are vectors (STATE, ENV) and colour pictures "
                        "(VISUAL, [3, height, width])",
                        source, feature.name, feature.kind, feature.shape.size());
    COHORT_THROW_UNLESS(!picture || cameras.empty() || cameras[0].shape == feature.shape,
                        "{}: the pictures {} and {} differ in size, which is not done here", source, cameras[0].name,
                        feature.name);
    for (const Feature& other : vectors)
      COHORT_THROW_UNLESS(other.kind != feature.kind, "{}: {} and {} are both {}, of which there is one", source,
                          other.name, feature.name, feature.kind);
    (picture ? cameras : vectors).push_back(feature);
  }
  const Pipeline before = read_pipeline(folder, kBefore, "normalizer_processor"),
                 after = read_pipeline(folder, kAfter, "unnormalizer_processor");

  Settings s;
  const bool own = fs::exists(folder / kOwn);
  if (own) {
    const Json json = read_json(folder / kOwn);
    s.take(json, (folder / kOwn).string());
    for (const Json& name : json.value("environment_state", Json::array()))
      policy.environment_state.push_back(name.get<std::string>());
  } else {
    take_features(s, inputs, before, policy.environment_state);
  }
  s.model.algorithm = algorithm.name();
  if (!cameras.empty()) {
    s.model.image_size = {static_cast<int>(cameras[0].shape[1]), static_cast<int>(cameras[0].shape[2])};
    if (!own) {
      s.model.recorded.size = s.model.image_size;
      s.data.image_transforms = {format("resize({}, {})", cameras[0].shape[1], cameras[0].shape[2])};
    }
  }
  s.model.action_width = static_cast<int>(outputs[0].shape[0]);
  if (!own) {
    s.model.action_widths = {s.model.action_width};
    s.model.recorded_fields.names.emplace_back(kAction);
    s.model.recorded_fields.widths.push_back(s.model.action_width);
    s.model.recorded_fields.elements.emplace_back();
  }

  // What the numbers mean.
  data::RobotStatistics statistics;
  const std::vector<Group> groups = groups_of(s.model, policy.environment_state);
  std::vector<std::string> kinds(s.model.low_dim.size(), "none");
  std::vector<data::VectorStatistics> parts(s.model.low_dim.size());
  COHORT_THROW_UNLESS(groups.size() == vectors.size(), "{}: has {} vectors among its inputs, but {} has {}", source,
                      vectors.size(), (folder / kOwn).string(), groups.size());
  for (const Group& group : groups) {
    const auto feature =
        std::find_if(vectors.begin(), vectors.end(), [&](const Feature& f) { return f.kind == group.kind; });
    COHORT_THROW_UNLESS(feature != vectors.end() && feature->shape[0] == group.width,
                        "{}: {} is no vector of {} numbers, which {} says: the files were written apart; write the "
                        "folder anew, or remove {}, which only says what the numbers are called",
                        source, feature == vectors.end() ? group.kind : feature->name, group.width,
                        (folder / kOwn).string(), kOwn);
    const std::string kind = kind_of(before, group.kind, (folder / kBefore).string() + ".json");
    data::VectorStatistics all;
    add_statistics(all, before, feature->name, kind, group.width);
    std::ptrdiff_t first = 0;
    for (const std::size_t member : group.members) {
      const std::ptrdiff_t end = first + s.model.low_dim_widths[member];
      kinds[member] = kind;
      const auto part = [&](const std::vector<double>& list) {
        return std::vector<double>(list.begin() + first, list.begin() + end);
      };
      parts[member] = {.mean = part(all.mean),
                       .std = part(all.std),
                       .min = part(all.min),
                       .max = part(all.max),
                       .q01 = part(all.q01),
                       .q99 = part(all.q99)};
      first = end;
    }
  }
  for (const data::VectorStatistics& part : parts) {
    append(statistics.proprio.mean, part.mean);
    append(statistics.proprio.std, part.std);
    append(statistics.proprio.min, part.min);
    append(statistics.proprio.max, part.max);
    append(statistics.proprio.q01, part.q01);
    append(statistics.proprio.q99, part.q99);
  }
  s.data.proprio_normalization = kinds.empty() ? std::vector<std::string>{"none"} : kinds;
  const std::string of_action = kind_of(after, "ACTION", (folder / kAfter).string() + ".json");
  add_statistics(statistics.action, after, kAction, of_action, s.model.action_width);
  s.data.action_normalization = {of_action};
  check_same_action(before, after);
  s.data.constant_elements = "zero";

  const std::vector<std::string> own_cameras = cameras_of(s.model);
  for (std::size_t i = 0; i < std::max(cameras.size(), own_cameras.size()); ++i)
    COHORT_THROW_UNLESS(
        i < cameras.size() && i < own_cameras.size() && camera_feature(own_cameras[i]) == cameras[i].name,
        "{}: the cameras are {}, but {} has {}: another order or other cameras; write the folder anew, or remove {}",
        source, names_of(cameras), (folder / kOwn).string(), join(own_cameras, ", "), kOwn);
  if (!cameras.empty()) {
    const std::string kind = kind_of(before, "VISUAL", (folder / kBefore).string() + ".json");
    COHORT_THROW_UNLESS(kind == "none" || kind == "normal",
                        "{}: pictures are normalised by {}; known are IDENTITY and MEAN_STD",
                        (folder / kBefore).string() + ".json", before.modes.at("VISUAL"));
    for (const Feature& camera : cameras) {
      append(policy.image_mean,
             kind == "none" ? std::vector<double>(3, 0) : numbers_of(before, camera.name, "mean", 3));
      append(policy.image_std, kind == "none" ? std::vector<double>(3, 1) : numbers_of(before, camera.name, "std", 3));
    }
  }
  try {
    algorithm.read_lerobot(policy, s.model);
    check(s.model);
  } catch (const Error& e) {
    throw Error(format("{}: {}", source, e.what()));
  }

  weights::CheckpointContent content;
  Json configuration = s.fields.to_json();
  configuration["job"] = "policy";
  content.state.configuration = json_text(configuration);
  content.dataset_statistics = json_text(data::to_json(statistics));
  const std::string weights_file = (folder / kWeights).string();
  try {
    content.model = algorithm.weights_of_lerobot(s.model, weights::read_safetensors(weights_file).tensors);
  } catch (const Error& e) {
    const std::string text = e.what();
    throw Error(text.find(weights_file) == std::string::npos ? format("{}: {}", weights_file, text) : text);
  }
  return content;
}

std::vector<std::string> write_lerobot_folder(const weights::CheckpointContent& checkpoint, const std::string& source,
                                              const fs::path& folder, const LeRobotWriting& wanted) {
  const Json configuration = try_json<Json>(checkpoint.state.configuration);
  COHORT_THROW_UNLESS(configuration.is_object() && configuration.contains(Json::json_pointer("/model/algorithm")),
                      "{} is no checkpoint of a policy", source);
  Settings s;
  s.take(configuration, source);
  const Algorithm& algorithm = algorithm_of(s.model);
  std::string known;
  for (const Algorithm* one : algorithms())
    if (!one->lerobot_type().empty()) known += (known.empty() ? "" : ", ") + one->name();
  COHORT_THROW_UNLESS(!algorithm.lerobot_type().empty(),
                      "{}: is of {}, which LeRobot has not with the same weights; those that it has: {}", source,
                      s.model.algorithm, known);
  std::error_code error;
  COHORT_THROW_UNLESS(!fs::exists(folder, error) || fs::is_empty(folder, error),
                      "{}: holds files already; name a folder that is empty or not there", folder.string());

  LeRobotPolicy policy;
  // Its type first: draccus looks for it.
  policy.config["type"] = algorithm.lerobot_type();
  policy.config["n_obs_steps"] = 1;
  policy.environment_state = wanted.environment_state;
  algorithm.write_lerobot(s.model, policy);
  for (const std::string& name : policy.environment_state)
    COHORT_THROW_UNLESS(std::find(s.model.low_dim.begin(), s.model.low_dim.end(), name) != s.model.low_dim.end(),
                        "{}: the environment's state names {}, but the policy sees {}", source, name,
                        join(s.model.low_dim, ", "));
  const data::RobotStatistics statistics =
      statistics_of_set(checkpoint.dataset_statistics, wanted.data_set, source + "/" + weights::kStatisticsFile);
  const std::vector<std::int64_t> widths(s.model.low_dim_widths.begin(), s.model.low_dim_widths.end()),
      action_widths(s.model.action_widths.begin(), s.model.action_widths.end());
  std::vector<data::Normalizer::Scale> numbers;
  if (!widths.empty())
    numbers = data::Normalizer(s.data.proprio_normalization, widths, statistics.proprio, s.data.constant_elements,
                               source + ": proprio")
                  .scales();
  const std::vector<data::Normalizer::Scale> actions =
      data::Normalizer(s.data.action_normalization, action_widths, statistics.action, s.data.constant_elements,
                       source + ": actions")
          .scales();

  std::vector<std::string> lines;
  std::vector<Feature> inputs;
  weights::NamedTensors before, after;
  Json modes = {{"VISUAL", "MEAN_STD"}, {"STATE", "MEAN_STD"}, {"ACTION", "MEAN_STD"}};
  for (const Group& group : groups_of(s.model, policy.environment_state)) {
    const bool environment = group.kind == "ENV";
    inputs.push_back({.name = environment ? kEnvironment : kState, .kind = group.kind, .shape = {group.width}});
    std::vector<data::Normalizer::Scale> scales;
    std::string line;
    for (const std::size_t member : group.members) {
      std::ptrdiff_t first = 0;
      for (std::size_t i = 0; i < member; ++i) first += s.model.low_dim_widths[i];
      scales.insert(scales.end(), numbers.begin() + first, numbers.begin() + first + s.model.low_dim_widths[member]);
      line += format("{}{} ({})", line.empty() ? "" : ", ", s.data.proprio.at(member), s.model.low_dim_widths[member]);
    }
    lines.push_back(format("{}: {}", inputs.back().name, line));
    const bool as_it_is =
        std::all_of(scales.begin(), scales.end(), [](const auto& one) { return one.mean == 0 && one.std == 1; });
    // LeRobot's own ACT leaves the environment's state as it is, and says nothing of it.
    if (environment && as_it_is) continue;
    if (environment) modes["ENV"] = "MEAN_STD";
    add_scales(before, inputs.back().name, scales, kNeverChanges);
  }
  const std::vector<std::string> cameras = cameras_of(s.model);
  for (std::size_t i = 0; i < cameras.size(); ++i) {
    const std::string name = camera_feature(cameras[i]);
    for (const Feature& other : inputs)
      COHORT_THROW_UNLESS(other.name != name, "{}: two cameras would be called {}; name them otherwise with model.rgb",
                          source, name);
    inputs.push_back({.name = name, .kind = "VISUAL", .shape = {3, s.model.image_size[0], s.model.image_size[1]}});
    const auto colours = [&](const std::vector<double>& all) {
      const std::size_t first = all.size() == 3 ? 0 : 3 * i;
      return torch::tensor(std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                               all.begin() + static_cast<std::ptrdiff_t>(first) + 3))
          .to(at::kFloat)
          .view({3, 1, 1});
    };
    before.emplace_back(name + ".mean", colours(policy.image_mean));
    before.emplace_back(name + ".std", colours(policy.image_std));
    lines.push_back(format("{}: {}, {} x {} px, as its colours are after {}", name, cameras[i], s.model.image_size[0],
                           s.model.image_size[1], join(s.data.image_transforms, ", ")));
  }
  COHORT_THROW_UNLESS(!cameras.empty() || !policy.environment_state.empty(),
                      "{}: LeRobot's policies must see a picture or the environment's state, and this one sees the "
                      "robot's state alone; "
                      "train it with {}.environment_state=[NAME,...], what no robot measures",
                      source, algorithm.section());
  add_scales(before, kAction, actions, 0);
  add_scales(after, kAction, actions, 0);
  lines.push_back(format("action: {}", join(s.data.actions, ", ")));
  const Feature action{.name = kAction, .kind = "ACTION", .shape = {s.model.action_width}};

  Json input_features = Json::object(), all_features = Json::object();
  for (const Feature& feature : inputs) input_features[feature.name] = json_of(feature);
  all_features = input_features;
  all_features[kAction] = json_of(action);
  policy.config["input_features"] = input_features;
  policy.config["output_features"] = Json{{kAction, json_of(action)}};
  policy.config["normalization_mapping"] = modes;
  // What lerobot finds out or fills in itself; its loader wants the fields.
  for (const char* name : {"device", "repo_id", "private", "tags", "license", "pretrained_path"})
    policy.config[name] = nullptr;
  for (const char* name : {"use_amp", "use_peft", "push_to_hub"}) policy.config[name] = false;

  const auto step = [](const char* name, Json settings) {
    return Json{{"registry_name", name}, {"config", std::move(settings)}};
  };
  const Json device{{"device", "cpu"}, {"float_dtype", nullptr}};
  const auto normalizer = [&](const char* name, const Json& features, const std::string& file) {
    Json one = step(name, Json{{"eps", kEpsilon}, {"features", features}, {"norm_map", modes}});
    one["state_file"] = file;
    return one;
  };
  const std::string state_before = format("{}_step_3_normalizer_processor.safetensors", kBefore),
                    state_after = format("{}_step_0_unnormalizer_processor.safetensors", kAfter);
  Json first{{"name", kBefore}, {"steps", Json::array()}}, second{{"name", kAfter}, {"steps", Json::array()}};
  first["steps"].push_back(step("rename_observations_processor", Json{{"rename_map", Json::object()}}));
  first["steps"].push_back(step("to_batch_processor", Json::object()));
  first["steps"].push_back(step("device_processor", device));
  first["steps"].push_back(normalizer("normalizer_processor", all_features, state_before));
  second["steps"].push_back(normalizer("unnormalizer_processor", Json{{kAction, json_of(action)}}, state_after));
  second["steps"].push_back(step("device_processor", device));
  Json own = Json::object();
  for (const char* name : {"data", "model"}) own[name] = configuration.at(name);
  own["environment_state"] = policy.environment_state;

  const weights::NamedTensors weights =
      algorithm.lerobot_weights(s.model, checkpoint.ema.empty() ? checkpoint.model : checkpoint.ema);
  fs::create_directories(folder);
  weights::write_safetensors(folder / kWeights, weights, {{"format", "pt"}});
  weights::write_safetensors(folder / state_before, before);
  weights::write_safetensors(folder / state_after, after);
  write_file_atomically(folder / (std::string(kBefore) + ".json"), text_of(first, 2));
  write_file_atomically(folder / (std::string(kAfter) + ".json"), text_of(second, 2));
  write_file_atomically(folder / kOwn, text_of(own, 2));
  // Last: without it nobody takes the folder for one.
  write_file_atomically(folder / kConfig, text_of(policy.config, 4));
  return lines;
}

}  // namespace cohort::policies
