// Scene: parameters of the model that differ between environments.
#include <cmath>

#include "core/error.h"
#include "core/philox.h"
#include "sim/host/scene.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// Values of an environment that belong to items of `components` each.
std::vector<std::int32_t> columns(const std::vector<std::int32_t>& items, int components) {
  std::vector<std::int32_t> all;
  all.reserve(items.size() * static_cast<std::size_t>(components));
  for (std::int32_t i : items) {
    for (int c = 0; c < components; ++c) all.push_back(i * components + c);
  }
  return all;
}

void need_parameter(Parameter which) {
  COHORT_THROW_UNLESS(which >= Parameter::kLinkMass && static_cast<int>(which) < kParameterCount,
                      "there is no parameter {}: they are 0 to {}", static_cast<int>(which), kParameterCount - 1);
}

bool is_gain(Parameter which) {
  return which == Parameter::kActuatorGain || which == Parameter::kActuatorBias;
}

}  // namespace

void Scene::set_parameter(Parameter which, std::span<const float> values, const Indices& envs, const Indices& items) {
  need_built();
  need_parameter(which);
  const ArrayView view = engine_->parameter(which);
  const Selection to = select(items, static_cast<int>(view.shape[1]), parameter_name(which), envs, 1);
  need_values(to, values.size());
  for (std::size_t i = 0; i < values.size() && !to.envs.empty(); ++i) {
    check_parameter(which, to.envs[i / to.per_env()], to.items[i % to.per_env()], values[i]);
  }
  if (to.envs.empty() || to.items.empty()) return;  // to the engine no list means every environment
  const auto put = [&](std::span<const float> from) {
    const std::vector<std::size_t> idle = is_gain(which) ? idle_slots(to.envs) : std::vector<std::size_t>();
    exchange_gains(idle);
    if (which == Parameter::kDofDamping) take_out_servo_damping(to.envs);
    write(view, to, from);
    if (which == Parameter::kDofDamping) put_in_servo_damping(to.envs);
    exchange_gains(idle);
    engine_->commit_parameters(to.envs);
  };
  const std::vector<float> before = get_parameter(which, envs, items);
  try {
    put(values);
  } catch (const Error&) {
    put(before);
    throw;
  }
  derived_valid_ = false;
}

std::vector<float> Scene::get_parameter(Parameter which, const Indices& envs, const Indices& items) {
  need_built();
  need_parameter(which);
  const ArrayView view = engine_->parameter(which);
  const Selection from = select(items, static_cast<int>(view.shape[1]), parameter_name(which), envs, 1);
  const std::vector<std::size_t> idle = is_gain(which) ? idle_slots(from.envs) : std::vector<std::size_t>();
  exchange_gains(idle);
  if (which == Parameter::kDofDamping) take_out_servo_damping(from.envs);
  std::vector<float> values = read(view, from);
  if (which == Parameter::kDofDamping) put_in_servo_damping(from.envs);
  exchange_gains(idle);
  return values;
}

void Scene::randomize_parameter(Parameter which, double lower, double upper, const Indices& envs, std::uint32_t draw,
                                const Indices& items) {
  need_parameter(which);
  COHORT_THROW_UNLESS(std::isfinite(lower) && std::isfinite(upper), "{}: factors from {} to {}: numbers are wanted",
                      parameter_name(which), lower, upper);
  COHORT_THROW_UNLESS(lower <= upper, "{}: factors from {} to {}: the first is the smaller one", parameter_name(which),
                      lower, upper);
  need_built();
  engine_->parameter(which);  // before the values: it may be refused for its memory
  const std::vector<float> model = engine_->model_values(which);
  const std::vector<std::int32_t> chosen = items.resolve(static_cast<int>(model.size()), parameter_name(which));
  std::vector<float> values;
  for (std::int32_t env : envs.resolve(n_envs(), "environment")) {
    const RandomStream random(options_.seed, RandomPurpose::kEnvironment,
                              static_cast<std::uint64_t>(global_environment_id(env)),
                              static_cast<std::uint64_t>(which) << 32 | draw);
    for (std::int32_t i : chosen) {
      const float share = random.uniform(static_cast<std::uint64_t>(i));
      values.push_back(model[static_cast<std::size_t>(i)] *
                       (static_cast<float>(lower) + static_cast<float>(upper - lower) * share));
    }
  }
  set_parameter(which, values, envs, Indices(chosen));
}

void SceneParts::set_items(Parameter parameter, std::span<const float> values, const Indices& items, std::size_t count,
                           int components, const Indices& envs) {
  const std::vector<std::int32_t> which = items.resolve(static_cast<int>(count), "item");
  scene_->set_parameter(parameter, values, envs, Indices(columns(which, components)));
}

void SceneParts::set_links_mass(std::span<const float> mass, const Indices& links, const Indices& envs) {
  set_items(Parameter::kLinkMass, mass, own_links(links), scene_->info().links.size(), 1, envs);
}
void SceneParts::set_geoms_friction(std::span<const float> friction, const Indices& geoms, const Indices& envs) {
  set_items(Parameter::kGeomFriction, friction, own_geoms(geoms), scene_->info().geoms.size(), 3, envs);
}
void SceneParts::set_dofs_armature(std::span<const float> armature, const Indices& dofs, const Indices& envs) {
  set_items(Parameter::kDofArmature, armature, own_dofs(dofs), at(scene_->info().nv), 1, envs);
}
void SceneParts::set_dofs_damping(std::span<const float> damping, const Indices& dofs, const Indices& envs) {
  set_items(Parameter::kDofDamping, damping, own_dofs(dofs), at(scene_->info().nv), 1, envs);
}

}  // namespace cohort::sim
