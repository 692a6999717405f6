#include "data/episodes.h"

#include <algorithm>

#include "core/config.h"
#include "core/error.h"
#include "core/observation_names.h"

namespace cohort::data {

std::int64_t StepField::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return -1;
    n *= extent;
  }
  return n;
}

std::string StepField::type_name() const {
  if (!stored_type.empty()) return stored_type;
  return kind == StepKind::kImage ? "uint8" : kind == StepKind::kText ? "utf-8" : element_name(type);
}

std::string StepField::fault() const {
  if (ragged) return "holds a sequence in every step";
  if (kind == StepKind::kText && elements() != 1)
    return elements() < 0 ? "holds any number of texts in a step" : format("holds {} texts in a step", elements());
  if (kind == StepKind::kImage && type_name() != "uint8") return format("has pixels of {}, not uint8", type_name());
  return "";
}

std::size_t EpisodeSource::field_index(std::string_view field_name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == field_name) return i;
    names.push_back(fields()[i].name);
  }
  // The same observation by another format's name: obs/eef_pos of LeRobot's observation.eef_pos.
  std::size_t found = names.size(), matches = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool picture = fields()[i].kind == StepKind::kImage;
    if (!is_observation(names[i]) ||
        !(picture ? same_camera(names[i], field_name) : same_observation(names[i], field_name)))
      continue;
    found = i;
    ++matches;
  }
  if (matches == 1) return found;
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  const std::string why = why_no_field(std::string(field_name));
  COHORT_THROW_UNLESS(why.empty(), "the data set {} holds '{}', but it is no field: {}; its fields are {}", name(),
                      field_name, why, all);
  const std::string near = config::nearest(std::string(field_name), names);
  throw Error(format("the data set {} has no field '{}'; {}", name(), field_name,
                     near.empty() ? "it has " + all : "did you mean '" + near + "'? It has " + all));
}

std::vector<MetadataType> EpisodeSource::metadata_types(std::int64_t, std::vector<std::string>&) const {
  std::vector<MetadataType> types;
  for (const std::string& metadata : metadata_names()) types.push_back({metadata});
  return types;
}

bool set_metadata_type(std::vector<MetadataType>& metadata, const std::string& name, const std::string& type) {
  const auto known =
      std::find_if(metadata.begin(), metadata.end(), [&](const MetadataType& m) { return m.name == name; });
  if (known == metadata.end()) return false;
  known->type = type == "float16" || type == "bfloat16" ? "float32" : type;
  return true;
}

}  // namespace cohort::data
