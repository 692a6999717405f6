// Scene: positions, velocities and control of dofs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
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

void Scene::need_servos() {
  if (!mode_.empty()) return;
  const std::size_t n = at(n_envs()) * at(info().nv);
  kp_.assign(n, 0);
  kv_.assign(n, 0);
  target_.assign(n, 0);
  force_lower_.assign(n, -std::numeric_limits<float>::infinity());
  force_upper_.assign(n, std::numeric_limits<float>::infinity());
  mode_.assign(n, DofMode::kForce);
}

void Scene::set_gain(std::span<const float> values, const Indices& dofs, const Indices& envs, bool position) {
  const Selection to = select(dofs, info().nv, "dof", envs, 1);
  need_values(to, values.size());
  for (float v : values) COHORT_THROW_UNLESS(std::isfinite(v) && v >= 0, "a gain of {}: not below zero", v);
  const bool broadcast = values.size() == to.per_env();
  // The actuator's numbers: force = gain ctrl - kp length - kv velocity.
  constexpr int kParameterLength = 10;
  std::vector<std::int32_t> gains, biases;
  std::vector<std::size_t> gain_from, bias_from;
  bool drives = false;
  for (std::size_t i = 0; i < to.items.size(); ++i) {
    const std::size_t d = at(to.items[i]);
    const int servo = position_actuator_[d], damper = velocity_actuator_[d];
    const int actuator = position ? servo : damper >= 0 ? damper : servo;
    if (actuator >= 0) {
      if (position || damper >= 0) gains.push_back(kParameterLength * actuator), gain_from.push_back(i);
      biases.push_back(kParameterLength * actuator + (position ? 1 : 2)), bias_from.push_back(i);
    }
    // A servo's dof that is to follow a velocity is driven by the scene.
    drives = drives || actuator < 0 || (!position && damper < 0);
  }
  const auto set = [&](Parameter parameter, const std::vector<std::int32_t>& items,
                       const std::vector<std::size_t>& from, float sign) {
    if (items.empty()) return;
    std::vector<float> row;
    for (std::size_t e = 0; e < to.envs.size(); ++e) {
      for (std::size_t i : from) row.push_back(sign * values[(broadcast ? 0 : e * to.per_env()) + i]);
    }
    set_parameter(parameter, row, Indices(to.envs), Indices(items));
  };
  set(Parameter::kActuatorGain, gains, gain_from, 1);
  set(Parameter::kActuatorBias, biases, bias_from, -1);
  if (!drives) return;
  need_servos();
  std::vector<float>& own = position ? kp_ : kv_;
  for (std::size_t e = 0; e < to.envs.size(); ++e) {
    for (std::size_t i = 0; i < to.items.size(); ++i) {
      own[at(to.envs[e]) * at(info().nv) + at(to.items[i])] = values[(broadcast ? 0 : e * to.per_env()) + i];
    }
  }
}

void Scene::set_dofs_kp(std::span<const float> kp, const Indices& dofs, const Indices& envs) {
  set_gain(kp, dofs, envs, true);
}
void Scene::set_dofs_kv(std::span<const float> kv, const Indices& dofs, const Indices& envs) {
  set_gain(kv, dofs, envs, false);
}
void Scene::set_dofs_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& dofs,
                                 const Indices& envs) {
  const Selection to = select(dofs, info().nv, "dof", envs, 1);
  need_values(to, lower.size());
  COHORT_THROW_UNLESS(lower.size() == upper.size(), "{} lower and {} upper limits given", lower.size(), upper.size());
  for (std::size_t i = 0; i < lower.size(); ++i) {
    COHORT_THROW_UNLESS(lower[i] <= upper[i], "dof {}: the force range [{}, {}] is empty", to.items[i % to.per_env()],
                        lower[i], upper[i]);
  }
  need_servos();
  const bool broadcast = lower.size() == to.per_env();
  for (std::size_t e = 0; e < to.envs.size(); ++e) {
    for (std::size_t i = 0; i < to.items.size(); ++i) {
      const std::size_t slot = at(to.envs[e]) * at(info().nv) + at(to.items[i]);
      force_lower_[slot] = lower[(broadcast ? 0 : e * to.per_env()) + i];
      force_upper_[slot] = upper[(broadcast ? 0 : e * to.per_env()) + i];
    }
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
    const std::vector<float>& own = mode == DofMode::kPosition ? kp_ : kv_;
    const bool gains = !own.empty() && std::all_of(rows.begin(), rows.end(),
                                                   [&](std::int32_t e) { return own[at(e) * at(m.nv) + at(d)] > 0; });
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
      if (!mode_.empty()) {
        // What a spring left there would pull for ever.
        if (mode_[slot] != DofMode::kForce) f.set(d, 0);
        mode_[slot] = DofMode::kForce;
      }
      if (mode == DofMode::kForce) {
        f.set(d, from[i]);
      } else if (actuators[at(d)] >= 0) {
        u.set(m.actuators[at(actuators[at(d)])].ctrl, from[i]);
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
      const double kp = static_cast<double>(kp_[slot]), kv = static_cast<double>(kv_[slot]);
      const double target = static_cast<double>(target_[slot]);
      const double force = mode_[slot] == DofMode::kPosition ? kp * (target - q[place(m, d, owner).qpos]) - kv * v[d]
                                                             : kv * (target - v[d]);
      f.set(d, std::clamp(force, static_cast<double>(force_lower_[slot]), static_cast<double>(force_upper_[slot])));
    }
  }
}

}  // namespace cohort::sim
