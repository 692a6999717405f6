#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "sim/host/kinematics.h"
#include "tasks/file/angles.h"
#include "tasks/file/ik_action.h"
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

namespace {

/// scale: what an action of 1 moves a joint by.
void check_hinges(const sim::ModelInfo& info, const std::vector<int>& joints, const std::vector<double>& scale,
                  const std::vector<double>& offset) {
  for (std::size_t i = 0; i < joints.size(); ++i) {
    const sim::JointInfo& joint = info.joints[static_cast<std::size_t>(joints[i])];
    if (joint.type != sim::JointType::kHinge) continue;
    check_angle(scale[i], format("the scale of '{}'", joint.name));
    check_angle(offset[i], format("the offset of '{}'", joint.name));
  }
}

}  // namespace

void PlanReader::read_actions(JsonSection& actions, Quantities& names) {
  ActionSpec& spec = plan_.spec.action;
  each(actions, [&](const std::string& name, const Json& value) {
    JsonSection s(value, actions.path() + "." + name, wrong_);
    std::string type = name;
    static const std::vector<std::string> kTypes{"joint_position",       "joint_velocity",  "joint_effort",
                                                 "joint_position_delta", "differential_ik", "actuator"};
    if (type == "joint_pos") type = "joint_position";
    s.take("type", type);
    if (std::ranges::find(kTypes, type) == kTypes.end()) {
      const std::string near = config::nearest(type, kTypes);
      throw Error(format("the type '{}' is none of {}{}", type, join(kTypes, ", "),
                         near.empty() ? "" : format(", did you mean '{}'?", near)));
    }
    if (type == "differential_ik") return read_ik_action(name, s, names);
    if (type == "actuator") return read_actuator_action(name, s, names);
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
    if (positions || type == "joint_position_delta") check_hinges(plan_.model.info, joints, scale, offset);
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
    action = delayed_by_event(names, delayed_by(names, action, delay, "actions." + name));
    const auto numbers = [&](const std::vector<double>& values) {
      return g.constant(std::vector<float>(values.begin(), values.end()));
    };
    Expr target = g.add(g.multiply(action, numbers(scale)), numbers(offset));
    if (positions) {
      // What events draw: other joints' zeros, and where the servos' encoders have theirs.
      if (has_event("joint_default_pos") && !(s.has("offset") && s.get("offset") != "default"))
        target = g.add(target, names.drawn(TaskParameter::kJointDefault, joints));
      if (has_event("encoder_bias")) target = g.subtract(target, names.drawn(TaskParameter::kEncoderBias, joints));
    }
    if (type == "joint_position_delta") {
      std::vector<int> qpos;
      for (const int j : joints) qpos.push_back(plan_.model.info.joints[static_cast<std::size_t>(j)].qpos);
      target = g.add(target, g.load(names.array({ArrayPlace::kField, static_cast<int>(sim::Field::kQpos)}), qpos));
    }
    give_targets(names, joints, ctrls, target);
  });
  if (wrong_.empty() && spec.names.empty()) wrong("actions", "are missing: nothing moves the robot");
}

void PlanReader::give_targets(Quantities& names, const std::vector<int>& joints, const std::vector<int>& ctrls,
                              const Expr& targets) {
  Graph& g = names.graph();
  for (std::size_t i = 0; i < ctrls.size(); ++i) {
    COHORT_THROW_UNLESS(controlled_.insert(ctrls[i]).second, "the joint '{}' has an action already",
                        plan_.model.info.joints[static_cast<std::size_t>(joints[i])].name);
    g.store(names.array({ArrayPlace::kControl}), ctrls[i], g.columns(targets, {static_cast<int>(i)}));
  }
}

std::vector<int> PlanReader::joints_moving(const sim::SiteInfo& frame, JsonSection& s, const Quantities& names) {
  if (s.has("joints")) return names.joints(texts_of(s, "joints", {}));
  const sim::ModelInfo& info = plan_.model.info;
  std::vector<int> joints;
  for (const int j : plan_.model.of_robot().joints)
    for (int l = frame.link; l > 0; l = info.links[static_cast<std::size_t>(l)].parent)
      if (info.joints[static_cast<std::size_t>(j)].link == l) joints.push_back(j);
  COHORT_THROW_UNLESS(!joints.empty(), "no joint of the robot moves '{}'", frame.name);
  return joints;
}

PlanReader::FramePose PlanReader::pose_at_start(const sim::SiteInfo& frame) const {
  const sim::Kinematics kinematics(plan_.compiled->mjb);
  const sim::Kinematics::Pose pose = kinematics.at(plan_.model.qpos).link_pose(frame.link);
  FramePose out{.pos = pose.pos, .quat = product(pose.quat, frame.quat)};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) out.pos[i] += pose.rot[3 * i + k] * frame.pos[k];
  return out;
}

void PlanReader::read_ik_action(const std::string& name, JsonSection& s, Quantities& names) {
  ActionSpec& spec = plan_.spec.action;
  const sim::ModelInfo& info = plan_.model.info;
  std::string site, link, command = "pose";
  s.take("site", site), s.take("link", link);
  COHORT_THROW_UNLESS(site.empty() != link.empty(), "needs `site` or `link`: the frame that it moves");
  const sim::SiteInfo frame = ik_frame(info, site.empty() ? link : site, link.empty());
  IkSettings ik;
  s.take_choice("command_type", command, {"pose", "position"});
  ik.pose = command == "pose";
  s.take("use_relative_mode", ik.relative);
  s.take("damping", ik.damping), s.take("max_dq", ik.max_change), s.take("posture", ik.posture);
  COHORT_THROW_UNLESS(ik.damping > 0 && ik.max_change > 0, "damping and max_dq are above zero");
  COHORT_THROW_UNLESS(ik.posture >= 0 && ik.posture <= 1, "posture is {:g}: a share from 0 to 1", ik.posture);
  const std::vector<int> joints = joints_moving(frame, s, names);
  std::vector<int> ctrls;
  for (const int j : joints)
    ik.rest.push_back(plan_.model.qpos[static_cast<std::size_t>(info.joints[static_cast<std::size_t>(j)].qpos)]);
  for (const int j : joints) ctrls.push_back(control_of(j, "joint_position"));
  const auto n = static_cast<std::size_t>(ik.width());
  std::vector<double> scale(n, 1.0), offset(n, 0.0);
  if (s.has("scale")) {
    std::vector<double> given;
    if (s.get("scale").is_number())
      given.assign(n, s.get("scale").get<double>());
    else
      s.take("scale", given);
    COHORT_THROW_UNLESS(given.size() == n, "scale has {} numbers, and the action {}", given.size(), n);
    scale = given;
  }
  if (!ik.relative) {
    // From where the frame is when episodes begin.
    const FramePose begin = pose_at_start(frame);
    std::ranges::copy(begin.pos, offset.begin());
    if (ik.pose) std::ranges::copy(begin.quat, offset.begin() + 3);
    if (s.has("offset") && s.get("offset") != "default") {
      std::vector<double> given;
      s.take("offset", given);
      COHORT_THROW_UNLESS(given.size() == n, "offset has {} numbers, and the action {}", given.size(), n);
      offset = given;
    }
  }
  const Range clip = take_range(s, "clip", {-1, 1});
  COHORT_THROW_UNLESS(clip.low < clip.high, "clip is [{:g}, {:g}]: low has to be below high", clip.low, clip.high);
  bool keeps = false;
  s.take("keep_orientation", keeps);
  COHORT_THROW_UNLESS(!keeps || (ik.relative && !ik.pose),
                      "keep_orientation is of `command_type: position` with use_relative_mode");
  if (keeps) ik.orientation = pose_at_start(frame).quat;
  if (s.has("workspace")) {
    COHORT_THROW_UNLESS(ik.relative, "workspace is of use_relative_mode: scale and offset bound what is absolute");
    s.in("workspace", [&](JsonSection& box) {
      static constexpr const char* kAxes[] = {"x", "y", "z"};
      for (std::size_t i = 0; i < 3; ++i) {
        const Range range = take_range(box, kAxes[i], {-INFINITY, INFINITY});
        ik.low[i] = range.low, ik.high[i] = range.high;
      }
    });
    ik.step = *std::max_element(scale.begin(), scale.begin() + 3) * std::max(std::abs(clip.low), std::abs(clip.high));
  }
  const Range delay = take_range(s, "delay");
  static constexpr const char* kRelative[] = {"x", "y", "z", "rx", "ry", "rz"};
  static constexpr const char* kAbsolute[] = {"x", "y", "z", "qw", "qx", "qy", "qz"};
  Graph& g = names.graph();
  std::vector<int> columns;
  std::vector<std::string> own_names;
  for (std::size_t i = 0; i < n; ++i) own_names.push_back(name + "_" + (ik.relative ? kRelative[i] : kAbsolute[i]));
  s.take("names", own_names);
  COHORT_THROW_UNLESS(own_names.size() == n, "names has {} names, and the action {} numbers", own_names.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    columns.push_back(static_cast<int>(spec.names.size()));
    spec.names.push_back(own_names[i]);
    spec.low.push_back(static_cast<float>(clip.low)), spec.high.push_back(static_cast<float>(clip.high));
  }
  std::string unit = format("differential_ik by scale: m{}", !ik.pose      ? ""
                                                             : ik.relative ? " and rad"
                                                                           : " and a quaternion");
  s.take("unit", unit);
  spec.unit += (spec.unit.empty() ? "" : "; ") + unit;
  moves_frames_ = true;
  const Expr action = delayed_by_event(
      names, delayed_by(names, g.load(names.array({ArrayPlace::kAction}), columns), delay, "actions." + name));
  const auto numbers = [&](const std::vector<double>& values) {
    return g.constant(std::vector<float>(values.begin(), values.end()));
  };
  const Expr wanted = g.add(g.multiply(action, numbers(scale)), numbers(offset));
  give_targets(names, joints, ctrls, ik_targets(names, frame, joints, ik, wanted));
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
  throw Error(
      other != nullptr
          ? format("{} needs {} actuator, and '{}' of the joint '{}' is {} one: change the type, or the model", type,
                   kinds[static_cast<int>(wanted)], other->name, j.name, kinds[static_cast<int>(other->kind)])
          : format("the joint '{}' has no actuator of its own: choose others by `joints: PATTERN`, give the model one, "
                   "or drive what moves it, such as a tendon's, by `type: actuator`",
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

bool PlanReader::has_event(const std::string& type) const {
  if (!content_.contains("events") || !content_["events"].is_object()) return false;
  for (const auto& [name, value] : content_["events"].items())
    if (!value.is_null() && type_of(name, value) == type) return true;
  return false;
}

Expr PlanReader::delayed_by_event(Quantities& names, const Expr& value) const {
  if (!has_event("action_delay")) return value;
  double longest = 0;
  for (const auto& [name, event] : content_["events"].items())
    if (!event.is_null() && type_of(name, event) == "action_delay" && event.contains("delay_range"))
      longest = std::max(longest, range_of(event["delay_range"], "events." + name + ".delay_range").high);
  return terms::delayed(names.graph(), names.step(), value, names.drawn(TaskParameter::kActionDelay, {0}),
                        static_cast<int>(longest));
}

}  // namespace cohort::tasks
