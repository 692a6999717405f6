// Scene: positions, velocities and control of dofs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/real_at.h"
#include "sim/host/scene.h"
#include "sim/host_memory.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// Row `env` of a floating-point view, read and written as double.
class Row {
 public:
  Row(const ArrayView& view, int env) : view_(view), env_(env) {}
  double operator[](int i) const { return real_at(view_, env_, i); }
  void set(int i, double value) { set_real_at(view_, env_, i, value); }

 private:
  ArrayView view_;
  int env_;
};

/// MuJoCo's lengths of gainprm and biasprm.
constexpr int kParameterLength = 10;

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

}  // namespace

std::vector<float> SceneParts::get_dofs_position(const Indices& dofs, const Indices& envs) const {
  const ModelInfo& m = scene_->info();
  const std::vector<int>& owner = scene_->dof_joint_;
  const std::vector<std::int32_t> which = own_dofs(dofs).resolve(m.nv, "dof");
  const ArrayView qpos = scene_->engine_->host_view(Field::kQpos, Access::kRead);
  std::vector<float> values;
  for (std::int32_t e : envs.resolve(scene_->n_envs(), "environment")) {
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

void SceneParts::set_dofs_position(std::span<const float> position, const Indices& dofs, const Indices& envs) {
  const ModelInfo& m = scene_->info();
  const std::vector<int>& owner = scene_->dof_joint_;
  const std::vector<std::int32_t> which = own_dofs(dofs).resolve(m.nv, "dof");
  const std::vector<std::int32_t> rows = envs.resolve(scene_->n_envs(), "environment");
  const bool broadcast = position.size() == which.size();
  COHORT_THROW_UNLESS(broadcast || position.size() == which.size() * rows.size(),
                      "{} positions given for {} environments of {} dofs", position.size(), rows.size(), which.size());
  // A rotation's components are set together: one by one the others would come from a vector that passes pi on the way.
  struct Part {
    DofPlace place;
    std::vector<std::pair<int, std::size_t>> given;  ///< component, and which of the values
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const DofPlace p = place(m, which[i], owner);
    const auto same =
        std::find_if(parts.begin(), parts.end(), [&](const Part& x) { return p.rotation && x.place.qpos == p.qpos; });
    if (same == parts.end()) {
      parts.push_back({p, {{p.component, i}}});
    } else {
      same->given.push_back({p.component, i});
    }
  }
  const ArrayView qpos = scene_->engine_->host_view(Field::kQpos, Access::kWrite);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row q(qpos, rows[r]);
    const float* from = position.data() + (broadcast ? 0 : r * which.size());
    for (const Part& part : parts) {
      const DofPlace& p = part.place;
      if (!p.rotation) {
        q.set(p.qpos, from[part.given[0].second]);
        continue;
      }
      // Components that are not given keep their value.
      const Rotation now = log_quat(q[p.qpos], q[p.qpos + 1], q[p.qpos + 2], q[p.qpos + 3]);
      double v[3] = {now.x, now.y, now.z};
      for (const auto& [component, i] : part.given) v[component] = static_cast<double>(from[i]);
      const double angle = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      const double scale = angle < 1e-12 ? 0.5 : std::sin(angle / 2) / angle;
      q.set(p.qpos, std::cos(angle / 2));
      for (int k = 0; k < 3; ++k) q.set(p.qpos + 1 + k, v[k] * scale);
    }
  }
  scene_->derived_valid_ = false;
}

std::vector<float> SceneParts::get_dofs_velocity(const Indices& dofs, const Indices& envs) const {
  const Scene::Selection from = scene_->select(own_dofs(dofs), scene_->info().nv, "dof", envs, 1);
  return scene_->read(scene_->engine_->host_view(Field::kQvel, Access::kRead), from);
}
void SceneParts::set_dofs_velocity(std::span<const float> velocity, const Indices& dofs, const Indices& envs) {
  const Scene::Selection to = scene_->select(own_dofs(dofs), scene_->info().nv, "dof", envs, 1);
  scene_->write(scene_->engine_->host_view(Field::kQvel, Access::kWrite), to, velocity);
}

void Scene::need_servos(bool idles) {
  if (idles && is_idle_.empty()) {
    // First what may be refused: then nothing has changed.
    engine_->parameter(Parameter::kActuatorGain);
    engine_->parameter(Parameter::kActuatorBias);
    need_memory({.what = "gains of idle actuators", .each = idle_bytes()}, n_envs(), available_host_memory());
  }
  if (!mode_.empty()) return;
  need_memory({.what = "dofs that the scene drives", .each = servo_bytes()}, n_envs(), available_host_memory());
  const std::size_t n = at(n_envs()) * at(info().nv);
  kp_.assign(n, 0);
  kv_.assign(n, 0);
  servo_damping_.assign(n, 0);
  own_damping_.assign(n, 0);
  target_.assign(n, 0);
  force_lower_.assign(n, -std::numeric_limits<float>::infinity());
  force_upper_.assign(n, std::numeric_limits<float>::infinity());
  mode_.assign(n, DofMode::kModel);
}

bool Scene::idle(int env, const ActuatorInfo& actuator, int index) const {
  return std::any_of(actuator.moves.begin(), actuator.moves.end(), [&](int d) {
    const DofMode mode = mode_[at(env) * at(info().nv) + at(d)];
    return mode != DofMode::kModel && !(mode == DofMode::kVelocity && velocity_actuator_[at(d)] == index);
  });
}

bool Scene::idles_some(DofMode mode, std::span<const std::int32_t> dofs) const {
  return std::any_of(restoring_.begin(), restoring_.end(), [&](int actuator) {
    const std::vector<int>& moves = info().actuators[at(actuator)].moves;
    return std::any_of(dofs.begin(), dofs.end(), [&](std::int32_t d) {
      if (mode == DofMode::kPosition && position_actuator_[at(d)] >= 0) return false;
      if (mode == DofMode::kVelocity && velocity_actuator_[at(d)] == actuator) return false;
      return std::find(moves.begin(), moves.end(), d) != moves.end();
    });
  });
}

void Scene::settle_actuators(std::span<const std::int32_t> envs) {
  if (mode_.empty() || restoring_.empty()) return;
  std::vector<std::int32_t> changed;
  std::vector<std::size_t> slots;
  for (const std::int32_t e : envs) {
    const std::size_t before = slots.size();
    for (std::size_t k = 0; k < restoring_.size(); ++k) {
      const std::size_t slot = at(e) * restoring_.size() + k;
      const bool now = idle(e, info().actuators[at(restoring_[k])], restoring_[k]);
      if (is_idle_.empty() && now) {
        is_idle_.assign(at(n_envs()) * restoring_.size(), 0);
        idle_gains_.assign(6 * is_idle_.size(), 0);
      }
      if (is_idle_.empty() || is_idle_[slot] == static_cast<std::uint8_t>(now)) continue;
      is_idle_[slot] = static_cast<std::uint8_t>(now);
      slots.push_back(slot);
    }
    if (slots.size() > before) changed.push_back(e);
  }
  if (changed.empty()) return;
  exchange_gains(slots);
  engine_->commit_parameters(changed);
}

std::vector<std::size_t> Scene::idle_slots(std::span<const std::int32_t> envs) const {
  std::vector<std::size_t> slots;
  for (const std::int32_t e : envs) {
    for (std::size_t k = 0; k < restoring_.size() && !is_idle_.empty(); ++k) {
      const std::size_t slot = at(e) * restoring_.size() + k;
      if (is_idle_[slot]) slots.push_back(slot);
    }
  }
  // An environment may be named twice; exchanged twice its gains would be where they were.
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

void Scene::exchange_gains(std::span<const std::size_t> slots) {
  if (slots.empty()) return;
  const ArrayView gain = engine_->parameter(Parameter::kActuatorGain),
                  bias = engine_->parameter(Parameter::kActuatorBias);
  for (const std::size_t slot : slots) {
    const auto env = static_cast<int>(slot / restoring_.size());
    const int first = kParameterLength * restoring_[slot % restoring_.size()];
    Row rows[2] = {Row(gain, env), Row(bias, env)};
    for (int i = 0; i < 6; ++i) {
      double& kept = idle_gains_[6 * slot + at(i)];
      const double was = rows[i / 3][first + i % 3];
      rows[i / 3].set(first + i % 3, kept);
      kept = was;
    }
  }
}

void Scene::set_gain(std::span<const float> values, const Indices& dofs, const Indices& envs, bool position) {
  const Selection to = select(dofs, info().nv, "dof", envs, 1);
  need_values(to, values.size());
  for (float v : values) COHORT_THROW_UNLESS(std::isfinite(v) && v >= 0, "a gain of {}: not below zero", v);
  const bool broadcast = values.size() == to.per_env();
  // The actuator's numbers: force = gain ctrl - kp length - kv velocity. The gear multiplies length and force.
  std::vector<std::int32_t> gains, biases;
  std::vector<std::size_t> gain_from, bias_from;
  std::vector<float> gear_squared(to.items.size(), 1);
  bool drives = false;
  for (std::size_t i = 0; i < to.items.size(); ++i) {
    const std::size_t d = at(to.items[i]);
    const int servo = position_actuator_[d], damper = velocity_actuator_[d];
    const int actuator = position ? servo : damper >= 0 ? damper : servo;
    if (actuator >= 0) {
      const double gear = info().actuators[at(actuator)].gear;
      gear_squared[i] = static_cast<float>(gear * gear);
      if (position || damper >= 0) gains.push_back(kParameterLength * actuator), gain_from.push_back(i);
      biases.push_back(kParameterLength * actuator + (position ? 1 : 2)), bias_from.push_back(i);
    }
    // A servo's dof that is to follow a velocity is driven by the scene.
    drives = drives || actuator < 0 || (!position && damper < 0);
  }
  // First what may be refused for its memory.
  if (!gains.empty()) engine_->parameter(Parameter::kActuatorGain);
  if (!biases.empty()) engine_->parameter(Parameter::kActuatorBias);
  if (drives) need_servos(false);
  const auto set = [&](Parameter parameter, const std::vector<std::int32_t>& items,
                       const std::vector<std::size_t>& from, float sign) {
    if (items.empty()) return;
    std::vector<float> row;
    for (std::size_t e = 0; e < to.envs.size(); ++e) {
      for (std::size_t i : from) {
        row.push_back(sign * values[(broadcast ? 0 : e * to.per_env()) + i] / gear_squared[i]);
      }
    }
    set_parameter(parameter, row, Indices(to.envs), Indices(items));
  };
  set(Parameter::kActuatorGain, gains, gain_from, 1);
  set(Parameter::kActuatorBias, biases, bias_from, -1);
  if (!drives) return;
  std::vector<float>& own = position ? kp_ : kv_;
  for (std::size_t e = 0; e < to.envs.size(); ++e) {
    for (std::size_t i = 0; i < to.items.size(); ++i) {
      own[at(to.envs[e]) * at(info().nv) + at(to.items[i])] = values[(broadcast ? 0 : e * to.per_env()) + i];
    }
  }
}

void Scene::set_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& dofs,
                            const Indices& envs) {
  const Selection to = select(dofs, info().nv, "dof", envs, 1);
  need_values(to, lower.size());
  COHORT_THROW_UNLESS(lower.size() == upper.size(), "{} lower and {} upper limits given", lower.size(), upper.size());
  for (std::size_t i = 0; i < lower.size(); ++i) {
    COHORT_THROW_UNLESS(lower[i] <= upper[i], "dof {}: the force range [{}, {}] is empty", to.items[i % to.per_env()],
                        lower[i], upper[i]);
  }
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const std::int32_t d = to.items[i % to.per_env()];
    const int actuator = position_actuator_[at(d)] >= 0 ? position_actuator_[at(d)] : velocity_actuator_[at(d)];
    if (actuator < 0) continue;
    const ActuatorInfo& a = info().actuators[at(actuator)];
    const double one = a.gear * a.force_range[0], other = a.gear * a.force_range[1];
    const auto own_lower = static_cast<float>(std::min(one, other)),
               own_upper = static_cast<float>(std::max(one, other));
    COHORT_THROW_UNLESS(
        lower[i] == own_lower && upper[i] == own_upper,
        "dof {} (joint `{}`) is driven by the actuator `{}`, whose own force range, [{}, {}], holds for "
        "all environments: set `forcerange` in the model's file",
        d, info().joints[at(dof_joint_[at(d)])].name, a.name, own_lower, own_upper);
  }
  need_servos(false);
  const bool broadcast = lower.size() == to.per_env();
  for (std::size_t e = 0; e < to.envs.size(); ++e) {
    for (std::size_t i = 0; i < to.items.size(); ++i) {
      const std::size_t slot = at(to.envs[e]) * at(info().nv) + at(to.items[i]);
      force_lower_[slot] = lower[(broadcast ? 0 : e * to.per_env()) + i];
      force_upper_[slot] = upper[(broadcast ? 0 : e * to.per_env()) + i];
    }
  }
}

void SceneParts::set_dofs_kp(std::span<const float> kp, const Indices& dofs, const Indices& envs) {
  scene_->set_gain(kp, own_dofs(dofs), envs, true);
}
void SceneParts::set_dofs_kv(std::span<const float> kv, const Indices& dofs, const Indices& envs) {
  scene_->set_gain(kv, own_dofs(dofs), envs, false);
}
void SceneParts::set_dofs_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& dofs,
                                      const Indices& envs) {
  scene_->set_force_range(lower, upper, own_dofs(dofs), envs);
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
  bool takes_over = false;  // from the model's actuators
  for (std::int32_t d : which) {
    takes_over =
        takes_over || (mode != DofMode::kPosition && std::any_of(restoring_.begin(), restoring_.end(), [&](int a) {
                         const std::vector<int>& moves = m.actuators[at(a)].moves;
                         const bool follows = mode == DofMode::kVelocity && a == actuators[at(d)];
                         return !follows && std::find(moves.begin(), moves.end(), d) != moves.end();
                       }));
    if (mode == DofMode::kForce || actuators[at(d)] >= 0) continue;
    const char* kind = mode == DofMode::kPosition ? "position" : "velocity";
    const std::string& joint = m.joints[at(owner[at(d)])].name;
    COHORT_THROW_UNLESS(!place(m, d, owner).rotation,
                        "dof {} (joint `{}`) has no {} actuator and rotates freely: use forces", d, joint, kind);
    const std::vector<float>& own = mode == DofMode::kPosition ? kp_ : kv_;
    for (std::int32_t e : rows) {
      COHORT_THROW_UNLESS(!own.empty() && own[at(e) * at(m.nv) + at(d)] > 0,
                          "dof {} (joint `{}`) has no {} actuator{}: give it gains with set_dofs_kp and set_dofs_kv", d,
                          joint, kind, own.empty() ? "" : format(", and no gain in environment {}", e));
    }
  }
  const bool idles = is_idle_.empty() && !rows.empty() && idles_some(mode, which);
  if (takes_over || idles) need_servos(idles);
  // Their dampers are the dofs' damping, which the integrator takes implicitly.
  const bool damps = mode != DofMode::kForce &&
                     std::any_of(which.begin(), which.end(), [&](std::int32_t d) { return actuators[at(d)] < 0; });
  if (damps) engine_->parameter(Parameter::kDofDamping);
  const ArrayView ctrl = engine_->host_view(Field::kCtrl, Access::kWrite),
                  applied = engine_->host_view(Field::kQfrcApplied, Access::kWrite);
  bool changed = false;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row u(ctrl, rows[r]), f(applied, rows[r]);
    const float* from = target.data() + (broadcast ? 0 : r * which.size());
    for (std::size_t i = 0; i < which.size(); ++i) {
      const std::int32_t d = which[i];
      const std::size_t slot = at(rows[r]) * at(m.nv) + at(d);
      const int actuator = mode == DofMode::kForce ? -1 : actuators[at(d)];
      if (!mode_.empty()) {
        // What a spring or a force left there would pull for ever.
        if (mode_[slot] != DofMode::kModel) f.set(d, 0);
        const DofMode now = mode == DofMode::kPosition && actuator >= 0 ? DofMode::kModel : mode;
        changed = changed || mode_[slot] != now;
        mode_[slot] = now;
      }
      if (mode == DofMode::kForce) {
        f.set(d, from[i]);
      } else if (actuator >= 0) {
        const ActuatorInfo& a = m.actuators[at(actuator)];
        u.set(a.ctrl, a.gear * static_cast<double>(from[i]));
      } else {
        target_[slot] = from[i];
        any_control_ = true;
      }
    }
  }
  if (changed) settle_actuators(rows);
  if (changed) settle_damping(rows);
  derived_valid_ = false;
}

void SceneParts::control_dofs_position(std::span<const float> target, const Indices& dofs, const Indices& envs) {
  scene_->control(Scene::DofMode::kPosition, target, own_dofs(dofs), envs);
}
void SceneParts::control_dofs_velocity(std::span<const float> target, const Indices& dofs, const Indices& envs) {
  scene_->control(Scene::DofMode::kVelocity, target, own_dofs(dofs), envs);
}
void SceneParts::control_dofs_force(std::span<const float> force, const Indices& dofs, const Indices& envs) {
  scene_->control(Scene::DofMode::kForce, force, own_dofs(dofs), envs);
}

bool Scene::set_servo_damping(const ArrayView& damping, int env, std::span<const float> wanted) {
  Row row(damping, env);
  bool changed = false;
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    const std::size_t slot = at(env) * wanted.size() + d;
    if (servo_damping_[slot] == wanted[d]) continue;
    const int dof = static_cast<int>(d);
    if (servo_damping_[slot] == 0) own_damping_[slot] = static_cast<float>(row[dof]);
    servo_damping_[slot] = wanted[d];
    row.set(dof, static_cast<double>(own_damping_[slot]) + static_cast<double>(wanted[d]));
    changed = true;
  }
  return changed;
}

void Scene::take_out_servo_damping(std::span<const std::int32_t> envs) {
  if (servo_damping_.empty()) return;
  const ArrayView damping = engine_->parameter(Parameter::kDofDamping);
  for (const std::int32_t e : envs) {
    Row row(damping, e);
    for (int d = 0; d < info().nv; ++d) {
      const std::size_t slot = at(e) * at(info().nv) + at(d);
      if (servo_damping_[slot] != 0) row.set(d, static_cast<double>(own_damping_[slot]));
    }
  }
}

void Scene::put_in_servo_damping(std::span<const std::int32_t> envs) {
  if (servo_damping_.empty()) return;
  const ArrayView damping = engine_->parameter(Parameter::kDofDamping);
  // An environment may be named twice.
  std::vector<std::int32_t> once(envs.begin(), envs.end());
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const std::int32_t e : once) {
    Row row(damping, e);
    for (int d = 0; d < info().nv; ++d) {
      const std::size_t slot = at(e) * at(info().nv) + at(d);
      if (servo_damping_[slot] == 0) continue;
      own_damping_[slot] = static_cast<float>(row[d]);
      row.set(d, static_cast<double>(own_damping_[slot]) + static_cast<double>(servo_damping_[slot]));
    }
  }
}

void Scene::settle_damping(std::span<const std::int32_t> envs) {
  const auto nv = static_cast<std::ptrdiff_t>(info().nv);
  const auto none = [](float x) { return x == 0; };
  if (std::all_of(servo_damping_.begin(), servo_damping_.end(), none)) return;
  const ArrayView damping = engine_->parameter(Parameter::kDofDamping);
  std::vector<std::int32_t> changed;
  for (const std::int32_t e : envs) {
    std::vector<float> wanted(servo_damping_.begin() + e * nv, servo_damping_.begin() + (e + 1) * nv);
    for (std::size_t d = 0; d < wanted.size(); ++d) {
      if (mode_[at(e) * wanted.size() + d] <= DofMode::kForce) wanted[d] = 0;
    }
    if (set_servo_damping(damping, e, wanted)) changed.push_back(e);
  }
  if (!changed.empty()) engine_->commit_parameters(changed);
}

/// A servo's force is kp (target - q) - kv v, or kv (target - v), within its range. What is proportional to the
/// velocity goes into the dof's damping, so that the integrator takes it implicitly, as MuJoCo's implicitfast does an
/// actuator's: held over a step, gains that a robot's maker gives would be too much for its light links. A force at the
/// end of its range does not depend on the velocity.
void Scene::apply_dof_control() {
  const ModelInfo& m = info();
  const std::vector<int>& owner = dof_joint_;
  const ArrayView qpos = engine_->host_view(Field::kQpos, Access::kRead),
                  qvel = engine_->host_view(Field::kQvel, Access::kRead),
                  applied = engine_->host_view(Field::kQfrcApplied, Access::kWrite),
                  damping = engine_->parameter(Parameter::kDofDamping);
  std::vector<std::int32_t>& changed = changed_;
  std::vector<float>& wanted = wanted_damping_;
  changed.clear();
  wanted.resize(at(m.nv));
  for (int e = 0; e < n_envs(); ++e) {
    const Row q(qpos, e), v(qvel, e);
    Row f(applied, e);
    for (int d = 0; d < m.nv; ++d) {
      const std::size_t slot = at(e) * at(m.nv) + at(d);
      wanted[at(d)] = 0;
      if (mode_[slot] <= DofMode::kForce) continue;
      if (mode_[slot] == DofMode::kVelocity && velocity_actuator_[at(d)] >= 0) continue;
      const double kp = static_cast<double>(kp_[slot]), kv = static_cast<double>(kv_[slot]);
      const double target = static_cast<double>(target_[slot]);
      const double pull = mode_[slot] == DofMode::kPosition ? kp * (target - q[place(m, d, owner).qpos]) : kv * target;
      const double lower = static_cast<double>(force_lower_[slot]), upper = static_cast<double>(force_upper_[slot]);
      const double force = pull - kv * v[d];
      const bool within = force > lower && force < upper;
      if (within) wanted[at(d)] = kv_[slot];
      f.set(d, within ? pull : std::clamp(force, lower, upper));
    }
    if (set_servo_damping(damping, e, wanted)) changed.push_back(e);
  }
  if (!changed.empty()) engine_->commit_parameters(changed);
}

}  // namespace cohort::sim
