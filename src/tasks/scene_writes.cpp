// SceneTask: what a task writes into observations and terms, and what it writes where there is none.
#include <algorithm>
#include <mutex>

#include "core/format.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {

std::size_t SceneTask::field_of(Name name, std::size_t& next) {
  const std::size_t field = field_names_.find(name, next);
  if (field != NameTable::kNone) return field;
  const std::string near = config::nearest(name.text(), field_names_.names());
  found_wrong(format("observe() writes '{}', which the spec does not observe{}; it observes {}", name.text(),
                     near.empty() ? "" : format(", did you mean '{}'?", near), join(field_names_.names(), ", ")));
  return field;
}

void SceneTask::Terms::put(Name term, double value) const {
  if (row_.empty()) return;
  const std::size_t i = task_.term_names_.find(term, next_);
  if (i != NameTable::kNone) {
    row_[i] = static_cast<float>(value);
    return;
  }
  const std::vector<std::string>& names = task_.term_names_.names();
  const std::string near = config::nearest(term.text(), names);
  task_.found_wrong(format("judge() writes '{}', which is no term of the reward{}; it is the sum of {}", term.text(),
                           near.empty() ? "" : format(", did you mean '{}'?", near), join(names, ", ")));
}

SceneTask::ObservationRow SceneTask::ObservationRows::operator[](std::size_t field) const {
  if (field < task_.observation_width_.size()) return {task_, field, task_.observation_row(field, env_)};
  task_.found_wrong(format("observe() writes field {}: the spec has {} observations, which count from 0", field,
                           task_.observation_width_.size()));
  // Somewhere to write to, until the step throws.
  static thread_local std::vector<float> nowhere(4096);
  return {task_, field, nowhere};
}

std::span<float> SceneTask::observation_row(std::size_t field, std::size_t env) {
  if (!observation_rows_.empty()) return observation_rows_[field].row(env);
  const std::size_t width = observation_width_[field];
  return {observations_[field].data() + env * width, width};
}

float& SceneTask::beyond(std::size_t field) {
  if (field < observation_width_.size())
    found_wrong(
        format("observe() writes beyond the {} numbers of '{}' (field {}), which count from 0: change the "
               "field's shape in the spec, or the index",
               observation_width_[field], spec().observations[field].name, field));
  static thread_local float nowhere = 0;
  return nowhere;
}

void SceneTask::watch_writes() {
  observation_rows_.resize(observation_width_.size());
  for (std::size_t f = 0; f < observation_rows_.size(); ++f)
    observation_rows_[f].resize(static_cast<std::size_t>(n_), observation_width_[f]);
}

void SceneTask::ObservationRows::put(std::size_t field, std::span<const double> values) const {
  const std::span<float> row = (*this)[field];
  if (field < task_.observation_width_.size() && row.size() != values.size()) {
    const FieldSpec& spec = task_.spec().observations[field];
    task_.found_wrong(
        format("observe() puts {} numbers into '{}' (field {}), which has {}: put as many, or change the "
               "field's shape in the spec",
               values.size(), spec.name, field, row.size()));
  }
  const std::size_t n = std::min(row.size(), values.size());
  for (std::size_t i = 0; i < n; ++i) row[i] = static_cast<float>(values[i]);
}

void SceneTask::found_wrong(std::string text) {
  const std::lock_guard lock(wrong_mutex_);
  if (wrong_) return;
  wrong_text_ = std::move(text);
  wrong_ = true;
}

void SceneTask::throw_if_wrong() {
  if (!wrong_) return;
  const std::lock_guard lock(wrong_mutex_);
  wrong_ = false;
  throw Error(format("the task {}: {}", spec().name, wrong_text_));
}

void SceneTask::observe_into_rows(int env, const EnvState& now) {
  const auto e = static_cast<std::size_t>(env);
  // What observe() leaves out stays as it was.
  for (std::size_t f = 0; f < observation_rows_.size(); ++f) {
    const std::span<float> row = observation_rows_[f].row(e);
    std::copy_n(observations_[f].begin() + static_cast<std::ptrdiff_t>(e * row.size()), row.size(), row.begin());
  }
  ObservationRows rows(*this, env);
  observe(env, now, rows);
  for (std::size_t f = 0; f < observation_rows_.size(); ++f) {
    const std::span<float> row = observation_rows_[f].row(e);
    std::copy(row.begin(), row.end(), observations_[f].begin() + static_cast<std::ptrdiff_t>(e * row.size()));
    if (!observation_rows_[f].intact(e)) beyond(f);
  }
}

}  // namespace cohort::tasks
