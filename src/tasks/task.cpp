#include "tasks/task.h"

#include "core/format.h"
#include "core/unknown_setting.h"
#include "tasks/actor.h"
#include "tasks/task_contract.h"
#include "tasks/task_fields.h"

namespace cohort::tasks {

void apply_overrides(const TaskSettings& settings, config::Fields& fields) {
  for (const std::string& assignment : settings.overrides) try {
      fields.apply_override(assignment);
    } catch (const config::UnknownSetting& e) {
      if (settings.registered_name.empty()) throw;
      throw Error(format("{}; `cohort tasks {}` lists the task's settings", e.problem(), settings.registered_name));
    }
}

ArrayView Task::reward_terms() {
  return make_view(static_cast<float*>(nullptr), {n_envs(), 0});
}

ArrayView Task::metrics() {
  return make_view(static_cast<float*>(nullptr), {n_envs(), 0});
}

TaskContract Task::contract() {
  return {};
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

TaskState Task::save() {
  TaskState state;
  StateVisitor visitor = StateVisitor::saver(state, n_envs());
  visit_state(visitor);
  return state;
}

void Task::load(const TaskState& state, const std::string& source) {
  StateVisitor visitor = StateVisitor::loader(state, n_envs(), source);
  visit_state(visitor);
  visitor.require_all_used();
}

}  // namespace cohort::tasks
