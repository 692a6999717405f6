#include "tasks/recorded_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/observation_names.h"
#include "tasks/task.h"

namespace cohort::tasks {
namespace {

std::optional<std::size_t> index_of(const TaskSpec& spec, std::string_view name) {
  for (const std::string& candidate : {std::string(name), bare_observation(name)})
    for (std::size_t i = 0; i < spec.observations.size(); ++i)
      if (spec.observations[i].name == candidate) return i;
  return std::nullopt;
}

/// "eef_pos.1" is number 1 of eef_pos, "gripper_opening" number 0 of what has one.
std::optional<std::pair<std::size_t, std::int64_t>> place_of_element(const TaskSpec& spec, const std::string& element) {
  if (const auto whole = index_of(spec, element); whole && spec.observations[*whole].elements() == 1)
    return std::pair(*whole, std::int64_t{0});
  const std::size_t dot = element.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const char *begin = element.data() + dot + 1, *end = element.data() + element.size();
  std::int64_t number = -1;
  if (const auto read = std::from_chars(begin, end, number); read.ec != std::errc() || read.ptr != end)
    return std::nullopt;
  const auto field = index_of(spec, std::string_view(element).substr(0, dot));
  if (!field || number < 0 || number >= spec.observations[*field].elements()) return std::nullopt;
  return std::pair(*field, number);
}

}  // namespace

std::string camera_of_field(const TaskSpec& spec, const std::string& field) {
  for (const std::string& candidate : {bare_observation(field), bare_camera(field)})
    for (const std::string& camera : spec.cameras)
      if (camera == candidate) return camera;
  for (const std::string& camera : spec.cameras)
    if (same_camera(camera, field)) return camera;
  return "";
}

std::vector<FieldPlace> places_of_field(const TaskSpec& spec, const std::string& field,
                                        const std::vector<std::string>& elements) {
  // Elements of a recording of the task say more than a name that the task may use for something else.
  const bool by_elements =
      !elements.empty() && std::all_of(elements.begin(), elements.end(), [&](const std::string& element) {
        return place_of_element(spec, element).has_value();
      });
  std::vector<FieldPlace> places;
  if (const auto whole = index_of(spec, field); whole && !by_elements)
    return {{*whole, 0, spec.observations[*whole].elements()}};
  for (const std::string& element : elements) {
    const auto place = place_of_element(spec, element);
    COHORT_THROW_UNLESS(place, "{} observes no '{}', which is part of '{}'", spec.name, element, field);
    if (!places.empty() && places.back().field == place->first &&
        places.back().begin + places.back().count == place->second)
      ++places.back().count;
    else
      places.push_back({place->first, place->second, 1});
  }
  if (!places.empty()) return places;
  std::vector<std::string> names;
  for (const FieldSpec& known : spec.observations) names.push_back(known.name);
  const std::string near = config::nearest(bare_observation(field), names);
  throw Error(format("{} observes no '{}'{}; it observes {}", spec.name, bare_observation(field),
                     near.empty() ? "" : ", did you mean '" + near + "'?", join(names, ", ")));
}

}  // namespace cohort::tasks
