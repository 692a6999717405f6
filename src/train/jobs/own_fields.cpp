#include "train/jobs/own_fields.h"

#include <algorithm>

#include "core/error.h"
#include "core/observation_names.h"
#include "data/transforms/call.h"

namespace cohort::train {
namespace {

bool is_real_vector(const data::StepField& field) {
  return field.kind == data::StepKind::kNumber && field.elements() > 0 && field.shape.size() <= 1 &&
         (field.type == ElementType::kFloat32 || field.type == ElementType::kFloat64 ||
          field.type == ElementType::kFloat16 || field.type == ElementType::kBFloat16);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The observations that the data say no robot measures.
std::vector<std::string> privileged_of(const data::EpisodeSource& source) {
  if (source.size() == 0) return {};
  for (const char* name : {"episode_metadata/privileged", "privileged"})
    if (contains(source.metadata_names(), name)) {
      const std::string text(source.open(0)->metadata(name));
      return text.empty() ? std::vector<std::string>() : data::split_text(text, ',');
    }
  return {};
}

/// Why an observation is no picture and no vector that is taken unasked; "": it is not passed over.
std::string why_not_taken(const data::StepField& field) {
  if (field.kind == data::StepKind::kText) return "";
  std::string shape;
  for (const std::int64_t n : field.shape)
    shape += (shape.empty() ? "" : " x ") + (n < 0 ? std::string("?") : std::to_string(n));
  if (field.kind == data::StepKind::kImage)
    return field.fault().empty() ? "a picture of one channel" : "as a picture it " + field.fault();
  if (field.shape.size() > 1) {
    const bool picture = field.shape.size() == 3 && (field.shape[2] == 3 || field.shape[0] == 3);
    return format("{} numbers{}", shape, picture ? ": pictures are uint8 from 0 to 255" : "");
  }
  return is_real_vector(field) ? "" : format("of type {}", field.type_name());
}

}  // namespace

OwnFields own_fields(const data::EpisodeSource& source) {
  OwnFields own;
  std::vector<std::string> actions, vectors;
  bool has_state = false;
  for (const data::StepField& field : source.fields()) {
    // A simulator's or Gymnasium's file has its whole observation as one field.
    const bool whole = field.name == "obs" || field.name == "observation" || field.name == "observations";
    const bool observed = whole || is_observation(field.name);
    const bool coloured = field.shape.size() == 3 && field.shape[2] != 1;
    if (field.kind == data::StepKind::kImage && observed && coloured && field.fault().empty())
      own.images.push_back(field.name);
    else if (const std::string why = observed ? why_not_taken(field) : ""; !why.empty())
      own.not_taken.push_back(format("{}: {}", field.name, why));
    if (!is_real_vector(field)) continue;
    if (!observed && field.name.starts_with("action")) actions.push_back(field.name);
    // A sentence's embedding is what the episode is told, not what the robot measures.
    if (observed && field.name.find("embedding") == std::string::npos) vectors.push_back(field.name);
    has_state = has_state || field.name == "observation.state";
  }
  for (const char* name : {"action", "actions"})
    if (own.actions.empty() && contains(actions, name)) own.actions = {name};
  if (own.actions.empty() && actions.size() == 1) own.actions = actions;
  std::vector<std::string> privileged;
  for (const std::string& name : privileged_of(source))
    for (const std::string& vector : vectors)
      if (same_observation(vector, name)) privileged.push_back(vector);
  for (const std::string& vector : vectors)
    if (has_state && vector != "observation.state") {
      if (!contains(privileged, vector)) own.beside_state.push_back(vector);
    } else if (!contains(privileged, vector)) {
      own.proprio.push_back(vector);
    }
  if (own.images.empty())
    own.proprio.insert(own.proprio.end(), privileged.begin(), privileged.end());
  else
    own.left_out = privileged;
  for (const std::string& line : source.left_out())
    if (is_observation(line.substr(0, line.find(':')))) own.not_fields.push_back(line);
  return own;
}

std::string fields_text(const data::EpisodeSource& source) {
  std::string text;
  for (const data::StepField& field : source.fields()) {
    const std::int64_t width = field.kind == data::StepKind::kNumber ? field.elements() : 0;
    text += format("{}{} ({})", text.empty() ? "" : ", ", field.name,
                   field.kind == data::StepKind::kImage  ? std::string("a camera")
                   : field.kind == data::StepKind::kText ? std::string("a text")
                   : width < 0                           ? std::string("numbers, of another size in every step")
                   : width == 1                          ? std::string("1 number")
                                                         : format("{} numbers", width));
  }
  return text;
}

}  // namespace cohort::train
