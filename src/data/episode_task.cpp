#include "data/episode_task.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::data {
namespace {

using TaskJson = nlohmann::json;

/// Texts that say what is to be done, the surest first.
constexpr std::array<const char*, 6> kInstructions{"task",
                                                   "language_instruction",
                                                   "observation/natural_language_instruction",
                                                   "natural_language_instruction",
                                                   "instruction",
                                                   "observation/language_instruction"};

/// The first number under one of the keys, wherever it lies in a JSON text.
std::optional<double> find_rate(const TaskJson& json) {
  if (json.is_object()) {
    for (const char* key : {"control_freq", "control_hz", "fps"})
      if (const auto found = json.find(key); found != json.end() && found->is_number() && *found > 0)
        return found->get<double>();
    const auto step = json.find("timestep"), substeps = json.find("substeps");
    if (step != json.end() && substeps != json.end() && step->is_number() && substeps->is_number_integer()) {
      const double period = step->get<double>() * substeps->get<double>();
      // 50, where the product of 0.005 and 4 is not quite 0.02.
      if (period > 0) return std::round(1e6 / period) / 1e6;
    }
  }
  if (json.is_structured())
    for (const TaskJson& child : json)
      if (const auto found = find_rate(child)) return found;
  return std::nullopt;
}

}  // namespace

EpisodeTask::EpisodeTask(const EpisodeSource& source, std::string fixed) : fixed_(std::move(fixed)) {
  if (!fixed_.empty()) return;
  for (const char* name : kInstructions)
    for (std::size_t f = 0; f < source.fields().size(); ++f)
      if (const StepField& field = source.fields()[f];
          field.name == name && field.kind == StepKind::kText && field.fault().empty()) {
        field_ = f;
        return;
      }
  for (const std::string& name : source.metadata_names())
    for (const char* known : {"language_instruction", "instruction"})
      if (name == known || name.ends_with(std::string("/") + known)) {
        metadata_ = name;
        return;
      }
  const auto first = source.open(0);
  for (const std::string& name : source.metadata_names())
    if (first->metadata(name).find("\"language_instruction\"") != std::string_view::npos) {
      json_ = name;
      return;
    }
}

std::string EpisodeTask::at(const Episode& episode, std::int64_t step) const {
  if (field_) return std::string(episode.text(*field_, step));
  if (!metadata_.empty()) return std::string(episode.metadata(metadata_));
  if (json_.empty()) return fixed_;
  const TaskJson json = try_json<TaskJson>(episode.metadata(json_));
  COHORT_THROW_UNLESS(
      json.is_object() && json.contains("language_instruction") && json["language_instruction"].is_string(),
      "{}: {} has no text language_instruction: name the task with --task", episode.location(), json_);
  return json["language_instruction"].get<std::string>();
}

std::optional<StatedRate> stated_rate(const EpisodeSource& source) {
  const auto first = source.open(0);
  for (const std::string& name : source.metadata_names()) {
    const std::string_view text = first->metadata(name);
    double value = 0;
    if (name == "fps" && std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() && value > 0)
      return StatedRate{value, name};
    if (!text.starts_with("{")) continue;
    if (const auto found = find_rate(try_json<TaskJson>(text))) return StatedRate{*found, name};
  }
  return std::nullopt;
}

}  // namespace cohort::data
