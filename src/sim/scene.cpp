#include "sim/scene.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "sim/cpu/engine.h"
#include "sim/cuda/engine.h"
#include "sim/model.h"
#include "sim/mujoco/engine.h"

namespace cohort::sim {

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// One element of a (n, size) view of float, double or int32.
double load(const ArrayView& v, std::int64_t row, std::int64_t column) {
  const std::int64_t offset = row * v.strides[0] + column * v.strides[1];
  switch (v.type) {
    case ElementType::kFloat32:
      return static_cast<const float*>(v.data)[offset];
    case ElementType::kFloat64:
      return static_cast<const double*>(v.data)[offset];
    case ElementType::kInt32:
      return static_cast<const std::int32_t*>(v.data)[offset];
    default:
      COHORT_CHECK(false, "no such element type in a scene");
  }
}

void store(const ArrayView& v, std::int64_t row, std::int64_t column, double value) {
  const std::int64_t offset = row * v.strides[0] + column * v.strides[1];
  if (v.type == ElementType::kFloat32) {
    static_cast<float*>(v.data)[offset] = static_cast<float>(value);
  } else {
    COHORT_CHECK(v.type == ElementType::kFloat64, "the field is read only");
    static_cast<double*>(v.data)[offset] = value;
  }
}

}  // namespace

Indices Indices::from_mask(std::span<const std::uint8_t> mask) {
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) found.push_back(static_cast<std::int32_t>(i));
  }
  return Indices(std::move(found));
}

std::vector<std::int32_t> Indices::resolve(int count, const char* what) const {
  if (all_) {
    std::vector<std::int32_t> every(at(count));
    std::iota(every.begin(), every.end(), 0);
    return every;
  }
  for (std::int32_t i : indices_) {
    COHORT_THROW_UNLESS(i >= 0 && i < count, "{} {} does not exist: there are {}, counted from 0", what, i, count);
  }
  return indices_;
}

Scene::Scene(SceneOptions options) : options_(std::move(options)) {
  COHORT_THROW_UNLESS(options_.substeps >= 1, "substeps is {}: at least 1", options_.substeps);
  COHORT_THROW_UNLESS(options_.threads >= 1, "threads is {}: at least 1", options_.threads);
  COHORT_THROW_UNLESS(options_.first_environment >= 0, "first_environment is {}: not negative",
                      options_.first_environment);
}
Scene::~Scene() = default;

void Scene::need_built() const {
  COHORT_CHECK(engine_ != nullptr, "the scene is not built yet: call build() first");
}
void Scene::need_not_built() const {
  COHORT_CHECK(engine_ == nullptr, "the scene is built already: entities and cameras are added before build()");
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

int Scene::add_camera(CameraOptions camera) {
  need_not_built();
  COHORT_THROW_UNLESS(camera.width > 0 && camera.height > 0, "camera `{}` has {} x {} pixels", camera.name,
                      camera.width, camera.height);
  cameras_.push_back(std::move(camera));
  return static_cast<int>(cameras_.size()) - 1;
}

void Scene::build(int n_envs, std::array<double, 2> env_spacing) {
  need_not_built();
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  compiled_ = compile_scene(declarations_, cameras_, options_);
  if (options_.engine == EngineKind::kMujoco) {
    COHORT_THROW_UNLESS(options_.device.kind == DeviceKind::kCpu, "the engine `mujoco` runs on the CPU, not on {}",
                        to_string(options_.device));
    engine_ = make_mujoco_engine(compiled_.mjb, n_envs, {.threads = options_.threads});
  } else {
    engine_ = make_batched_engine(import_model(compiled_.mjb, options_.contact_capacity), n_envs);
  }
  start(env_spacing);
}

void Scene::build_from_file(const std::filesystem::path& compiled, int n_envs, std::array<double, 2> env_spacing) {
  need_not_built();
  COHORT_THROW_UNLESS(declarations_.empty() && cameras_.empty(), "a scene has either entities or a compiled model, {}",
                      compiled.string());
  COHORT_THROW_UNLESS(options_.engine == EngineKind::kBatched, "{} is a model of the engine `batched`, not of `{}`",
                      compiled.string(), to_string(options_.engine));
  COHORT_THROW_UNLESS(
      !options_.timestep && !options_.gravity && !options_.integrator && !options_.solver && !options_.cone &&
          !options_.iterations && !options_.tolerance && options_.contact_capacity == 0,
      "{} is compiled: its timestep, gravity, integrator, solver, cone, tolerance and capacity are fixed",
      compiled.string());
  engine_ = make_batched_engine(load_model(compiled), n_envs);
  start(env_spacing);
}

std::unique_ptr<Engine> Scene::make_batched_engine(Model model, int n_envs) const {
  if (options_.device.kind == DeviceKind::kCuda) {
    return make_cuda_engine(std::move(model), n_envs, {.device = options_.device.index});
  }
  COHORT_THROW_UNLESS(options_.device.kind == DeviceKind::kCpu,
                      "the batched engine runs on CPUs and CUDA devices, not on {}", to_string(options_.device));
  return make_cpu_engine(std::move(model), n_envs, {.threads = options_.threads, .lanes = options_.lanes});
}

/// What building has in common: the engine exists.
void Scene::start(std::array<double, 2> env_spacing) {
  spacing_ = env_spacing;
  const int n_envs = engine_->n_envs();
  find_members();
  find_actuators();
  const std::size_t nv = at(info().nv);
  kp_.assign(nv, 0);
  kv_.assign(nv, 0);
  force_lower_.assign(nv, -std::numeric_limits<double>::infinity());
  force_upper_.assign(nv, std::numeric_limits<double>::infinity());
  mode_.assign(at(n_envs) * nv, DofMode::kForce);
  target_.assign(at(n_envs) * nv, 0);
}

void Scene::find_members() {
  const ModelInfo& m = info();
  dof_joint_ = m.joint_of_dof();
  // The entity of a link is that of its topmost ancestor below the world.
  std::vector<int> owner(m.links.size(), -1);
  entity_links_.assign(declarations_.size(), {});
  entity_dofs_.assign(declarations_.size(), {});
  for (std::size_t e = 0; e < compiled_.entity_links.size(); ++e) {
    for (int link : compiled_.entity_links[e]) owner[at(link)] = static_cast<int>(e);
  }
  for (std::size_t b = 1; b < m.links.size(); ++b) {
    if (owner[b] < 0) owner[b] = owner[at(m.links[b].parent)];
    if (owner[b] < 0) continue;
    entity_links_[at(owner[b])].push_back(static_cast<std::int32_t>(b));
    for (int d = 0; d < m.links[b].dof_count; ++d) entity_dofs_[at(owner[b])].push_back(m.links[b].first_dof + d);
  }
}

void Scene::find_actuators() {
  const ModelInfo& m = info();
  position_actuator_.assign(at(m.nv), -1);
  velocity_actuator_.assign(at(m.nv), -1);
  for (const ActuatorInfo& a : m.actuators) {
    if (a.dof < 0 || a.gear != 1) continue;
    if (a.kind == ActuatorInfo::Kind::kPosition) position_actuator_[at(a.dof)] = a.ctrl;
    if (a.kind == ActuatorInfo::Kind::kVelocity) velocity_actuator_[at(a.dof)] = a.ctrl;
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

std::array<double, 2> Scene::environment_offset(int env) const {
  const int side = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(n_envs()))));
  const double middle = 0.5 * (side - 1);
  return {(env / side - middle) * spacing_[0], (env % side - middle) * spacing_[1]};
}

void Scene::need_derived() {
  if (derived_valid_) return;
  engine_->forward();
  derived_valid_ = true;
}

ArrayView Scene::derived(Field field) {
  need_derived();
  return engine_->host_view(field, Access::kRead);
}

ArrayView Scene::view(Field field) {
  need_built();
  if (field >= Field::kQacc && field <= Field::kSensors) {
    need_derived();
  } else {
    // The caller may write through the view.
    derived_valid_ = false;
  }
  return engine_->view(field);
}

ArrayView Scene::host_view(Field field) {
  need_built();
  if (field >= Field::kQacc && field <= Field::kSensors) need_derived();
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
}

Scene::Selection Scene::select(const Indices& items, int item_count, const char* what, const Indices& envs,
                               int components) const {
  return {envs.resolve(n_envs(), "environment"), items.resolve(item_count, what), components};
}

void Scene::write(ArrayView view, const Selection& to, std::span<const float> values) {
  const bool broadcast = values.size() == to.per_env();
  COHORT_THROW_UNLESS(broadcast || values.size() == to.per_env() * to.envs.size(),
                      "{} values given for {} environments of {} (or {} for all of them)", values.size(),
                      to.envs.size(), to.per_env(), to.per_env());
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
    std::fill_n(mode_.begin() + static_cast<std::ptrdiff_t>(at(e) * nv), nv, DofMode::kForce);
  }
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

void Scene::set_qpos(std::span<const float> qpos, const Indices& envs) {
  need_built();
  write(engine_->host_view(Field::kQpos, Access::kWrite), select({}, info().nq, "coordinate", envs, 1), qpos);
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
  const ArrayView ctrl = engine_->host_view(Field::kCtrl, Access::kWrite);
  for (int e = 0; e < n_envs(); ++e) {
    const RandomStream random(options_.seed, RandomPurpose::kAction,
                              static_cast<std::uint64_t>(global_environment_id(e)), static_cast<std::uint64_t>(step));
    for (const ActuatorInfo& a : info().actuators) {
      for (int c = 0; c < a.ctrl_count; ++c) {
        const float lower = a.limited ? static_cast<float>(a.range[0]) : -1.0f;
        const float upper = a.limited ? static_cast<float>(a.range[1]) : 1.0f;
        store(ctrl, e, a.ctrl + c, lower + (upper - lower) * random.uniform(static_cast<std::uint64_t>(a.ctrl + c)));
      }
    }
  }
  derived_valid_ = false;
}

std::vector<float> Scene::get_links_pos(const Indices& links, const Indices& envs) {
  need_built();
  return read(derived(Field::kLinkPos), select(links, static_cast<int>(info().links.size()), "link", envs, 3));
}
std::vector<float> Scene::get_links_quat(const Indices& links, const Indices& envs) {
  need_built();
  return read(derived(Field::kLinkQuat), select(links, static_cast<int>(info().links.size()), "link", envs, 4));
}

std::vector<float> Scene::get_sensor(const std::string& name, const Indices& envs) {
  const SensorInfo& sensor = info().sensors[at(info().sensor(name))];
  std::vector<std::int32_t> columns(at(sensor.size));
  std::iota(columns.begin(), columns.end(), sensor.address);
  return read(derived(Field::kSensors), select(Indices(columns), info().nsensordata, "sensor value", envs, 1));
}

ArrayView Scene::parameter(Parameter parameter) {
  need_built();
  const ArrayView view = engine_->parameter(parameter);
  std::vector<float>& defaults = parameter_defaults_[static_cast<std::size_t>(parameter)];
  if (defaults.empty() && view.shape[1] > 0) {
    defaults = read(view, select({}, static_cast<int>(view.shape[1]), "value", {0}, 1));
  }
  return view;
}
void Scene::set_parameter(Parameter which, std::span<const float> values, const Indices& envs) {
  const ArrayView view = parameter(which);
  const Selection to = select({}, static_cast<int>(view.shape[1]), "value", envs, 1);
  const std::vector<float> before = read(view, to);
  write(view, to, values);
  try {
    engine_->commit_parameters();
  } catch (const Error&) {
    write(view, to, before);
    throw;
  }
  derived_valid_ = false;
}
std::vector<float> Scene::get_parameter(Parameter which, const Indices& envs) {
  const ArrayView view = parameter(which);
  return read(view, select({}, static_cast<int>(view.shape[1]), "value", envs, 1));
}
void Scene::randomize_parameter(Parameter which, double lower, double upper, const Indices& envs, std::uint32_t draw) {
  COHORT_THROW_UNLESS(lower <= upper, "{}: factors from {} to {}: the first is the smaller one", parameter_name(which),
                      lower, upper);
  parameter(which);
  const std::vector<float>& defaults = parameter_defaults_[static_cast<std::size_t>(which)];
  std::vector<float> values;
  for (std::int32_t env : envs.resolve(n_envs(), "environment")) {
    const RandomStream random(options_.seed, RandomPurpose::kEnvironment,
                              static_cast<std::uint64_t>(global_environment_id(env)),
                              static_cast<std::uint64_t>(which) << 32 | draw);
    for (std::size_t i = 0; i < defaults.size(); ++i) {
      const float share = random.uniform(static_cast<std::uint64_t>(i));
      values.push_back(defaults[i] * (static_cast<float>(lower) + static_cast<float>(upper - lower) * share));
    }
  }
  set_parameter(which, values, envs);
}

}  // namespace cohort::sim
