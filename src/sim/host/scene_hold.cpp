// Scene: the controls with which position servos hold where they are.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/real_at.h"
#include "sim/host/import/handle.h"
#include "sim/host/scene.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// One float's rounding of a coordinate, with room.
constexpr double kRounding = 1e-6;

bool same_state(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= kRounding * std::max(1.0, std::abs(b[i])))) return false;
  }
  return true;
}

std::vector<double> row_of(const ArrayView& v, int env) {
  std::vector<double> row(static_cast<std::size_t>(v.shape[1]));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = real_at(v, env, static_cast<std::int64_t>(i));
  return row;
}

}  // namespace

std::vector<std::string> Scene::hold(const Indices& envs) {
  const ModelInfo& m = info();
  const std::vector<std::int32_t> which = envs.resolve(n_envs(), "environment");
  std::vector<std::string> lost;
  const bool any = std::any_of(m.actuators.begin(), m.actuators.end(), [](const ActuatorInfo& a) { return a.servo; });
  if (!any || which.empty()) return lost;
  const mj::ModelPtr model = compiled_.mjb.empty() ? nullptr : mj::load(compiled_.mjb);
  const mj::DataPtr data(model ? mj::mj_makeData(model.get()) : nullptr);
  const ArrayView qpos = engine_->host_view(Field::kQpos, Access::kRead),
                  act = engine_->host_view(Field::kAct, Access::kRead);
  // A compiled model knows its default state and its keyframes.
  const auto saved_holds = [&](const std::vector<double>& q) {
    std::vector<mj::ServoHold> holds;
    for (const ActuatorInfo& a : m.actuators) holds.push_back({a.servo, a.holds_at_once, a.hold});
    if (same_state(q, m.qpos0)) return holds;
    for (const KeyframeInfo& key : m.keyframes) {
      if (!same_state(q, key.qpos)) continue;
      for (std::size_t i = 0; i < holds.size(); ++i) {
        holds[i].control = key.hold[i], holds[i].at_once = holds[i].servo && key.hold_later[i] == 0;
      }
      return holds;
    }
    throw Error(
        format("{} is compiled, and knows what holds its default state and its keyframes, not this state: build "
               "the scene from the model's file",
               compiled_file_.string()));
  };
  std::vector<double> last_q, last_act;
  std::vector<mj::ServoHold> holds;
  std::vector<std::pair<std::int32_t, std::vector<double>>> rows;
  for (const std::int32_t env : which) {
    std::vector<double> q = row_of(qpos, env), a = row_of(act, env);
    if (holds.empty() || q != last_q || a != last_act) {
      holds = data ? mj::servo_holds(*model, *data, q, a) : saved_holds(q);
      last_q = std::move(q), last_act = std::move(a);
    }
    std::vector<double> controls;
    for (std::size_t i = 0; i < m.actuators.size(); ++i) {
      const ActuatorInfo& actuator = m.actuators[i];
      double control = holds[i].control;
      if (actuator.limited) control = std::clamp(control, actuator.range[0], actuator.range[1]);
      controls.push_back(control);
      if (!holds[i].servo) continue;
      const std::string name = actuator.name.empty() ? format("actuator {}", i) : format("`{}`", actuator.name);
      std::string why;
      if (!holds[i].at_once) {
        why = name + " (its activation begins at zero)";
        if (std::any_of(last_act.begin(), last_act.end(), [](double x) { return x != 0; }))
          why = name + " (its activation begins elsewhere)";
      } else if (std::abs(control - holds[i].control) > kRounding) {
        why = format("{} (the start asks for {:.4g}, its controls end at {:.4g} and {:.4g})", name, holds[i].control,
                     actuator.range[0], actuator.range[1]);
      }
      if (!why.empty() && std::find(lost.begin(), lost.end(), why) == lost.end()) lost.push_back(std::move(why));
    }
    rows.emplace_back(env, std::move(controls));
  }
  const ArrayView ctrl = engine_->host_view(Field::kCtrl, Access::kWrite);
  for (const auto& [env, controls] : rows) {
    for (std::size_t i = 0; i < controls.size(); ++i) {
      if (m.actuators[i].servo) set_real_at(ctrl, env, m.actuators[i].ctrl, controls[i]);
    }
  }
  derived_valid_ = false;
  return lost;
}

}  // namespace cohort::sim
