#include "tasks/file/quantities.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "sim/options.h"
#include "tasks/events/randomization.h"
#include "tasks/file/patterns.h"
#include "tasks/terrain/scan_pattern.h"

namespace cohort::tasks {

using sim::Field;
using terms::Argument;
using terms::Expr;
using terms::Op;

namespace {

constexpr QuantityEntry kQuantities[] = {
    {"step", "1", "1", "control steps since the reset"},
    {"time", "1", "s", "since the reset"},
    {"lifetime", "1", "1", "control steps of this environment in all episodes"},
    {"last_step", "1", "", "true in the step with which the episode's time is over"},
    {"control_period", "1", "s", "of a control step"},
    {"action", "n", "1", "the policy's, within its bounds; 0 at the reset"},
    {"command.NAME", "n", "", "a command of the file, also command(\"NAME\")"},
    {"encoder_bias", "n", "rad, m", "of the robot's hinges and slides, what the event encoder_bias has drawn; else 0"},
    {"joint_default_offset", "n", "rad, m", "of the robot's hinges and slides, of the event joint_default_pos; else 0"},
    {"action_delay", "1", "control steps", "what the event action_delay has drawn; else 0"},
    {"joint_pos", "n", "rad, m", "of the robot's hinges and slides; joint_pos(\"PATTERN\") of some"},
    {"joint_vel", "n", "rad/s, m/s", "likewise"},
    {"joint_pos_rel", "n", "rad, m", "from where episodes begin"},
    {"joint_default", "n", "rad, m", "where episodes begin"},
    {"joint_lower", "n", "rad, m", "lower end of the soft limits; -inf without"},
    {"joint_upper", "n", "rad, m", "upper end of the soft limits; inf without"},
    {"joint_acc", "n", "rad/s^2, m/s^2", "difference of the velocities of two control steps"},
    {"joint_torque", "n", "N m, N", "of the actuators, in the last timestep"},
    {"base.position", "3", "m", "of the robot's base in the world; ENTITY.position of another entity"},
    {"base.quaternion", "4", "1", "w x y z"},
    {"base.linear_velocity", "3", "m/s", "in the base's frame"},
    {"base.angular_velocity", "3", "rad/s", "in the base's frame"},
    {"base.linear_velocity_world", "3", "m/s", ""},
    {"base.angular_velocity_world", "3", "rad/s", ""},
    {"base.projected_gravity", "3", "1", "direction of gravity in the base's frame"},
    {"base.heading", "1", "rad", "direction of the base's x axis"},
    {"base.height", "1", "m", "of the base over the ground below it"},
    {"ground_height", "k", "m", "ground_height(x): of the ground below points (x, y, ...), in the world"},
    {"terrain_half_size", "2", "m", "half the generated ground, with its border, along x and y; 1e9 without one"},
    {"patch_half_size", "2", "m", "half a patch of it, likewise"},
    {"height_scan", "k", "m",
     "height_scan(size x, size y, resolution): base over the ground at a grid turned with its heading"},
    {"entity_position", "3", "m", "entity_position(\"NAME\"): as NAME.position"},
    {"entity_quaternion", "4", "1", "likewise"},
    {"pushed", "1", "", "true in the step before which an event has pushed"},
    {"link_mass", "k", "kg", "link_mass(\"PATTERN\"): of links, as an event has drawn it"},
    {"geom_friction", "k", "1", "geom_friction(\"PATTERN\"): sliding friction of geoms, as an event has drawn it"},
    {"link_position", "k x 3", "m", "link_position(\"PATTERN\"): of links, in the world"},
    {"link_quaternion", "k x 4", "1", "likewise"},
    {"link_velocity", "k x 3", "m/s", "of links' origins, in the world"},
    {"link_angular_velocity", "k x 3", "rad/s", "of links, in the world"},
    {"site_position", "k x 3", "m",
     "site_position(\"PATTERN\"): of frames that the model has on its links, in the world"},
    {"site_quaternion", "k x 4", "1", "likewise"},
    {"site_velocity", "k x 3", "m/s", "of sites, in the world"},
    {"site_angular_velocity", "k x 3", "rad/s", "likewise, that of their links"},
    {"contact", "k", "",
     "contact(\"PATTERN\"): whether geoms, or links with all their geoms, push against what is fixed"},
    {"contact_force", "k x 3", "N", "likewise, the force on them in the world"},
    {"other_contact", "k", "", "whether they push against what moves: the robot itself, or things"},
    {"other_contact_force", "k x 3", "N", "likewise, the force on them in the world"},
    {"sensor", "n", "", "sensor(\"NAME\"): of the model; evaluates it once more in a control step"},
};

std::vector<int> range(int first, int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}

}  // namespace

std::span<const QuantityEntry> quantity_entries() {
  return kQuantities;
}

const TaskModel::Entity* TaskModel::find(const std::string& name) const {
  const auto entity = std::ranges::find(entities, name, &Entity::name);
  return entity == entities.end() ? nullptr : &*entity;
}

std::vector<std::string> TaskModel::joint_names(const std::vector<int>& joints) const {
  std::vector<std::string> names;
  for (const int joint : joints) names.push_back(info.joints[static_cast<std::size_t>(joint)].name);
  return names;
}

int Quantities::array(ArrayPlace place) {
  const auto same = std::ranges::find(arrays_, place);
  if (same != arrays_.end()) return static_cast<int>(same - arrays_.begin());
  arrays_.push_back(place);
  return static_cast<int>(arrays_.size()) - 1;
}

Expr Quantities::field(Field field, std::vector<int> values, int cols) {
  return g_.load(array({ArrayPlace::kField, static_cast<int>(field)}), std::move(values), cols);
}

Expr Quantities::left(Field which, std::vector<int> values, int cols) {
  if (std::ranges::find(leaves_, which) == leaves_.end()) leaves_.push_back(which);
  return field(which, std::move(values), cols);
}

Expr Quantities::read(const std::string& formula, const std::string& place) {
  place_ = place;
  try {
    return terms::read_formula(formula, g_, *this);
  } catch (const Error& e) {
    throw Error(format("{}: {}", place, e.what()));
  }
}

bool Quantities::text(const std::string& name, std::vector<std::string>& texts) {
  const auto parameter = parameters_.find(name);
  if (parameter == parameters_.end() || parameter->second.value) return false;
  texts = parameter->second.texts;
  return true;
}

std::vector<std::string> Quantities::all() const {
  std::vector<std::string> names;
  for (const QuantityEntry& entry : kQuantities) names.emplace_back(entry.name);
  for (const auto& [name, unused] : commands_) names.push_back("command." + name);
  for (const auto& [name, unused] : defined_) names.push_back(name);
  for (const auto& [name, unused] : parameters_) names.push_back(name);
  return names;
}

std::vector<int> Quantities::joints(const std::vector<std::string>& patterns) const {
  const std::vector<int>& all = model_.of_robot().joints;
  if (patterns.empty()) return all;
  std::vector<int> chosen;
  for (const int i : match_names(model_.joint_names(all), patterns, "joint"))
    chosen.push_back(all[static_cast<std::size_t>(i)]);
  return chosen;
}

std::vector<std::string> Quantities::texts_of(const std::string& name, const std::vector<Argument>& arguments) const {
  std::vector<std::string> texts;
  for (const Argument& argument : arguments) {
    const auto* const text = std::get_if<std::vector<std::string>>(&argument);
    COHORT_THROW_UNLESS(text, "{}(...) takes names or patterns in quotation marks", name);
    texts.insert(texts.end(), text->begin(), text->end());
  }
  return texts;
}

std::vector<int> Quantities::links_of(const std::vector<Argument>& arguments, const std::string& what) const {
  const std::vector<std::string> patterns = texts_of(what, arguments);
  COHORT_THROW_UNLESS(!patterns.empty(), "{}(\"PATTERN\") needs links", what);
  std::vector<std::string> names;
  for (const sim::LinkInfo& link : model_.info.links) names.push_back(link.name);
  return match_names(names, patterns, "link");
}

/// Of sites: what follows from their links' poses and where they are on them.
Expr Quantities::of_sites(const std::string& name, const std::vector<Argument>& arguments) {
  const std::vector<std::string> patterns = texts_of(name, arguments);
  COHORT_THROW_UNLESS(!patterns.empty(), "{}(\"PATTERN\") needs sites", name);
  std::vector<std::string> names;
  for (const sim::SiteInfo& site : model_.info.sites) names.push_back(site.name);
  std::vector<int> positions, quaternions, linear, angular;
  std::vector<float> pos, quat;
  const std::vector<int> chosen = match_names(names, patterns, "site");
  for (const int s : chosen) {
    const sim::SiteInfo& site = model_.info.sites[static_cast<std::size_t>(s)];
    for (int i = 0; i < 3; ++i) {
      positions.push_back(3 * site.link + i);
      linear.push_back(6 * site.link + i), angular.push_back(6 * site.link + 3 + i);
      pos.push_back(static_cast<float>(site.pos[static_cast<std::size_t>(i)]));
    }
    for (int i = 0; i < 4; ++i) {
      quaternions.push_back(4 * site.link + i);
      quat.push_back(static_cast<float>(site.quat[static_cast<std::size_t>(i)]));
    }
  }
  const int n = static_cast<int>(chosen.size());
  if (name == "site_angular_velocity") return left(Field::kLinkTwist, angular, 3);
  const Expr turn = left(Field::kLinkQuat, quaternions, 4);
  if (name == "site_quaternion") return g_.quat_multiply(turn, g_.reshape(g_.constant(quat), n, 4));
  const Expr arm = g_.rotate(turn, g_.reshape(g_.constant(pos), n, 3), false);
  if (name == "site_position") return g_.add(left(Field::kLinkPos, positions, 3), arm);
  return g_.add(left(Field::kLinkTwist, linear, 3), g_.cross(left(Field::kLinkTwist, angular, 3), arm));
}

bool Quantities::task_quantity(const std::string& name, const std::vector<Argument>& arguments, Expr& value) {
  for (int p = 0; p < kTaskParameterCount; ++p) {
    const auto parameter = static_cast<TaskParameter>(p);
    if (name != task_parameter_name(parameter)) continue;
    if (parameter == TaskParameter::kActionDelay) {
      COHORT_THROW_UNLESS(arguments.empty(), "{} takes nothing in brackets", name);
      value = drawn(parameter, {0});
    } else {
      value = drawn(parameter, joints(texts_of(name, arguments)));
    }
    return true;
  }
  return false;
}

/// Geoms by their names; links, by theirs, with the sum over their geoms.
Expr Quantities::force_on(const std::vector<std::string>& patterns, const std::string& what, bool others) {
  COHORT_THROW_UNLESS(!patterns.empty(), "{}(\"PATTERN\") needs geoms or links", what);
  std::vector<std::string> geoms, links;
  for (const sim::GeomInfo& geom : model_.info.geoms) geoms.push_back(geom.name);
  for (const sim::LinkInfo& link : model_.info.links) links.push_back(link.name);
  const auto of_geom = [&](int geom) {
    std::vector<int> values;
    for (int i = 0; i < 3; ++i) values.push_back(6 * geom + (others ? 3 : 0) + i);
    return left(Field::kGeomForce, std::move(values), 3);
  };
  // What is fixed to the world is what the others push against.
  const std::vector<std::uint8_t> fixed = model_.info.fixed_geoms();
  std::vector<Expr> rows;
  try {
    for (const int geom : match_names(geoms, patterns, "geom"))
      if (fixed[static_cast<std::size_t>(geom)] == 0) rows.push_back(of_geom(geom));
    COHORT_THROW_UNLESS(!rows.empty(), "{}: all geoms that match are fixed to the world", what);
  } catch (const Error&) {
    if (std::ranges::any_of(
            geoms, [&](const std::string& geom) { return std::ranges::find(patterns, geom) != patterns.end(); }))
      throw;
    for (const int link : match_names(links, patterns, "geom or link")) {
      Expr sum = g_.constant({0, 0, 0});
      for (std::size_t g = 0; g < model_.info.geoms.size(); ++g)
        if (model_.info.geoms[g].link == link) sum = g_.add(sum, of_geom(static_cast<int>(g)));
      rows.push_back(sum);
    }
  }
  return g_.reshape(g_.join(rows), static_cast<int>(rows.size()), 3);
}

bool Quantities::joint_quantity(const std::string& name, const std::vector<Argument>& arguments, Expr& value) {
  if (!name.starts_with("joint_")) return false;
  static constexpr const char* kNames[] = {"joint_pos",   "joint_vel",   "joint_pos_rel", "joint_default",
                                           "joint_lower", "joint_upper", "joint_acc",     "joint_torque"};
  if (std::ranges::find(kNames, name, [](const char* n) { return std::string(n); }) == std::end(kNames)) return false;
  const std::vector<int> chosen = joints(texts_of(name, arguments));
  COHORT_THROW_UNLESS(!chosen.empty(), "{}: the robot '{}' has no hinges or slides", name, model_.of_robot().name);
  std::vector<int> qpos, dofs;
  std::vector<float> begin, lower, upper;
  for (const int j : chosen) {
    const sim::JointInfo& joint = model_.info.joints[static_cast<std::size_t>(j)];
    qpos.push_back(joint.qpos), dofs.push_back(joint.dof);
    begin.push_back(static_cast<float>(model_.qpos[static_cast<std::size_t>(joint.qpos)]));
    const double middle = 0.5 * (joint.range[0] + joint.range[1]), half = 0.5 * (joint.range[1] - joint.range[0]);
    const double far = joint.limited ? model_.soft_limit_factor * half : INFINITY;
    lower.push_back(joint.limited ? static_cast<float>(middle - far) : -INFINITY);
    upper.push_back(joint.limited ? static_cast<float>(middle + far) : INFINITY);
  }
  if (name == "joint_pos") value = field(Field::kQpos, qpos);
  if (name == "joint_vel") value = field(Field::kQvel, dofs);
  if (name == "joint_default") value = g_.constant(begin);
  if (name == "joint_pos_rel") value = g_.subtract(field(Field::kQpos, qpos), g_.constant(begin));
  if (name == "joint_lower") value = g_.constant(lower);
  if (name == "joint_upper") value = g_.constant(upper);
  if (name == "joint_torque") value = left(Field::kQfrcActuator, dofs);
  if (name == "joint_acc") {
    const Expr now = field(Field::kQvel, dofs);
    const Expr per = g_.constant(static_cast<float>(1 / model_.control_period));
    value = g_.multiply(g_.subtract(now, terms::previous(g_, step(), now)), per);
  }
  return true;
}

Expr Quantities::of_entity(const TaskModel::Entity& entity, const std::string& what) {
  const bool free = entity.free_qpos >= 0;
  const auto quaternion = [&] {
    return free                ? field(Field::kQpos, range(entity.free_qpos + 3, 4))
           : entity.mocap >= 0 ? field(Field::kMocapQuat, range(4 * entity.mocap, 4))
                               : left(Field::kLinkQuat, range(4 * entity.base, 4));
  };
  const auto moving = [&] { COHORT_THROW_UNLESS(free, "{} is fixed: it has no {}", entity.name, what); };
  if (what == "position")
    return free                ? field(Field::kQpos, range(entity.free_qpos, 3))
           : entity.mocap >= 0 ? field(Field::kMocapPos, range(3 * entity.mocap, 3))
                               : left(Field::kLinkPos, range(3 * entity.base, 3));
  if (what == "quaternion") return quaternion();
  if (what == "projected_gravity") return g_.rotate(quaternion(), g_.constant({0, 0, -1}), true);
  if (what == "heading") {
    const Expr forward = g_.rotate(quaternion(), g_.constant({1, 0, 0}), false);
    return g_.binary(Op::kAtan2, g_.columns(forward, {1}), g_.columns(forward, {0}));
  }
  if (what == "height") {
    const Expr position = of_entity(entity, "position");
    return g_.subtract(g_.columns(position, {2}), g_.ground_height(position));
  }
  // A free joint's velocity: linear in the world, angular in the body's frame.
  if (what == "linear_velocity_world") return moving(), field(Field::kQvel, range(entity.free_dof, 3));
  if (what == "linear_velocity")
    return moving(), g_.rotate(quaternion(), field(Field::kQvel, range(entity.free_dof, 3)), true);
  if (what == "angular_velocity") return moving(), field(Field::kQvel, range(entity.free_dof + 3, 3));
  if (what == "angular_velocity_world")
    return moving(), g_.rotate(quaternion(), field(Field::kQvel, range(entity.free_dof + 3, 3)), false);
  const std::vector<std::string> known{"position",
                                       "quaternion",
                                       "linear_velocity",
                                       "angular_velocity",
                                       "linear_velocity_world",
                                       "angular_velocity_world",
                                       "projected_gravity",
                                       "heading",
                                       "height"};
  const std::string near = config::nearest(what, known);
  throw Error(format("{} has no '{}'{}; it has {}", entity.name, what,
                     near.empty() ? "" : format(", did you mean '{}'?", near), cohort::join(known, ", ")));
}

bool Quantities::find(const std::string& name, const std::vector<Argument>& arguments, Expr& value) {
  const auto plain = [&] { COHORT_THROW_UNLESS(arguments.empty(), "{} takes nothing in brackets", name); };
  if (const auto given = parameters_.find(name); given != parameters_.end()) {
    COHORT_THROW_UNLESS(given->second.value, "'{}' is a name, which stands within brackets only", name);
    plain();
    value = *given->second.value;
    return true;
  }
  if (const auto known = defined_.find(name); known != defined_.end()) {
    plain();
    value = known->second;
    return true;
  }
  if (joint_quantity(name, arguments, value)) return true;
  if (task_quantity(name, arguments, value)) return true;
  if (name == "command" || name.starts_with("command.")) {
    std::string wanted = name.substr(std::min(name.size(), std::size_t{8}));
    if (name == "command") {
      const std::vector<std::string> texts = texts_of(name, arguments);
      COHORT_THROW_UNLESS(texts.size() == 1, "command(\"NAME\") takes one command");
      wanted = texts[0];
    }
    const auto command = commands_.find(wanted);
    if (command == commands_.end()) {
      std::vector<std::string> known;
      for (const auto& [of, unused] : commands_) known.push_back(of);
      throw Error(format("there is no command '{}': {}", wanted,
                         known.empty() ? "the file has no `commands`" : "there is " + cohort::join(known, ", ")));
    }
    value = judges_ ? command->second.during : command->second.next;
    return true;
  }
  // Defined behind the events: terms above them are about a step before which nobody has pushed yet.
  COHORT_THROW_UNLESS(name != "pushed", "'{}' is known to `observations` alone", name);
  if (name == "step") return plain(), value = step(), true;
  if (name == "time")
    return plain(), value = g_.multiply(step(), g_.constant(static_cast<float>(model_.control_period))), true;
  if (name == "control_period") return plain(), value = g_.constant(static_cast<float>(model_.control_period)), true;
  if (name == "last_step")
    return plain(), value = g_.compare(Op::kAtMost, g_.constant(static_cast<float>(model_.horizon)), step()), true;
  if (name == "terrain_half_size" || name == "patch_half_size") {
    plain();
    const auto& half = name == "patch_half_size" ? model_.patch_half_size : model_.terrain_half_size;
    value = g_.constant({static_cast<float>(half[0]), static_cast<float>(half[1])});
    return true;
  }
  if (name == "lifetime") {
    plain();
    const Expr memory = g_.memory("lifetime", 1, 1);
    value = g_.select(g_.started(step()), memory, g_.add(memory, g_.constant(1)));
    if (!g_.is_kept(memory)) g_.keep(memory, value);
    return true;
  }
  if (name == "action") {
    plain();
    COHORT_THROW_UNLESS(action_width_ > 0, "the file has no actions");
    value =
        g_.select(g_.started(step()), g_.constant(0), g_.load(array({ArrayPlace::kAction}), range(0, action_width_)));
    return true;
  }
  if (name == "link_position" || name == "link_quaternion") {
    std::vector<int> values;
    const int n = name == "link_position" ? 3 : 4;
    for (const int link : links_of(arguments, name))
      for (int i = 0; i < n; ++i) values.push_back(n * link + i);
    value = left(n == 3 ? Field::kLinkPos : Field::kLinkQuat, std::move(values), n);
    return true;
  }
  if (name == "link_mass") {
    value = g_.load(array({ArrayPlace::kParameter, static_cast<int>(sim::Parameter::kLinkMass)}),
                    links_of(arguments, name));
    return true;
  }
  if (name == "geom_friction") {
    const std::vector<std::string> patterns = texts_of(name, arguments);
    COHORT_THROW_UNLESS(!patterns.empty(), "{}(\"PATTERN\") needs geoms", name);
    std::vector<std::string> geoms;
    for (const sim::GeomInfo& geom : model_.info.geoms) geoms.push_back(geom.name);
    std::vector<int> values;
    for (const int geom : match_names(geoms, patterns, "geom")) values.push_back(3 * geom);
    value =
        g_.load(array({ArrayPlace::kParameter, static_cast<int>(sim::Parameter::kGeomFriction)}), std::move(values));
    return true;
  }
  if (name == "link_velocity" || name == "link_angular_velocity") {
    std::vector<int> values;
    for (const int link : links_of(arguments, name))
      for (int i = 0; i < 3; ++i) values.push_back(6 * link + (name == "link_velocity" ? 0 : 3) + i);
    value = left(Field::kLinkTwist, std::move(values), 3);
    return true;
  }
  if (name == "site_position" || name == "site_quaternion" || name == "site_velocity" ||
      name == "site_angular_velocity") {
    value = of_sites(name, arguments);
    return true;
  }
  if (name == "contact" || name == "contact_force" || name == "other_contact" || name == "other_contact_force") {
    const Expr force = force_on(texts_of(name, arguments), name, name.starts_with("other"));
    value =
        name.ends_with("force") ? force : g_.compare(Op::kLess, g_.constant(0), g_.reduce(Op::kSumOfSquares, force));
    return true;
  }
  if (name == "entity_position" || name == "entity_quaternion") {
    const std::vector<std::string> texts = texts_of(name, arguments);
    COHORT_THROW_UNLESS(texts.size() == 1, "{}(\"NAME\") takes one entity", name);
    const TaskModel::Entity* const entity = model_.find(texts[0]);
    if (entity == nullptr) {
      std::vector<std::string> known;
      for (const TaskModel::Entity& e : model_.entities) known.push_back(e.name);
      const std::string near = config::nearest(texts[0], known);
      throw Error(format("there is no entity '{}'{}; there is {}", texts[0],
                         near.empty() ? "" : format(", did you mean '{}'?", near), cohort::join(known, ", ")));
    }
    value = of_entity(*entity, name.substr(7));
    return true;
  }
  if (name == "ground_height") {
    COHORT_THROW_UNLESS(arguments.size() == 1 && std::holds_alternative<Expr>(arguments[0]),
                        "ground_height(x) takes points: (x, y, ...)");
    value = g_.ground_height(std::get<Expr>(arguments[0]));
    return true;
  }
  if (name == "height_scan") {
    std::vector<float> numbers;
    for (const Argument& argument : arguments) {
      const Expr* const e = std::get_if<Expr>(&argument);
      const std::vector<float> constant = e == nullptr ? std::vector<float>() : g_.constant_value(*e);
      COHORT_THROW_UNLESS(constant.size() == 1, "height_scan(size x, size y, resolution) takes three numbers");
      numbers.push_back(constant[0]);
    }
    COHORT_THROW_UNLESS(numbers.size() == 3, "height_scan(size x, size y, resolution) takes three numbers");
    ScanSettings settings;
    settings.size = {static_cast<double>(numbers[0]), static_cast<double>(numbers[1])};
    settings.resolution = static_cast<double>(numbers[2]);
    const TaskModel::Entity& robot = model_.of_robot();
    const Expr position = of_entity(robot, "position"), heading = of_entity(robot, "heading");
    const Expr c = g_.unary(Op::kCosine, heading), s = g_.unary(Op::kSine, heading);
    std::vector<float> xs, ys;
    for (const std::array<float, 2>& point : scan_points(settings)) xs.push_back(point[0]), ys.push_back(point[1]);
    const int n = static_cast<int>(xs.size());
    const Expr x = g_.constant(xs), y = g_.constant(ys);
    const Expr at_x = g_.add(g_.columns(position, {0}), g_.subtract(g_.multiply(c, x), g_.multiply(s, y)));
    const Expr at_y = g_.add(g_.columns(position, {1}), g_.add(g_.multiply(s, x), g_.multiply(c, y)));
    // A row for each point.
    std::vector<int> order;
    for (int i = 0; i < n; ++i) order.push_back(i), order.push_back(n + i);
    const Expr points = g_.reshape(g_.columns(g_.join({at_x, at_y}), order), n, 2);
    value = g_.subtract(g_.columns(position, {2}), g_.ground_height(points));
    return true;
  }
  if (name == "sensor") {
    const std::vector<std::string> texts = texts_of(name, arguments);
    COHORT_THROW_UNLESS(texts.size() == 1, "sensor(\"NAME\") takes one sensor of the model");
    const sim::SensorInfo& info = model_.info.sensors[static_cast<std::size_t>(model_.info.sensor(texts[0]))];
    value = left(Field::kSensors, range(info.address, info.size));
    return true;
  }
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return false;
  const std::string whose = name.substr(0, dot), what = name.substr(dot + 1);
  const TaskModel::Entity* const entity = whose == "base" ? &model_.of_robot() : model_.find(whose);
  if (entity == nullptr) return false;
  plain();
  value = of_entity(*entity, what);
  return true;
}

}  // namespace cohort::tasks
