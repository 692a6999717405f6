#include "data/episodes.h"

#include "core/config.h"
#include "core/error.h"

namespace cohort::data {

std::int64_t StepField::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return -1;
    n *= extent;
  }
  return n;
}

std::size_t EpisodeSource::field_index(std::string_view field_name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == field_name) return i;
    names.push_back(fields()[i].name);
  }
  const std::string near = config::nearest(std::string(field_name), names);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
  throw Error(format("the data set {} has no field '{}'; {}", name(), field_name,
                     near.empty() ? "it has " + all : "did you mean '" + near + "'? It has " + all));
}

}  // namespace cohort::data
