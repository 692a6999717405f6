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

ArrayView Task::film(const std::string& camera, std::int32_t env, const FilmSettings& settings) {
  COHORT_THROW_UNLESS(settings.geom_groups == std::nullopt, "{} does not draw geom groups apart: leave them out",
                      spec().name);
  const std::int32_t envs[] = {env};
  const ArrayView all = picture(camera, envs);
  const auto height = static_cast<std::size_t>(all.shape[1]), width = static_cast<std::size_t>(all.shape[2]);
  const auto pixels = all.span<std::uint8_t>().subspan(static_cast<std::size_t>(env) * height * width * 3);
  const auto rows = static_cast<std::size_t>(settings.height), columns = static_cast<std::size_t>(settings.width);
  enlarged_.resize(rows * columns * 3);
  std::size_t at = 0;
  for (std::size_t y = 0; y < rows; ++y)
    for (std::size_t x = 0; x < columns; ++x) {
      const std::size_t from = (y * height / rows * width + x * width / columns) * 3;
      for (std::size_t c = 0; c < 3; ++c) enlarged_[at++] = pixels[from + c];
    }
  return make_view(enlarged_.data(), {std::int64_t{settings.height}, std::int64_t{settings.width}, 3});
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
