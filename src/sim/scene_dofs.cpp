// Scene: positions, velocities and control of dofs; state files; entities.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "sim/scene.h"

namespace cohort::sim {

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Row `env` of a floating-point view, read and written as double.
class Row {
 public:
  Row(const ArrayView& view, int env) : view_(view), start_(env * view.strides[0]) {}
  double operator[](int i) const {
    const std::int64_t k = start_ + i * view_.strides[1];
    return view_.type == ElementType::kFloat64 ? static_cast<const double*>(view_.data)[k]
                                               : static_cast<const float*>(view_.data)[k];
  }
  void set(int i, double value) {
    const std::int64_t k = start_ + i * view_.strides[1];
    if (view_.type == ElementType::kFloat64) {
      static_cast<double*>(view_.data)[k] = value;
    } else {
      static_cast<float*>(view_.data)[k] = static_cast<float>(value);
    }
  }

 private:
  ArrayView view_;
  std::int64_t start_;
};

struct Rotation {
  double x, y, z;
};
/// Rotation vector of a unit quaternion, |result| <= pi.
Rotation log_quat(double w, double x, double y, double z) {
  if (w < 0) w = -w, x = -x, y = -y, z = -z;
  const double sine = std::sqrt(x * x + y * y + z * z);
  const double scale = sine < 1e-12 ? 2.0 : 2.0 * std::atan2(sine, w) / sine;
  return {x * scale, y * scale, z * scale};
}

/// Position coordinates of a dof: its joint, which coordinate, and whether it is part of a rotation.
struct DofPlace {
  int qpos;       ///< first coordinate of the translation, of the quaternion, or the coordinate itself
  int component;  ///< 0..2 inside a rotation; 0 otherwise
  bool rotation;
};
DofPlace place(const ModelInfo& m, int dof, const std::vector<int>& owner) {
  const JointInfo& j = m.joints[at(owner[at(dof)])];
  const int k = dof - j.dof;
  if (j.type == JointType::kFree) return k < 3 ? DofPlace{j.qpos + k, 0, false} : DofPlace{j.qpos + 3, k - 3, true};
  if (j.type == JointType::kBall) return {j.qpos, k, true};
  return {j.qpos, 0, false};
}

constexpr char kStateMagic[8] = {'C', 'O', 'H', 'O', 'R', 'T', 'S', '1'};

/// What stands before the engine's bytes in a state file.
struct StateHeader {
  char magic[8];
  std::int32_t engine, n_envs, nq, nv, nu, na, nbody, nmocap;
  std::int64_t steps, first_environment;
  std::uint64_t seed, engine_bytes;
};

}  // namespace

std::vector<float> Scene::get_dofs_position(const Indices& dofs, const Indices& envs) {
  const ModelInfo& m = info();
  const std::vector<int>& owner = dof_joint_;
  const std::vector<std::int32_t> which = dofs.resolve(m.nv, "dof");
  const ArrayView qpos = engine_->host_view(Field::kQpos, Access::kRead);
  std::vector<float> values;
  for (std::int32_t e : envs.resolve(n_envs(), "environment")) {
    const Row q(qpos, e);
    for (std::int32_t d : which) {
      const DofPlace p = place(m, d, owner);
      if (!p.rotation) {
        values.push_back(static_cast<float>(q[p.qpos]));
        continue;
      }
      const Rotation r = log_quat(q[p.qpos], q[p.qpos + 1], q[p.qpos + 2], q[p.qpos + 3]);
      values.push_back(static_cast<float>(p.component == 0 ? r.x : p.component == 1 ? r.y : r.z));
    }
  }
  return values;
}

void Scene::set_dofs_position(std::span<const float> position, const Indices& dofs, const Indices& envs) {
  const ModelInfo& m = info();
  const std::vector<int>& owner = dof_joint_;
  const std::vector<std::int32_t> which = dofs.resolve(m.nv, "dof");
  const std::vector<std::int32_t> rows = envs.resolve(n_envs(), "environment");
  const bool broadcast = position.size() == which.size();
  COHORT_THROW_UNLESS(broadcast || position.size() == which.size() * rows.size(),
                      "{} positions given for {} environments of {} dofs", position.size(), rows.size(), which.size());
  const ArrayView qpos = engine_->host_view(Field::kQpos, Access::kWrite);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row q(qpos, rows[r]);
    const float* from = position.data() + (broadcast ? 0 : r * which.size());
    for (std::size_t i = 0; i < which.size(); ++i) {
      const DofPlace p = place(m, which[i], owner);
      if (!p.rotation) {
        q.set(p.qpos, from[i]);
        continue;
      }
      // The other two components keep their value, so that dofs can be set one by one.
      const Rotation now = log_quat(q[p.qpos], q[p.qpos + 1], q[p.qpos + 2], q[p.qpos + 3]);
      double v[3] = {now.x, now.y, now.z};
      v[p.component] = from[i];
      const double angle = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      const double scale = angle < 1e-12 ? 0.5 : std::sin(angle / 2) / angle;
      q.set(p.qpos, std::cos(angle / 2));
      for (int k = 0; k < 3; ++k) q.set(p.qpos + 1 + k, v[k] * scale);
    }
  }
  derived_valid_ = false;
}

std::vector<float> Scene::get_dofs_velocity(const Indices& dofs, const Indices& envs) {
  need_built();
  return read(engine_->host_view(Field::kQvel, Access::kRead), select(dofs, info().nv, "dof", envs, 1));
}
void Scene::set_dofs_velocity(std::span<const float> velocity, const Indices& dofs, const Indices& envs) {
  need_built();
  write(engine_->host_view(Field::kQvel, Access::kWrite), select(dofs, info().nv, "dof", envs, 1), velocity);
}

void Scene::set_dofs_kp(std::span<const float> kp, const Indices& dofs) {
  const std::vector<std::int32_t> which = dofs.resolve(info().nv, "dof");
  COHORT_THROW_UNLESS(kp.size() == which.size(), "{} gains given for {} dofs", kp.size(), which.size());
  for (std::size_t i = 0; i < which.size(); ++i) kp_[at(which[i])] = kp[i];
}
void Scene::set_dofs_kv(std::span<const float> kv, const Indices& dofs) {
  const std::vector<std::int32_t> which = dofs.resolve(info().nv, "dof");
  COHORT_THROW_UNLESS(kv.size() == which.size(), "{} gains given for {} dofs", kv.size(), which.size());
  for (std::size_t i = 0; i < which.size(); ++i) kv_[at(which[i])] = kv[i];
}
void Scene::set_dofs_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& dofs) {
  const std::vector<std::int32_t> which = dofs.resolve(info().nv, "dof");
  COHORT_THROW_UNLESS(lower.size() == which.size() && upper.size() == which.size(),
                      "{} and {} limits given for {} dofs", lower.size(), upper.size(), which.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    COHORT_THROW_UNLESS(lower[i] <= upper[i], "dof {}: the force range [{}, {}] is empty", which[i], lower[i],
                        upper[i]);
    force_lower_[at(which[i])] = lower[i];
    force_upper_[at(which[i])] = upper[i];
  }
}

void Scene::control(DofMode mode, std::span<const float> target, const Indices& dofs, const Indices& envs) {
  const ModelInfo& m = info();
  const std::vector<std::int32_t> which = dofs.resolve(m.nv, "dof");
  const std::vector<std::int32_t> rows = envs.resolve(n_envs(), "environment");
  const bool broadcast = target.size() == which.size();
  COHORT_THROW_UNLESS(broadcast || target.size() == which.size() * rows.size(),
                      "{} targets given for {} environments of {} dofs", target.size(), rows.size(), which.size());
  const std::vector<int>& actuators = mode == DofMode::kPosition ? position_actuator_ : velocity_actuator_;
  const std::vector<int>& owner = dof_joint_;
  for (std::int32_t d : which) {
    if (mode == DofMode::kForce || actuators[at(d)] >= 0) continue;
    const bool gains = mode == DofMode::kPosition ? kp_[at(d)] > 0 : kv_[at(d)] > 0;
    const bool scalar = !place(m, d, owner).rotation;
    COHORT_THROW_UNLESS(
        gains && scalar, "dof {} (joint `{}`) has no {} actuator{}", d, m.joints[at(owner[at(d)])].name,
        mode == DofMode::kPosition ? "position" : "velocity",
        scalar ? ": give it gains with set_dofs_kp and set_dofs_kv" : " and rotates freely: use forces");
  }
  const ArrayView ctrl = engine_->host_view(Field::kCtrl, Access::kWrite),
                  applied = engine_->host_view(Field::kQfrcApplied, Access::kWrite);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row u(ctrl, rows[r]), f(applied, rows[r]);
    const float* from = target.data() + (broadcast ? 0 : r * which.size());
    for (std::size_t i = 0; i < which.size(); ++i) {
      const std::int32_t d = which[i];
      const std::size_t slot = at(rows[r]) * at(m.nv) + at(d);
      mode_[slot] = DofMode::kForce;
      if (mode == DofMode::kForce) {
        f.set(d, from[i]);
      } else if (actuators[at(d)] >= 0) {
        u.set(actuators[at(d)], from[i]);
      } else {
        mode_[slot] = mode;
        target_[slot] = from[i];
        any_control_ = true;
      }
    }
  }
  derived_valid_ = false;
}

void Scene::control_dofs_position(std::span<const float> target, const Indices& dofs, const Indices& envs) {
  control(DofMode::kPosition, target, dofs, envs);
}
void Scene::control_dofs_velocity(std::span<const float> target, const Indices& dofs, const Indices& envs) {
  control(DofMode::kVelocity, target, dofs, envs);
}
void Scene::control_dofs_force(std::span<const float> force, const Indices& dofs, const Indices& envs) {
  control(DofMode::kForce, force, dofs, envs);
}

void Scene::apply_dof_control() {
  const ModelInfo& m = info();
  const std::vector<int>& owner = dof_joint_;
  const ArrayView qpos = engine_->host_view(Field::kQpos, Access::kRead),
                  qvel = engine_->host_view(Field::kQvel, Access::kRead),
                  applied = engine_->host_view(Field::kQfrcApplied, Access::kWrite);
  for (int e = 0; e < n_envs(); ++e) {
    const Row q(qpos, e), v(qvel, e);
    Row f(applied, e);
    for (int d = 0; d < m.nv; ++d) {
      const std::size_t slot = at(e) * at(m.nv) + at(d);
      if (mode_[slot] == DofMode::kForce) continue;
      const double force = mode_[slot] == DofMode::kPosition
                               ? kp_[at(d)] * (target_[slot] - q[place(m, d, owner).qpos]) - kv_[at(d)] * v[d]
                               : kv_[at(d)] * (target_[slot] - v[d]);
      f.set(d, std::clamp(force, force_lower_[at(d)], force_upper_[at(d)]));
    }
  }
}

// ---- state files

void Scene::save_state(const std::filesystem::path& path) {
  const ModelInfo& m = info();
  const std::vector<std::uint8_t> engine = engine_->save_state();
  StateHeader header{};
  std::memcpy(header.magic, kStateMagic, sizeof header.magic);
  header.engine = static_cast<std::int32_t>(engine_->kind());
  header.n_envs = n_envs();
  header.nq = m.nq, header.nv = m.nv, header.nu = m.nu, header.na = m.na, header.nmocap = m.nmocap;
  header.nbody = static_cast<std::int32_t>(m.links.size());
  header.steps = steps_;
  header.first_environment = options_.first_environment;
  header.seed = options_.seed;
  header.engine_bytes = engine.size();
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(engine.data()), engine.size());
  for (const auto* numbers : {&kp_, &kv_, &force_lower_, &force_upper_, &target_}) {
    file.append(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(double));
  }
  file.append(reinterpret_cast<const char*>(mode_.data()), mode_.size());
  write_file_atomically(path, file);
}

void Scene::load_state(const std::filesystem::path& path) {
  const ModelInfo& m = info();
  const std::string file = read_file(path);
  StateHeader h{};
  COHORT_THROW_UNLESS(file.size() >= sizeof h, "{} is no scene state: it is cut off", path.string());
  std::memcpy(&h, file.data(), sizeof h);
  COHORT_THROW_UNLESS(std::memcmp(h.magic, kStateMagic, sizeof h.magic) == 0, "{} is no scene state", path.string());
  COHORT_THROW_UNLESS(
      h.engine == static_cast<std::int32_t>(engine_->kind()) && h.n_envs == n_envs() && h.nq == m.nq && h.nv == m.nv &&
          h.nu == m.nu && h.na == m.na && h.nmocap == m.nmocap && h.nbody == static_cast<std::int32_t>(m.links.size()),
      "{} was saved by another scene: {} environments, nq {}, nv {}, nu {}; this one has {}, {}, {}, {}", path.string(),
      h.n_envs, h.nq, h.nv, h.nu, n_envs(), m.nq, m.nv, m.nu);
  COHORT_THROW_UNLESS(h.seed == options_.seed && h.first_environment == options_.first_environment,
                      "{} was saved with seed {} and first environment {}; this scene has {} and {}", path.string(),
                      h.seed, h.first_environment, options_.seed, options_.first_environment);
  const std::size_t numbers = 4 * at(m.nv) + target_.size();
  COHORT_THROW_UNLESS(h.engine_bytes < file.size() &&
                          file.size() == sizeof h + h.engine_bytes + numbers * sizeof(double) + mode_.size(),
                      "{} is cut off: {} bytes", path.string(), file.size());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data()) + sizeof h;
  engine_->load_state({bytes, h.engine_bytes});
  bytes += h.engine_bytes;
  for (auto* to : {&kp_, &kv_, &force_lower_, &force_upper_, &target_}) {
    std::memcpy(to->data(), bytes, to->size() * sizeof(double));
    bytes += to->size() * sizeof(double);
  }
  std::memcpy(mode_.data(), bytes, mode_.size());
  any_control_ = std::any_of(mode_.begin(), mode_.end(), [](DofMode mode) { return mode != DofMode::kForce; });
  steps_ = h.steps;
  derived_valid_ = false;
}

// ---- entities

const std::string& Entity::name() const {
  return scene_->declarations_[index_].name;
}
std::span<const std::int32_t> Entity::links() const {
  scene_->need_built();
  return scene_->entity_links_[index_];
}
std::span<const std::int32_t> Entity::dofs() const {
  scene_->need_built();
  return scene_->entity_dofs_[index_];
}
Indices Entity::global_dofs(const Indices& local) const {
  std::vector<std::int32_t> which = local.resolve(static_cast<int>(dofs().size()), "dof");
  for (std::int32_t& d : which) d = dofs()[at(d)];
  return Indices(std::move(which));
}
void Entity::control_dofs_position(std::span<const float> target, const Indices& d, const Indices& envs) {
  scene_->control_dofs_position(target, global_dofs(d), envs);
}
void Entity::control_dofs_velocity(std::span<const float> target, const Indices& d, const Indices& envs) {
  scene_->control_dofs_velocity(target, global_dofs(d), envs);
}
void Entity::control_dofs_force(std::span<const float> force, const Indices& d, const Indices& envs) {
  scene_->control_dofs_force(force, global_dofs(d), envs);
}
void Entity::set_dofs_kp(std::span<const float> kp, const Indices& d) {
  scene_->set_dofs_kp(kp, global_dofs(d));
}
void Entity::set_dofs_kv(std::span<const float> kv, const Indices& d) {
  scene_->set_dofs_kv(kv, global_dofs(d));
}
void Entity::set_dofs_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& d) {
  scene_->set_dofs_force_range(lower, upper, global_dofs(d));
}
void Entity::set_dofs_position(std::span<const float> position, const Indices& d, const Indices& envs) {
  scene_->set_dofs_position(position, global_dofs(d), envs);
}
void Entity::set_dofs_velocity(std::span<const float> velocity, const Indices& d, const Indices& envs) {
  scene_->set_dofs_velocity(velocity, global_dofs(d), envs);
}
std::vector<float> Entity::get_dofs_position(const Indices& d, const Indices& envs) const {
  return scene_->get_dofs_position(global_dofs(d), envs);
}
std::vector<float> Entity::get_dofs_velocity(const Indices& d, const Indices& envs) const {
  return scene_->get_dofs_velocity(global_dofs(d), envs);
}
std::vector<float> Entity::get_links_pos(const Indices& envs) const {
  return scene_->get_links_pos(Indices(std::vector<std::int32_t>(links().begin(), links().end())), envs);
}
std::vector<float> Entity::get_links_quat(const Indices& envs) const {
  return scene_->get_links_quat(Indices(std::vector<std::int32_t>(links().begin(), links().end())), envs);
}

}  // namespace cohort::sim
