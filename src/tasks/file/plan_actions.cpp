#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "tasks/file/patterns.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

std::vector<std::string> PlanReader::texts_of(JsonSection& s, const std::string& key,
                                              std::vector<std::string> standard) {
  if (!s.has(key)) return standard;
  if (s.get(key).is_string()) return {s.get(key).get<std::string>()};
  std::vector<std::string> texts;
  s.take(key, texts);
  return texts;
}

void PlanReader::read_actions(JsonSection& actions, Quantities& names) {
  ActionSpec& spec = plan_.spec.action;
  each(actions, [&](const std::string& name, const Json& value) {
    JsonSection s(value, actions.path() + "." + name, wrong_);
    std::string type = name;
    static const std::vector<std::string> kTypes{"joint_position", "joint_velocity", "joint_effort",
                                                 "joint_position_delta"};
    if (type == "joint_pos") type = "joint_position";
    s.take("type", type);
    if (std::ranges::find(kTypes, type) == kTypes.end()) {
      const std::string near = config::nearest(type, kTypes);
      throw Error(format("the type '{}' is none of {}{}", type, join(kTypes, ", "),
                         near.empty() ? "" : format(", did you mean '{}'?", near)));
    }
    const std::vector<int> joints = names.joints(texts_of(s, "joints", {}));
    const std::vector<std::string> joint_names = plan_.model.joint_names(joints);
    std::vector<int> ctrls;
    for (const int j : joints) ctrls.push_back(control_of(j, type));
    const Json one = 1.0;
    const std::vector<double> scale = values_by_name(s.has("scale") ? s.get("scale") : one, joint_names, "joint");
    const bool positions = type == "joint_position";
    std::vector<double> offset(joints.size());
    if (s.has("offset") && s.get("offset") != "default")
      offset = values_by_name(s.get("offset"), joint_names, "joint");
    else if (positions)
      for (std::size_t i = 0; i < joints.size(); ++i)
        offset[i] =
            plan_.model
                .qpos[static_cast<std::size_t>(plan_.model.info.joints[static_cast<std::size_t>(joints[i])].qpos)];
    plan_.contract.action_scale.insert(plan_.contract.action_scale.end(), scale.begin(), scale.end());
    for (std::size_t i = 0; positions && i < joints.size(); ++i) {
      plan_.contract.joint_names.push_back(joint_names[i]);
      plan_.contract.default_joint_pos.push_back(offset[i]);
    }
    const Range clip = take_range(s, "clip", {-1, 1});
    COHORT_THROW_UNLESS(clip.low < clip.high, "clip is [{:g}, {:g}]: low has to be below high", clip.low, clip.high);
    const Range delay = take_range(s, "delay");
    const int first = static_cast<int>(spec.names.size()), n = static_cast<int>(joints.size());
    std::vector<std::string> own_names = joint_names;
    s.take("names", own_names);
    COHORT_THROW_UNLESS(own_names.size() == joint_names.size(), "names has {} names, and there are {} joints",
                        own_names.size(), joint_names.size());
    for (const std::string& own_name : own_names) {
      spec.names.push_back(own_name);
      spec.low.push_back(static_cast<float>(clip.low)), spec.high.push_back(static_cast<float>(clip.high));
    }
    const std::string unit = type == "joint_effort"     ? "N m or N"
                             : type == "joint_velocity" ? "rad/s or m/s"
                                                        : "rad or m";
    std::string text = format("{} by scale: {}", type, unit);
    s.take("unit", text);
    spec.unit += (spec.unit.empty() ? "" : "; ") + text;
    Graph& g = names.graph();
    std::vector<int> columns;
    for (int i = 0; i < n; ++i) columns.push_back(first + i);
    Expr action = g.load(names.array({ArrayPlace::kAction}), columns);
    action = delayed_by(names, action, delay, "actions." + name);
    const auto numbers = [&](const std::vector<double>& values) {
      return g.constant(std::vector<float>(values.begin(), values.end()));
    };
    Expr target = g.add(g.multiply(action, numbers(scale)), numbers(offset));
    if (type == "joint_position_delta") {
      std::vector<int> qpos;
      for (const int j : joints) qpos.push_back(plan_.model.info.joints[static_cast<std::size_t>(j)].qpos);
      target = g.add(target, g.load(names.array({ArrayPlace::kField, static_cast<int>(sim::Field::kQpos)}), qpos));
    }
    for (int i = 0; i < n; ++i) {
      const int ctrl = ctrls[static_cast<std::size_t>(i)];
      COHORT_THROW_UNLESS(controlled_.insert(ctrl).second, "the joint '{}' has an action already",
                          joint_names[static_cast<std::size_t>(i)]);
      g.store(names.array({ArrayPlace::kControl}), ctrl, g.columns(target, {i}));
    }
  });
  if (wrong_.empty() && spec.names.empty()) wrong("actions", "are missing: nothing moves the robot");
}

int PlanReader::control_of(int joint, const std::string& type) const {
  using Kind = sim::ActuatorInfo::Kind;
  const sim::ModelInfo& info = plan_.model.info;
  const sim::JointInfo& j = info.joints[static_cast<std::size_t>(joint)];
  const Kind wanted = type == "joint_effort"     ? Kind::kMotor
                      : type == "joint_velocity" ? Kind::kVelocity
                                                 : Kind::kPosition;
  const sim::ActuatorInfo* other = nullptr;
  for (const sim::ActuatorInfo& actuator : info.actuators) {
    if (actuator.dof != j.dof || actuator.ctrl_count != 1) continue;
    if (actuator.kind == wanted) return actuator.ctrl;
    other = &actuator;
  }
  const char* kinds[] = {"another", "a motor", "a position", "a velocity"};
  throw Error(other != nullptr
                  ? format("{} needs {} actuator, and '{}' of the joint '{}' is {} one: change the type, or the model",
                           type, kinds[static_cast<int>(wanted)], other->name, j.name,
                           kinds[static_cast<int>(other->kind)])
                  : format("the joint '{}' has no actuator: choose others by `joints: PATTERN`, or give the model one",
                           j.name));
}

Expr PlanReader::delayed_by(Quantities& names, const Expr& value, const Range& delay, const std::string& place) {
  if (delay.high <= 0) return value;
  COHORT_THROW_UNLESS(
      delay.low >= 0 && delay.high <= 100 && delay.low == std::floor(delay.low) && delay.high == std::floor(delay.high),
      "delay is [{:g}, {:g}]: whole control steps from 0 to 100", delay.low, delay.high);
  Graph& g = names.graph();
  const Expr share = g.uniform(place + ".delay", 1);
  const Expr drawn =
      g.unary(Op::kFloor, g.add(g.constant(static_cast<float>(delay.low)),
                                g.multiply(share, g.constant(static_cast<float>(delay.high - delay.low + 1)))));
  const Expr steps = terms::at_reset(g, names.step(), drawn);
  return terms::delayed(g, names.step(), value, steps, static_cast<int>(delay.high));
}

}  // namespace cohort::tasks
