// Scene: why environments stop.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/real_at.h"
#include "sim/host/overlaps.h"
#include "sim/host/scene.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// The first value that is no number, or beyond what a state may hold; -1: none.
std::int64_t first_broken(const ArrayView& v, int env) {
  constexpr double kMost = 1e10;
  for (std::int64_t i = 0; i < v.shape[1]; ++i) {
    if (!(std::abs(real_at(v, env, i)) <= kMost)) return i;
  }
  return -1;
}

std::string quoted(const char* what, const std::string& name, std::int64_t index) {
  return name.empty() ? format("{} {}", what, index) : format("{} `{}`", what, name);
}

}  // namespace

std::string Scene::why_stopped(int env) {
  need_built();
  COHORT_THROW_UNLESS(env >= 0 && env < n_envs(), "environment {} does not exist: there are {}", env, n_envs());
  const auto host = [&](Field field) { return engine_->host_view(field, Access::kRead); };
  const ArrayView statuses = host(Field::kStatus);
  const std::int32_t status = static_cast<const std::int32_t*>(statuses.data)[env * statuses.strides[0]];
  const ModelInfo& m = info();
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (status & kStatusContactOverflow) {
    add(contact_capacity_ > 0
            ? format("more contacts than the {} that there is room for; a larger --contact-capacity "
                     "(SceneOptions::contact_capacity) makes more, 0 makes it for all that its geoms can have",
                     contact_capacity_)
            : "more contacts than fit: MuJoCo's memory is full; give it more by <size memory=\"...\"/>");
  }
  if (status & kStatusConstraintOverflow) {
    add("more constraints than fit: MuJoCo's memory is full; give it more by <size memory=\"...\"/>");
  }
  if (status & kStatusEngineError) add("an error in MuJoCo: " + engine_->error_text(env));
  if (!(status & kStatusBadState)) return text;

  // What was written into it.
  const auto actuator_of = [&](std::int64_t ctrl) {
    for (std::size_t i = 0; i < m.actuators.size(); ++i) {
      const ActuatorInfo& a = m.actuators[i];
      if (ctrl >= a.ctrl && ctrl < a.ctrl + a.ctrl_count) {
        return quoted("actuator", a.name, static_cast<std::int64_t>(i));
      }
    }
    return format("control {}", ctrl);
  };
  const auto joint_of = [&](std::int64_t dof) {
    const int j = dof_joint_[static_cast<std::size_t>(dof)];
    const JointInfo& joint = m.joints[static_cast<std::size_t>(j)];
    if (!joint.name.empty()) return format("joint `{}`", joint.name);
    const std::string& link = m.links[static_cast<std::size_t>(joint.link)].name;
    return link.empty() ? format("joint {}", j) : format("the joint of link `{}`", link);
  };
  const auto joint_at = [&](std::int64_t coordinate) {
    for (const JointInfo& j : m.joints) {
      if (coordinate >= j.qpos && coordinate < j.qpos + kJointQpos[static_cast<int>(j.type)]) return joint_of(j.dof);
    }
    return format("coordinate {}", coordinate);
  };
  const ArrayView qpos = host(Field::kQpos), qvel = host(Field::kQvel), ctrl = host(Field::kCtrl),
                  applied = host(Field::kQfrcApplied), push = host(Field::kXfrcApplied);
  const double time = real_at(host(Field::kTime), env, 0);
  if (!std::isfinite(time)) {
    add(format("its time is {}", time));
    return text;
  }
  const std::string when = format("at {:.4g} s (step {})", time, std::lround(time / m.timestep) + 1);
  if (const std::int64_t i = first_broken(ctrl, env); i >= 0) {
    add(format("the control of {} is {}, {}", actuator_of(i), real_at(ctrl, env, i), when));
    return text;
  }
  if (const std::int64_t i = first_broken(qpos, env); i >= 0) {
    add(format("the position of {} is {}, {}", joint_at(i), real_at(qpos, env, i), when));
    return text;
  }
  if (const std::int64_t i = first_broken(qvel, env); i >= 0) {
    add(format("the velocity of {} is {}, {}", joint_of(i), real_at(qvel, env, i), when));
    return text;
  }
  if (const std::int64_t i = first_broken(applied, env); i >= 0) {
    add(format("the force on {} is {}, {}", joint_of(i), real_at(applied, env, i), when));
    return text;
  }
  if (const std::int64_t i = first_broken(push, env); i >= 0) {
    add(format("the force on link `{}` is {}, {}", m.links[static_cast<std::size_t>(i / 6)].name, real_at(push, env, i),
               when));
    return text;
  }
  for (const auto& [field, what] :
       {std::pair{Field::kAct, "activation"}, std::pair{Field::kWarmstart, "warm start's value"},
        std::pair{Field::kMocapPos, "coordinate of the mocap bodies' positions"},
        std::pair{Field::kMocapQuat, "coordinate of the mocap bodies' orientations"}}) {
    const ArrayView view = host(field);
    if (const std::int64_t i = first_broken(view, env); i >= 0) {
      add(format("{} {} is {}, {}", what, i, real_at(view, env, i), when));
      return text;
    }
  }
  if (m.nv == 0) {
    add(format("a NaN or a value above 1e10, {}", when));
    return text;
  }
  // Otherwise the motion broke by itself: the state is the last good one. What moves fastest in it did so; where
  // nothing is fast yet, what is accelerated most.
  constexpr double kFast = 1e3;  // rad/s, m/s
  const auto most = [&](const ArrayView& v) {
    const auto size = [&](std::int64_t d) {
      const double x = std::abs(real_at(v, env, d));
      return x >= 0 ? x : std::numeric_limits<double>::infinity();  // a NaN
    };
    std::int64_t largest = 0;
    for (std::int64_t d = 1; d < m.nv; ++d) {
      if (size(d) > size(largest)) largest = d;
    }
    return largest;
  };
  std::int64_t fastest = most(qvel);
  double value = real_at(qvel, env, fastest);
  const bool accelerated = std::abs(value) < kFast;
  if (accelerated) {
    const std::int32_t one[] = {env};
    engine_->forward_some(one);
    derived_valid_ = false;
    const ArrayView qacc = host(Field::kQacc);
    fastest = most(qacc);
    value = real_at(qacc, env, fastest);
  }
  const JointInfo& joint = m.joints[static_cast<std::size_t>(dof_joint_[static_cast<std::size_t>(fastest)])];
  const bool turns = joint.type == JointType::kHinge || joint.type == JointType::kBall ||
                     (joint.type == JointType::kFree && fastest - joint.dof >= 3);
  add(format("a NaN or a value above 1e10, {}; {} {} {:.3g} {}{}", when, joint_of(fastest),
             accelerated ? "was accelerated most, by" : "was the fastest, with", value, turns ? "rad/s" : "m/s",
             accelerated ? "^2" : ""));
  const std::size_t slot =
      static_cast<std::size_t>(env) * static_cast<std::size_t>(m.nv) + static_cast<std::size_t>(fastest);
  if (!mode_.empty() && mode_[slot] > DofMode::kForce) {
    text += format(", which its gains drive (kp {}, kv {}): a timestep below {} s, smaller gains, or an armature",
                   kp_[slot], kv_[slot], m.timestep);
    return text;
  }
  for (std::size_t i = 0; i < m.actuators.size(); ++i) {
    const ActuatorInfo& a = m.actuators[i];
    if (std::find(a.moves.begin(), a.moves.end(), static_cast<int>(fastest)) == a.moves.end()) continue;
    text += format(", which {} drives (control {:.4g}): a timestep below {} s, less control or gain",
                   quoted("actuator", a.name, static_cast<std::int64_t>(i)),
                   a.ctrl_count > 0 ? real_at(ctrl, env, a.ctrl) : 0.0, m.timestep);
    return text;
  }
  text += format(": a timestep below {} s, or inertias that fit the forces on it", m.timestep);
  return text;
}

std::string Scene::overlaps(int env) {
  need_built();
  COHORT_THROW_UNLESS(env >= 0 && env < n_envs(), "environment {} does not exist: there are {}", env, n_envs());
  return describe_overlaps(info(), engine_->contacts(env));
}

void Scene::report_stops() {
  // On a device the status has to come from there: now and then.
  constexpr std::int64_t kStepsOnDevice = 100;
  if (options_.device.kind != DeviceKind::kCpu && steps_ % kStepsOnDevice != 0) return;
  const ArrayView status = engine_->host_view(Field::kStatus, Access::kRead);
  int stopped = 0, first = -1;
  for (int e = 0; e < n_envs(); ++e) {
    if (static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] == kStatusOk) continue;
    if (first < 0) first = e;
    ++stopped;
  }
  if (stopped == 0) {
    stop_said_ = false;
    return;
  }
  const auto reason = [&] { return why_stopped(first); };
  if (stopped == n_envs()) {
    throw Error(n_envs() == 1
                    ? format("the simulation stopped: {}", reason())
                    : format("every environment stopped; environment {}: {}", global_environment_id(first), reason()));
  }
  if (stop_said_) return;
  stop_said_ = true;
  log::warning("environment {} stopped, the others go on (Field::kStatus, Scene::why_stopped): {}",
               global_environment_id(first), reason());
}

}  // namespace cohort::sim
