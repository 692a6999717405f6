#include "tasks/observations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/config.h"
#include "core/format.h"

namespace cohort::tasks {

std::int64_t FieldSpec::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

ArrayView Observations::picture(const std::string& camera, std::span<const std::int32_t>) {
  throw Error(format("{} has no cameras: there is no '{}'", observed(), camera));
}

std::size_t Observations::observation_index(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return i;
    names.push_back(fields()[i].name);
  }
  const std::string near = config::nearest(std::string(name), names);
  throw Error(format("{} observes no '{}'{}; it observes {}", observed(), name,
                     near.empty() ? "" : format(", did you mean '{}'?", near), join(names, ", ")));
}

GivenObservations::GivenObservations(std::string observed, std::vector<FieldSpec> fields, int n_envs)
    : observed_(std::move(observed)), fields_(std::move(fields)), n_envs_(n_envs) {
  for (const FieldSpec& field : fields_)
    rows_.emplace_back(static_cast<std::size_t>(n_envs) * static_cast<std::size_t>(field.elements()));
}

ArrayView GivenObservations::observation(std::size_t field) {
  std::array<std::int64_t, kMaxRank> shape{n_envs_};
  const std::vector<std::int64_t>& inner = fields_.at(field).shape;
  std::copy(inner.begin(), inner.end(), shape.begin() + 1);
  return make_view(rows_[field].data(), ElementType::kFloat32,
                   std::span<const std::int64_t>(shape.data(), inner.size() + 1));
}

std::span<float> GivenObservations::row(std::size_t field, std::int32_t env) {
  const auto width = static_cast<std::size_t>(fields_.at(field).elements());
  return std::span(rows_[field]).subspan(static_cast<std::size_t>(env) * width, width);
}

}  // namespace cohort::tasks
