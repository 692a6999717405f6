#include "sim/host/scene.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/config.h"
#include "core/error.h"
#include "core/real_at.h"
#include "sim/backends.h"
#include "sim/engine_plan.h"
#include "sim/host/kinematics.h"
#include "sim/host/looks.h"
#include "sim/host/model.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// One element of a (n, size) view of float, double or int32.
double load(const ArrayView& v, std::int64_t row, std::int64_t column) {
  if (v.type == ElementType::kInt32)
    return static_cast<const std::int32_t*>(v.data)[row * v.strides[0] + column * v.strides[1]];
  return real_at(v, row, column);
}

void store(const ArrayView& v, std::int64_t row, std::int64_t column, double value) {
  COHORT_CHECK(v.type != ElementType::kInt32, "the field is read only");
  set_real_at(v, row, column, value);
}

/// Throws Error for what no model can have. Names of solvers and the like are the compiler's to know.
void check(const SceneOptions& o) {
  COHORT_THROW_UNLESS(o.substeps >= 1, "substeps is {}: at least 1", o.substeps);
  COHORT_THROW_UNLESS(o.threads >= 1, "threads is {}: at least 1", o.threads);
  COHORT_THROW_UNLESS(o.first_environment >= 0, "first_environment is {}: not negative", o.first_environment);
  COHORT_THROW_UNLESS(!o.timestep || (*o.timestep >= kLeastTimestep && std::isfinite(*o.timestep)),
                      "timestep is {}: it has to be positive (s) and at least {}", *o.timestep, kLeastTimestep);
  if (o.gravity) {
    for (const double g : *o.gravity) COHORT_THROW_UNLESS(std::isfinite(g), "gravity has a component of {}", g);
  }
  const auto not_below_zero = [](const char* name, const auto& value) {
    COHORT_THROW_UNLESS(!value || (*value >= 0 && std::isfinite(static_cast<double>(*value))),
                        "{} is {}: not below zero", name, *value);
  };
  not_below_zero("iterations", o.iterations);
  not_below_zero("tolerance", o.tolerance);
  not_below_zero("ls_iterations", o.ls_iterations);
  not_below_zero("ls_tolerance", o.ls_tolerance);
  not_below_zero("noslip_iterations", o.noslip_iterations);
  not_below_zero("noslip_tolerance", o.noslip_tolerance);
  COHORT_THROW_UNLESS(!o.impratio || (*o.impratio > 0 && std::isfinite(*o.impratio)),
                      "impratio is {}: it has to be above zero", *o.impratio);
  COHORT_THROW_UNLESS(o.contact_capacity >= 0, "contact_capacity is {}: 0 (from the model) or more",
                      o.contact_capacity);
  COHORT_THROW_UNLESS(o.row_space >= -1, "row_space is {}: -1 (from the model) to 64", o.row_space);
  set_of(o.parameters);
  set_of(o.step_leaves);
  COHORT_THROW_UNLESS(o.compile_seconds > 0, "compile_seconds is {}: positive", o.compile_seconds);
  COHORT_THROW_UNLESS(o.compile_memory > 0, "compile_memory is {}: positive (bytes)", o.compile_memory);
  const bool batched = o.engine == EngineKind::kBatched;
  if (!batched) {
    COHORT_THROW_UNLESS(
        o.contact_capacity == 0 && o.row_space < 0,
        "contact_capacity is {} and row_space {}: the engine mujoco has its own memory for contacts and "
        "its own solvers; leave both out, or take the engine batched",
        o.contact_capacity, o.row_space);
  }
}

void check(const std::array<double, 2>& env_spacing) {
  for (const double s : env_spacing) COHORT_THROW_UNLESS(std::isfinite(s), "env_spacing has a component of {} m", s);
}

void need_field(const Engine& engine, Field field) {
  COHORT_THROW_UNLESS(field >= Field::kQpos && field < Field::kFieldCount, "there is no field {}: fields are 0 to {}",
                      static_cast<int>(field), kFieldCount - 1);
  COHORT_THROW_UNLESS(engine.has(field), "this scene has no {}: name it in SceneOptions::step_leaves before build()",
                      field_name(field));
}

}  // namespace

Scene::Scene(SceneOptions options) : SceneParts(this, kWholeScene), options_(std::move(options)) {
  check(options_);
}
Scene::~Scene() = default;

void Scene::need_built() const {
  COHORT_THROW_UNLESS(engine_ != nullptr, "the scene is not built yet: call build() first");
}
void Scene::need_not_built() const {
  COHORT_THROW_UNLESS(engine_ == nullptr, "the scene is built already: entities and cameras are added before build()");
}

Entity Scene::add_entity(Morph morph, std::string name) {
  need_not_built();
  if (name.empty()) name = format("entity{}", declarations_.size());
  for (const EntityDeclaration& other : declarations_) {
    COHORT_THROW_UNLESS(other.name != name, "two entities are named `{}`", name);
  }
  declarations_.push_back({std::move(name), std::move(morph)});
  return Entity(this, declarations_.size() - 1);
}

Entity Scene::entity(const std::string& name) {
  std::vector<std::string> names;
  if (built()) {
    for (const EntityInfo& e : entities_) names.push_back(e.name);
  } else {
    for (const EntityDeclaration& e : declarations_) names.push_back(e.name);
  }
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    const std::string near = config::nearest(name, names);
    throw Error(format("the scene has no entity named `{}`{}", name,
                       near.empty() ? format(" (it has {})", names.size()) : format("; is `{}` meant?", near)));
  }
  return Entity(this, static_cast<std::size_t>(found - names.begin()));
}

int Scene::add_camera(CameraOptions camera) {
  need_not_built();
  COHORT_THROW_UNLESS(camera.width > 0 && camera.height > 0, "camera `{}` has {} x {} pixels", camera.name,
                      camera.width, camera.height);
  COHORT_THROW_UNLESS(camera.fov > 0 && camera.fov < 180, "camera `{}` has a field of view of {} degrees: 0 to 180",
                      camera.name, camera.fov);
  for (std::size_t i = 0; i < 3; ++i) {
    COHORT_THROW_UNLESS(std::isfinite(camera.pos[i]) && std::isfinite(camera.lookat[i]),
                        "camera `{}` stands at ({}, {}, {}) and looks at ({}, {}, {})", camera.name, camera.pos[0],
                        camera.pos[1], camera.pos[2], camera.lookat[0], camera.lookat[1], camera.lookat[2]);
  }
  for (const CameraOptions& other : cameras_) {
    COHORT_THROW_UNLESS(camera.name.empty() || other.name != camera.name, "two cameras are named `{}`", camera.name);
  }
  cameras_.push_back(std::move(camera));
  return static_cast<int>(cameras_.size()) - 1;
}

void Scene::build(int n_envs, std::array<double, 2> env_spacing) {
  need_not_built();
  check(env_spacing);
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  const Backend& backend = backend_of(options_.engine, options_.device);
  if (compiled_.mjb.empty()) compiled_ = compile_scene(declarations_, cameras_, options_);
  EngineModel model{.mjb = compiled_.mjb};
  if (backend.kind == EngineKind::kBatched) {
    model.batched = import_model(compiled_.mjb);
    if (std::string remark = taken_otherwise(model.batched.info); !remark.empty()) {
      compiled_.warnings.push_back(std::move(remark));
    }
    if (options_.row_space > 0 && choose_row_space(model.batched, options_.row_space) == 0) {
      const OptionRecord& solver = model.batched.sizes.option;
      compiled_.warnings.push_back(format("row_space {} has no effect: {}", options_.row_space,
                                          !solver.newton    ? "the solver is not Newton's"
                                          : solver.elliptic ? "its contacts have elliptic cones"
                                                            : "the model has no constraints"));
    }
  }
  start(backend, std::move(model), n_envs, env_spacing);
}

MemoryPlan Scene::plan() const {
  need_not_built();
  const Backend& backend = backend_of(options_.engine, options_.device);
  const CompiledScene compiled = compile_scene(declarations_, cameras_, options_);
  EngineModel model{.mjb = compiled.mjb};
  if (backend.kind == EngineKind::kBatched) model.batched = import_model(compiled.mjb);
  return backend.plan(model, engine_options());
}

MemoryPlan Scene::plan_from_file(const std::filesystem::path& compiled) const {
  const EngineModel model{.batched = load_for_build(compiled)};
  return backend_of(options_.engine, options_.device).plan(model, engine_options());
}

void Scene::build_from_file(const std::filesystem::path& compiled, int n_envs, std::array<double, 2> env_spacing) {
  check(env_spacing);
  EngineModel model{.batched = load_for_build(compiled)};
  std::vector<CameraOptions> saved = model.batched.info.cameras;
  start(backend_of(options_.engine, options_.device), std::move(model), n_envs, env_spacing);
  compiled_file_ = compiled;
  cameras_.insert(cameras_.end(), saved.begin(), saved.end());
}

Model Scene::load_for_build(const std::filesystem::path& compiled) const {
  need_not_built();
  COHORT_THROW_UNLESS(declarations_.empty(), "a scene has either entities or a compiled model, {}", compiled.string());
  COHORT_THROW_UNLESS(options_.engine == EngineKind::kBatched, "{} is a model of the engine `batched`, not of `{}`",
                      compiled.string(), to_string(options_.engine));
  COHORT_THROW_UNLESS(
      !options_.timestep && !options_.gravity && !options_.integrator && !options_.solver && !options_.cone &&
          !options_.iterations && !options_.tolerance && !options_.ls_iterations && !options_.ls_tolerance &&
          !options_.noslip_iterations && !options_.noslip_tolerance && !options_.impratio,
      "{} is compiled: its timestep, gravity, integrator, solver, cone, impratio, iterations and tolerances are fixed",
      compiled.string());
  Model model = load_model(compiled);
  for (const CameraOptions& saved : model.info.cameras) {
    for (const CameraOptions& own : cameras_) {
      COHORT_THROW_UNLESS(own.name.empty() || own.name != saved.name,
                          "{} has a camera named `{}` of its own: give this scene's another name", compiled.string(),
                          own.name);
    }
  }
  return model;
}

EngineOptions Scene::engine_options() const {
  return {.threads = options_.threads,
          .lanes = options_.lanes,
          .device = options_.device.index,
          .row_space = options_.row_space,
          .contact_capacity = options_.contact_capacity,
          .parameters = set_of(options_.parameters),
          .step_leaves = set_of(options_.step_leaves),
          .leave_present = options_.leave_present};
}

/// What building has in common.
void Scene::start(const Backend& backend, EngineModel model, int n_envs, std::array<double, 2> env_spacing) {
  if (backend.kind == EngineKind::kBatched) {
    contact_capacity_ = choose_contact_capacity(model.batched, options_.contact_capacity);
  }
  engine_ = backend.make(std::move(model), n_envs, engine_options());
  spacing_ = env_spacing;
  find_members();
  find_actuators();
  random_controls_ = RandomControls(info().actuators);
}

void Scene::find_members() {
  const ModelInfo& m = info();
  dof_joint_ = m.joint_of_dof();
  entities_ = m.entities;
  if (!declarations_.empty()) {
    entities_.clear();
    for (std::size_t e = 0; e < declarations_.size(); ++e) {
      entities_.push_back({declarations_[e].name, compiled_.entity_links[e], compiled_.entity_geoms[e]});
    }
  }
  entity_dofs_.assign(entities_.size(), {});
  for (std::size_t e = 0; e < entities_.size(); ++e) {
    for (int b : entities_[e].links) {
      const LinkInfo& link = m.links[at(b)];
      for (int d = 0; d < link.dof_count; ++d) entity_dofs_[e].push_back(link.first_dof + d);
    }
  }
}

void Scene::find_actuators() {
  const ModelInfo& m = info();
  position_actuator_.assign(at(m.nv), -1);
  velocity_actuator_.assign(at(m.nv), -1);
  for (std::size_t i = 0; i < m.actuators.size(); ++i) {
    const ActuatorInfo& a = m.actuators[i];
    if (a.restoring) restoring_.push_back(static_cast<int>(i));
    if (a.dof < 0 || a.gear == 0) continue;
    if (a.kind == ActuatorInfo::Kind::kPosition) position_actuator_[at(a.dof)] = static_cast<int>(i);
    if (a.kind == ActuatorInfo::Kind::kVelocity) velocity_actuator_[at(a.dof)] = static_cast<int>(i);
  }
}

int Scene::n_envs() const {
  need_built();
  return engine_->n_envs();
}
const ModelInfo& Scene::info() const {
  need_built();
  return engine_->info();
}
Engine& Scene::engine() {
  need_built();
  return *engine_;
}

const Kinematics& Scene::kinematics() const {
  need_built();
  COHORT_THROW_UNLESS(
      !compiled_.mjb.empty(),
      "{} holds no model of MuJoCo's, which poses and Jacobians at given coordinates need: build the scene "
      "from the model's own file",
      compiled_file_.string());
  if (!kinematics_) kinematics_ = std::make_unique<Kinematics>(compiled_.mjb);
  return *kinematics_;
}

MemoryPlan Scene::memory() const {
  need_built();
  MemoryPlan plan = engine_->memory();
  if (!mode_.empty()) plan.parts.push_back({"dofs that the scene drives", servo_bytes()});
  if (!is_idle_.empty()) plan.parts.push_back({"gains of idle actuators", idle_bytes()});
  return plan;
}

double Scene::servo_bytes() const {
  return info().nv * (7.0 * sizeof(float) + sizeof(DofMode));
}
double Scene::idle_bytes() const {
  return static_cast<double>(restoring_.size()) * (6.0 * sizeof(double) + 1);
}

std::array<double, 2> Scene::environment_offset(int env) const {
  COHORT_THROW_UNLESS(env >= 0 && env < n_envs(), "environment {} does not exist: there are {}, counted from 0", env,
                      n_envs());
  const int side = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(n_envs()))));
  const double middle = 0.5 * (side - 1);
  return {(env / side - middle) * spacing_[0], (env % side - middle) * spacing_[1]};
}

void Scene::need_derived() {
  if (!derived_valid_ || handed_out_) forward();
}

void Scene::forward() {
  need_built();
  engine_->forward();
  derived_valid_ = true;
}

ArrayView Scene::derived(Field field) {
  need_derived();
  return engine_->host_view(field, Access::kRead);
}

ArrayView Scene::view(Field field) {
  need_built();
  need_field(*engine_, field);
  if (is_derived(field)) {
    need_derived();
  } else if (field < Field::kQacc) {
    handed_out_ = true;
  }
  return engine_->view(field);
}

ArrayView Scene::host_view(Field field) {
  need_built();
  need_field(*engine_, field);
  if (is_derived(field)) need_derived();
  return engine_->host_view(field, Access::kRead);
}

void Scene::step() {
  need_built();
  if (any_control_) {
    for (int s = 0; s < options_.substeps; ++s) {
      apply_dof_control();
      engine_->step(1);
    }
  } else {
    engine_->step(options_.substeps);  // on a device: one launch
  }
  derived_valid_ = false;
  ++steps_;
  if (options_.report_stops) report_stops();
}

Scene::Selection Scene::select(const Indices& items, int item_count, const char* what, const Indices& envs,
                               int components) const {
  return {envs.resolve(n_envs(), "environment"), items.resolve(item_count, what), components, what};
}

void Scene::need_values(const Selection& to, std::size_t count) {
  COHORT_THROW_UNLESS(count == to.per_env() || count == to.per_env() * to.envs.size(),
                      "{}: {} values given for {} environments of {} (or {} for all of them)", to.what, count,
                      to.envs.size(), to.per_env(), to.per_env());
}

void Scene::write(ArrayView view, const Selection& to, std::span<const float> values) {
  need_values(to, values.size());
  const bool broadcast = values.size() == to.per_env();
  for (std::size_t e = 0; e < to.envs.size(); ++e) {
    const float* row = values.data() + (broadcast ? 0 : e * to.per_env());
    for (std::size_t i = 0; i < to.items.size(); ++i) {
      for (int c = 0; c < to.components; ++c) {
        store(view, to.envs[e], std::int64_t{to.items[i]} * to.components + c, row[i * at(to.components) + at(c)]);
      }
    }
  }
  derived_valid_ = false;
}

std::vector<float> Scene::read(ArrayView view, const Selection& from) const {
  std::vector<float> values;
  values.reserve(from.per_env() * from.envs.size());
  for (std::int32_t e : from.envs) {
    for (std::int32_t i : from.items) {
      for (int c = 0; c < from.components; ++c) {
        values.push_back(static_cast<float>(load(view, e, std::int64_t{i} * from.components + c)));
      }
    }
  }
  return values;
}

void Scene::reset(const Indices& envs) {
  need_built();
  const std::vector<std::int32_t> which = envs.resolve(n_envs(), "environment");
  engine_->reset(which);
  const std::size_t nv = at(info().nv);
  for (std::int32_t e : which) {
    if (mode_.empty()) break;
    std::fill_n(mode_.begin() + static_cast<std::ptrdiff_t>(at(e) * nv), nv, DofMode::kModel);
  }
  settle_actuators(which);
  settle_damping(which);
  derived_valid_ = false;
}

void Scene::reset_to_keyframe(const std::string& name, const Indices& envs) {
  reset_to_keyframe(info().keyframe(name), envs);
}

void Scene::reset_to_keyframe(int keyframe, const Indices& envs) {
  const ModelInfo& m = info();
  COHORT_THROW_UNLESS(keyframe >= 0 && at(keyframe) < m.keyframes.size(),
                      "keyframe {} does not exist: the model has {}", keyframe, m.keyframes.size());
  reset(envs);
  const KeyframeInfo& k = m.keyframes[at(keyframe)];
  const auto copy = [&](Field field, const std::vector<double>& from) {
    const ArrayView to = engine_->host_view(field, Access::kWrite);
    for (std::int32_t e : envs.resolve(n_envs(), "environment")) {
      for (std::size_t i = 0; i < from.size(); ++i) store(to, e, static_cast<std::int64_t>(i), from[i]);
    }
  };
  copy(Field::kTime, {k.time});
  copy(Field::kQpos, k.qpos);
  copy(Field::kQvel, k.qvel);
  copy(Field::kAct, k.act);
  copy(Field::kCtrl, k.ctrl);
  copy(Field::kMocapPos, k.mocap_pos);
  copy(Field::kMocapQuat, k.mocap_quat);
}

void Scene::reset_to_state(std::span<const float> qpos, std::span<const float> qvel, const Indices& envs) {
  need_built();
  // Nothing is reset when one of the two does not fit.
  need_values(select({}, info().nq, "coordinate", envs, 1), qpos.size());
  need_values(select({}, info().nv, "dof", envs, 1), qvel.size());
  reset(envs);
  set_qpos(qpos, envs);
  set_qvel(qvel, envs);
}

std::vector<float> Scene::get_field(Field field, const char* what, const Indices& envs) {
  need_built();
  return read(engine_->host_view(field, Access::kRead), select({}, field_size(info(), field), what, envs, 1));
}
std::vector<float> Scene::get_qpos(const Indices& envs) {
  return get_field(Field::kQpos, "coordinate", envs);
}
std::vector<float> Scene::get_qvel(const Indices& envs) {
  return get_field(Field::kQvel, "dof", envs);
}
std::vector<float> Scene::get_ctrl(const Indices& envs) {
  return get_field(Field::kCtrl, "control", envs);
}

void Scene::set_qpos(std::span<const float> qpos, const Indices& envs) {
  need_built();
  write(engine_->host_view(Field::kQpos, Access::kWrite), select({}, info().nq, "coordinate", envs, 1), qpos);
}
void Scene::write_qpos(int first, int count, std::span<const float> values, const Indices& envs) {
  std::vector<std::int32_t> columns(at(count));
  std::iota(columns.begin(), columns.end(), first);
  write(engine_->host_view(Field::kQpos, Access::kWrite), select(Indices(columns), info().nq, "coordinate", envs, 1),
        values);
}
void Scene::set_qvel(std::span<const float> qvel, const Indices& envs) {
  need_built();
  write(engine_->host_view(Field::kQvel, Access::kWrite), select({}, info().nv, "dof", envs, 1), qvel);
}
void Scene::set_ctrl(std::span<const float> ctrl, const Indices& envs) {
  need_built();
  write(engine_->host_view(Field::kCtrl, Access::kWrite), select({}, info().nu, "control", envs, 1), ctrl);
}

void Scene::set_random_ctrl(std::int64_t step) {
  need_built();
  engine_->draw_controls(random_controls_, {options_.seed, options_.first_environment, step});
  derived_valid_ = false;
}

std::vector<float> Scene::get_sensor(const std::string& name, const Indices& envs) {
  const SensorInfo& sensor = info().sensors[at(info().sensor(name))];
  std::vector<std::int32_t> columns(at(sensor.size));
  std::iota(columns.begin(), columns.end(), sensor.address);
  return read(derived(Field::kSensors), select(Indices(columns), info().nsensordata, "sensor value", envs, 1));
}

}  // namespace cohort::sim
