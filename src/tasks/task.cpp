#include "tasks/task.h"

#include "core/config.h"
#include "core/format.h"
#include "tasks/actor.h"

namespace cohort::tasks {

std::int64_t FieldSpec::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

ArrayView Task::reward_terms() {
  return make_view(static_cast<float*>(nullptr), {n_envs(), 0});
}

ArrayView Task::picture(const std::string& camera, std::span<const std::int32_t>) {
  throw Error(format("{} has no cameras: there is no '{}'", spec().name, camera));
}

std::unique_ptr<Actor> Task::make_expert(std::uint64_t) {
  return nullptr;
}

std::size_t Task::observation_index(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < spec().observations.size(); ++i) {
    if (spec().observations[i].name == name) return i;
    names.push_back(spec().observations[i].name);
  }
  std::string near = config::nearest(std::string(name), names), list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  throw Error(format("{} observes no '{}'{}; it observes {}", spec().name, name,
                     near.empty() ? "" : format(", did you mean '{}'?", near), list));
}

}  // namespace cohort::tasks
