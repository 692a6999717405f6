#include "tasks/recorded_names.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tasks/task.h"

namespace cohort::tasks {

std::string bare_name(const std::string& field) {
  for (const char* prefix : {"observation/", "obs/"})
    if (field.starts_with(prefix)) return field.substr(std::strlen(prefix));
  return field;
}

std::string without_image(std::string name) {
  constexpr std::string_view kSuffix = "_image";
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

std::string camera_of_field(const TaskSpec& spec, const std::string& field) {
  const std::string name = bare_name(field);
  for (const std::string& candidate : {name, without_image(name)})
    if (std::find(spec.cameras.begin(), spec.cameras.end(), candidate) != spec.cameras.end()) return candidate;
  return "";
}

}  // namespace cohort::tasks
