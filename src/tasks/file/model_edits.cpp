#include "tasks/file/model_edits.h"

#include <functional>

#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;

namespace {

template <class T>
void take_some(JsonSection& s, const std::string& key, std::optional<T>& target) {
  if (!s.has(key)) return;
  T value{};
  s.take(key, value);
  target = value;
}

std::optional<std::array<double, 2>> range_of(JsonSection& s, const std::string& key) {
  if (!s.has(key)) return std::nullopt;
  std::vector<double> range;
  s.take(key, range);
  COHORT_THROW_UNLESS(range.size() == 2 && range[0] <= range[1], "{}.{} needs [low, high]", s.path().substr(1), key);
  return std::array<double, 2>{range[0], range[1]};
}

std::vector<double> numbers_of(JsonSection& s, const std::string& key) {
  std::vector<double> numbers;
  if (!s.has(key)) return numbers;
  if (s.get(key).is_number())
    numbers.push_back(s.get(key).get<double>());
  else
    s.take(key, numbers);
  return numbers;
}

std::vector<std::string> texts_of(JsonSection& s, const std::string& key) {
  std::vector<std::string> texts;
  if (!s.has(key)) return texts;
  if (s.get(key).is_string())
    texts.push_back(s.get(key).get<std::string>());
  else
    s.take(key, texts);
  return texts;
}

/// Entries of an object, by name.
void each(JsonSection& parent, const std::string& key,
          const std::function<void(const std::string&, JsonSection&)>& body) {
  parent.in(key, [&](JsonSection& section) {
    section.each(
        [&](const std::string& name, const Json&) { section.in(name, [&](JsonSection& one) { body(name, one); }); });
  });
}

}  // namespace

sim::ModelEdits read_model_edits(JsonSection& section) {
  sim::ModelEdits edits;
  section.take("repair_inertia", edits.repair_inertia);
  each(section, "actuators", [&](const std::string& name, JsonSection& s) {
    sim::ActuatorEdit actuator;
    std::string type = "position";
    s.take_choice("type", type, {"position", "velocity", "motor"});
    using Kind = sim::ActuatorEdit::Kind;
    actuator.kind = type == "position" ? Kind::kPosition : type == "velocity" ? Kind::kVelocity : Kind::kMotor;
    actuator.joints = texts_of(s, "joints");
    // The name is the pattern of who needs no other.
    if (actuator.joints.empty()) actuator.joints = {name};
    s.take("stiffness", actuator.stiffness);
    s.take("damping", actuator.damping);
    take_some(s, "effort_limit", actuator.effort_limit);
    take_some(s, "armature", actuator.armature);
    take_some(s, "frictionloss", actuator.friction_loss);
    s.take("gear", actuator.gear);
    actuator.ctrl_range = range_of(s, "ctrl_range");
    edits.actuators.push_back(std::move(actuator));
  });
  each(section, "joints", [&](const std::string& pattern, JsonSection& s) {
    sim::JointEdit joint{.pattern = pattern};
    take_some(s, "armature", joint.armature);
    take_some(s, "damping", joint.damping);
    take_some(s, "frictionloss", joint.friction_loss);
    take_some(s, "stiffness", joint.stiffness);
    joint.range = range_of(s, "range");
    edits.joints.push_back(std::move(joint));
  });
  each(section, "geoms", [&](const std::string& pattern, JsonSection& s) {
    sim::GeomEdit geom{.pattern = pattern};
    take_some(s, "contype", geom.contype);
    take_some(s, "conaffinity", geom.conaffinity);
    take_some(s, "condim", geom.condim);
    take_some(s, "priority", geom.priority);
    take_some(s, "group", geom.group);
    take_some(s, "margin", geom.margin);
    take_some(s, "gap", geom.gap);
    geom.friction = numbers_of(s, "friction");
    geom.solref = numbers_of(s, "solref");
    geom.solimp = numbers_of(s, "solimp");
    edits.geoms.push_back(std::move(geom));
  });
  edits.disable_collisions = texts_of(section, "disable_collisions");
  each(section, "sensors", [&](const std::string& name, JsonSection& s) {
    sim::SensorEdit sensor{.type = "", .object = "", .name = name};
    s.take("type", sensor.type);
    s.take("object", sensor.object);
    edits.sensors.push_back(std::move(sensor));
  });
  each(section, "imu", [&](const std::string& name, JsonSection& s) {
    sim::ImuEdit imu{.at = "", .name = name};
    s.take("at", imu.at);
    edits.imus.push_back(std::move(imu));
  });
  return edits;
}

}  // namespace cohort::tasks
