#include "tasks/events/randomization.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "sim/host/looks.h"
#include "tasks/file/patterns.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using sim::Parameter;
using Write = Randomization::Write;

namespace {

constexpr RandomizationKind kRandomizations[] = {
    {"body_mass", nullptr, "links", "kg", RandomOperation::kScale,
     "mass of links; their inertia stays, as of a point mass added at the centre of mass"},
    {"body_com_offset", "body_ipos", "links", "m", RandomOperation::kAdd, "centre of mass in the link's frame, x y z"},
    {"body_inertia", nullptr, "links", "kg m^2", RandomOperation::kScale,
     "moments of inertia about the centre of mass along its three axes; mass stays"},
    {"pseudo_inertia", nullptr, "links", "1, 1, m", RandomOperation::kAbs,
     "mass, centre and inertia together, none of them unphysical: `alpha_range` (mass and inertia times e^(2 alpha)), "
     "`d_range` or `d1_range` to `d3_range` (stretch), `s12_range`, `s13_range`, `s23_range` (shear), `t_range` or "
     "`t1_range` to `t3_range` (shift)"},
    {"gravity", nullptr, "", "m/s^2", RandomOperation::kAdd, "gravity, x y z in the world"},
    {"dof_frictionloss", "joint_friction", "joints", "N m, N", RandomOperation::kAbs, "friction loss of joints"},
    {"jnt_stiffness", "joint_stiffness", "joints", "N m/rad, N/m", RandomOperation::kAbs, "springs of joints"},
    {"jnt_range", "joint_limits", "joints", "rad, m", RandomOperation::kAbs,
     "limits of joints that have some: the lower (axis 0) and the upper one (axis 1)"},
    {"effort_limits", nullptr, "actuators", "N m, N", RandomOperation::kScale,
     "`effort_limit_range`: the force range of actuators that have one, to both sides"},
    {"geom_friction", nullptr, "geoms", "1, m, m", RandomOperation::kAbs,
     "friction of geoms: sliding (axis 0, the only one unless `axes` says more), torsional, rolling"},
    {"dof_armature", "joint_armature", "joints", "kg m^2, kg", RandomOperation::kAbs, "inertia of the joints' rotors"},
    {"dof_damping", "joint_damping", "joints", "N m s/rad, N s/m", RandomOperation::kAbs, "damping of joints"},
    {"pd_gains", nullptr, "actuators", "N m/rad, N m s/rad", RandomOperation::kScale,
     "`kp_range` and `kd_range` of position actuators; of velocity actuators `kd_range` alone"},
    {"motor_strength", nullptr, "actuators", "1", RandomOperation::kScale,
     "a factor of all that an actuator's force is made of"},
    {"apply_external_force_torque", nullptr, "links", "N, N m", RandomOperation::kAbs,
     "`force_range` and `torque_range` on links at their centres of mass, along the world's axes, until the next time"},
    {"encoder_bias", nullptr, "joints", "rad, m", RandomOperation::kAbs,
     "`bias_range`: what the joints' encoders show too much"},
    {"joint_default_pos", nullptr, "joints", "rad, m", RandomOperation::kAdd,
     "an offset of the default position that observations and actions are relative to"},
    {"geom_size", nullptr, "geoms", "m", RandomOperation::kScale,
     "size of spheres, capsules, ellipsoids, cylinders and boxes, as MuJoCo's geom_size (axes 0 to 2, those that the "
     "shape has); mass and inertia stay"},
    {"geom_pos", nullptr, "geoms", "m", RandomOperation::kAbs, "place of geoms in their links' frames, x y z"},
    {"geom_quat", nullptr, "geoms", "rad", RandomOperation::kAdd,
     "`roll_range`, `pitch_range`, `yaw_range`: geoms are turned about the axes of their links' frames"},
    {"geom_rgba", nullptr, "geoms", "1", RandomOperation::kAbs,
     "colour of geoms in pictures: red, green, blue, alpha (axes 0 to 3); an alpha of 0 in the model stays"},
    {"cam_pos", nullptr, "cameras", "m", RandomOperation::kAbs, "place of cameras in their links' frames, x y z"},
    {"cam_quat", nullptr, "cameras", "rad", RandomOperation::kAdd,
     "`roll_range`, `pitch_range`, `yaw_range`: cameras are turned about the axes of their links' frames"},
    {"cam_fovy", nullptr, "cameras", "degrees", RandomOperation::kAbs, "field of view of cameras, up and down"},
    {"light_pos", nullptr, "lights", "m", RandomOperation::kAbs, "place of lights in their links' frames, x y z"},
    {"light_dir", nullptr, "lights", "1", RandomOperation::kAbs, "the way that lights go, in their links' frames"},
    {"light_ambient", nullptr, "lights", "1", RandomOperation::kAbs, "what lights give everywhere: red, green, blue"},
    {"light_diffuse", nullptr, "lights", "1", RandomOperation::kAbs, "colour of lights: red, green, blue"},
    {"light_specular", nullptr, "lights", "1", RandomOperation::kAbs, "colour of lights' gloss: red, green, blue"},
    {"action_delay", nullptr, "", "control steps", RandomOperation::kAbs,
     "`delay_range`: whole control steps after which an action acts"},
};

const RandomizationKind& kind_of(const std::string& name) {
  std::vector<std::string> known;
  for (const RandomizationKind& k : kRandomizations) {
    if (name == k.name || (k.alias != nullptr && name == k.alias)) return k;
    known.emplace_back(k.name);
    if (k.alias != nullptr) known.emplace_back(k.alias);
  }
  const std::string near = config::nearest(name, known);
  throw Error(format("there is no randomisation '{}'{}; there are {}", name,
                     near.empty() ? "" : format(", did you mean '{}'?", near), join(known, ", ")));
}

/// Draws of an event lie by what is addressed, so that more or fewer of them change no other's: 16 for each; the first
/// 16 are those that all share.
constexpr std::uint64_t kDraws = 16;

std::uint64_t draw_of(bool shared, int target, int component) {
  return (shared ? 0 : kDraws * static_cast<std::uint64_t>(target + 1)) + static_cast<std::uint64_t>(component);
}

class Reader {
 public:
  Reader(JsonSection& section, const std::string& name, const sim::ModelInfo& info,
         std::span<const sim::EntityInfo> entities, const std::string& entity)
      : s_(section), info_(info), entities_(entities), entity_(entity) {
    out_.name = name;
    out_.kind = name;
    s_.take("type", out_.kind);
    kind_ = &kind_of(out_.kind);
    out_.kind = kind_->name;
    out_.operation = kind_->standard;
  }

  Randomization read() {
    s_.take("entity", entity_);
    if (!entity_.empty()) {
      const auto found = std::ranges::find(entities_, entity_, &sim::EntityInfo::name);
      std::vector<std::string> known;
      for (const sim::EntityInfo& e : entities_) known.push_back(e.name);
      COHORT_THROW_UNLESS(found != entities_.end(), "there is no entity '{}'; there is {}", entity_, join(known, ", "));
      own_ = &*found;
    }
    read_mode();
    read_choice("operation", {"abs", "add", "scale"}, out_.operation);
    read_choice("distribution", {"uniform", "log_uniform", "gaussian", "constant"}, out_.distribution);
    s_.take("shared_random", shared_);
    const std::string kind = kind_->name;
    if (kind == "body_mass") {
      components(Parameter::kLinkMass, links(), 1, {0});
    } else if (kind == "body_com_offset") {
      components(Parameter::kLinkCom, links(), 3, {0, 1, 2});
    } else if (kind == "body_inertia") {
      components(Parameter::kLinkInertia, links(), 3, {0, 1, 2});
    } else if (kind == "pseudo_inertia") {
      pseudo_inertia();
    } else if (kind == "gravity") {
      components(Parameter::kGravity, {0}, 3, {0, 1, 2});
    } else if (kind == "dof_frictionloss") {
      components(Parameter::kDofFrictionloss, dofs(), 1, {0});
    } else if (kind == "jnt_stiffness") {
      components(Parameter::kJointStiffness, joints(), 1, {0});
    } else if (kind == "jnt_range") {
      joint_range();
    } else if (kind == "effort_limits") {
      effort_limits();
    } else if (kind == "geom_friction") {
      components(Parameter::kGeomFriction, geoms(), 3, {0});
    } else if (kind == "dof_armature") {
      components(Parameter::kDofArmature, dofs(), 1, {0});
    } else if (kind == "dof_damping") {
      components(Parameter::kDofDamping, dofs(), 1, {0});
    } else if (kind == "pd_gains") {
      pd_gains();
    } else if (kind == "motor_strength") {
      motor_strength();
    } else if (kind == "apply_external_force_torque") {
      wrench();
    } else if (kind == "encoder_bias") {
      task_values(TaskParameter::kEncoderBias, "bias_range");
    } else if (kind == "joint_default_pos") {
      COHORT_THROW_UNLESS(out_.operation == RandomOperation::kAdd,
                          "joint_default_pos is an offset: its operation is 'add'");
      task_values(TaskParameter::kJointDefault, "ranges");
    } else if (kind == "geom_size") {
      geom_size();
    } else if (kind == "geom_pos") {
      components(Parameter::kGeomPos, geoms(), 3, {0, 1, 2});
    } else if (kind == "geom_quat") {
      geom_turn();
    } else if (kind == "geom_rgba") {
      looks(sim::Look::kGeomRgba, geoms(), 4);
    } else if (kind == "cam_pos") {
      looks(sim::Look::kCameraPos, named(info_.camera_names), 3);
    } else if (kind == "cam_quat") {
      camera_turn();
    } else if (kind == "cam_fovy") {
      looks(sim::Look::kCameraFovy, named(info_.camera_names), 1);
    } else if (kind == "light_pos") {
      looks(sim::Look::kLightPos, named(info_.light_names), 3);
    } else if (kind == "light_dir") {
      looks(sim::Look::kLightDir, named(info_.light_names), 3);
    } else if (kind == "light_ambient") {
      looks(sim::Look::kLightAmbient, named(info_.light_names), 3);
    } else if (kind == "light_diffuse") {
      looks(sim::Look::kLightDiffuse, named(info_.light_names), 3);
    } else if (kind == "light_specular") {
      looks(sim::Look::kLightSpecular, named(info_.light_names), 3);
    } else {
      delay();
    }
    return std::move(out_);
  }

 private:
  // ---- what all have

  template <class Choice>
  void read_choice(const std::string& key, const std::vector<std::string>& choices, Choice& choice) {
    if (!s_.has(key)) return;
    std::string word;
    s_.take(key, word);
    const auto found = std::ranges::find(choices, word);
    if (found == choices.end()) {
      const std::string near = config::nearest(word, choices);
      throw Error(format("there is no {} '{}'{}; there are {}", key, word,
                         near.empty() ? "" : format(", did you mean '{}'?", near), join(choices, ", ")));
    }
    choice = static_cast<Choice>(found - choices.begin());
  }

  void read_mode() {
    std::string mode = "reset";
    s_.take("mode", mode);
    COHORT_THROW_UNLESS(mode == "reset" || mode == "startup" || mode == "interval",
                        "there is no mode '{}'; there are reset, startup (here the same as reset), interval", mode);
    const bool intervals = mode == "interval";
    COHORT_THROW_UNLESS(intervals == s_.has("interval_range_s"), "interval_range_s belongs to `mode: interval`{}",
                        intervals ? ", which has to say how many seconds lie between, [10, 15]" : "");
    if (!intervals) return;
    out_.mode = Randomization::kInterval;
    out_.interval = range_of(s_.get("interval_range_s"), "interval_range_s", RandomDistribution::kUniform);
    COHORT_THROW_UNLESS(out_.interval.low > 0, "interval_range_s begins at {} s: above zero is needed",
                        out_.interval.low);
  }

  static DrawRange range_of(const Json& value, const std::string& what, RandomDistribution distribution) {
    const bool number = value.is_number();
    COHORT_THROW_UNLESS(
        number || (value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number()),
        "{} is {}: {} needed", what, json_text(value),
        distribution == RandomDistribution::kGaussian ? "[mean, standard deviation] is"
                                                      : "a number, or two, [low, high], are");
    const DrawRange r = number ? DrawRange{value.get<double>(), value.get<double>()}
                               : DrawRange{value[0].get<double>(), value[1].get<double>()};
    COHORT_THROW_UNLESS(std::isfinite(r.low) && std::isfinite(r.high), "{} is {}: finite numbers are needed", what,
                        json_text(value));
    switch (distribution) {
      case RandomDistribution::kGaussian:
        if (number) return {r.low, 0};
        COHORT_THROW_UNLESS(r.high >= 0, "{} is {}: the standard deviation is below zero", what, json_text(value));
        break;
      case RandomDistribution::kConstant:
        COHORT_THROW_UNLESS(r.low == r.high, "{} is {}: a constant is one number", what, json_text(value));
        break;
      case RandomDistribution::kLogUniform:
        COHORT_THROW_UNLESS(r.low > 0, "{} is {}: log_uniform draws from numbers above zero", what, json_text(value));
        [[fallthrough]];
      case RandomDistribution::kUniform:
        COHORT_THROW_UNLESS(r.low <= r.high, "{} is {}: low is above high", what, json_text(value));
    }
    return r;
  }
  DrawRange take_range(const std::string& key) {
    COHORT_THROW_UNLESS(s_.has(key), "{} is missing: [low, high]", key);
    return range_of(s_.get(key), key, out_.distribution);
  }

  // ---- what is addressed

  std::vector<std::string> patterns_of(const std::string& key) {
    if (!s_.has(key)) return {};
    if (s_.get(key).is_string()) return {s_.get(key).get<std::string>()};
    std::vector<std::string> patterns;
    s_.take(key, patterns);
    return patterns;
  }

  bool is_own_link(int link) const { return !own_ || std::ranges::find(own_->links, link) != own_->links.end(); }
  bool is_own(const sim::LinkInfo&, int index) const { return is_own_link(index); }
  bool is_own(const sim::GeomInfo&, int index) const {
    return !own_ || std::ranges::find(own_->geoms, index) != own_->geoms.end();
  }
  bool is_own(const sim::JointInfo& joint, int) const { return is_own_link(joint.link); }
  /// One that moves no joint, as adhesion, is everybody's.
  bool is_own(const sim::ActuatorInfo& actuator, int) const {
    const std::vector<int> joint = info_.joint_of_dof();
    return actuator.moves.empty() || std::ranges::any_of(actuator.moves, [&](int dof) {
             return is_own_link(info_.joints[static_cast<std::size_t>(joint[static_cast<std::size_t>(dof)])].link);
           });
  }

  /// Items of the entity, and that the patterns under `key` choose; without patterns those that
  /// `standard` has.
  template <class Item>
  std::vector<int> chosen(const std::vector<Item>& items, const std::string& key, const std::string& what,
                          const std::function<bool(const Item&)>& standard) {
    std::vector<std::string> names;
    std::vector<int> mine;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!is_own(items[i], static_cast<int>(i))) continue;
      names.push_back(items[i].name), mine.push_back(static_cast<int>(i));
    }
    const std::vector<std::string> patterns = patterns_of(key);
    std::vector<int> indices;
    if (patterns.empty()) {
      for (const int i : mine)
        if (standard(items[static_cast<std::size_t>(i)])) indices.push_back(i);
      COHORT_THROW_UNLESS(!indices.empty(), "{} has no {} that {} is about", entity_.empty() ? "the model" : entity_,
                          what, kind_->name);
    } else {
      for (const int k : match_names(names, patterns, what)) indices.push_back(mine[static_cast<std::size_t>(k)]);
    }
    return indices;
  }

  std::vector<int> links() {
    std::vector<int> all = chosen<sim::LinkInfo>(info_.links, "links", "link",
                                                 [this](const sim::LinkInfo& l) { return &l != info_.links.data(); });
    COHORT_THROW_UNLESS(all.front() != 0, "the world has nothing that {} could change", kind_->name);
    return all;
  }
  std::vector<int> geoms() {
    if (!s_.has("links"))
      return chosen<sim::GeomInfo>(info_.geoms, "geoms", "geom", [](const sim::GeomInfo&) { return true; });
    COHORT_THROW_UNLESS(!s_.has("geoms"), "links and geoms are both given: `links` means all geoms of these links");
    const std::vector<int> of = chosen<sim::LinkInfo>(info_.links, "links", "link", [](const auto&) { return true; });
    std::vector<int> all;
    for (std::size_t g = 0; g < info_.geoms.size(); ++g)
      if (std::ranges::find(of, info_.geoms[g].link) != of.end()) all.push_back(static_cast<int>(g));
    COHORT_THROW_UNLESS(!all.empty(), "these links have no geoms");
    return all;
  }
  std::vector<int> joints() {
    return chosen<sim::JointInfo>(info_.joints, "joints", "joint", [](const sim::JointInfo& j) {
      return sim::kJointQpos[static_cast<int>(j.type)] == 1;
    });
  }
  std::vector<int> dofs() {
    std::vector<int> all;
    for (const int j : joints()) {
      const sim::JointInfo& joint = info_.joints[static_cast<std::size_t>(j)];
      for (int k = 0; k < sim::kJointDofs[static_cast<int>(joint.type)]; ++k) all.push_back(joint.dof + k);
    }
    return all;
  }
  std::string dof_name(int dof) const {
    for (const sim::JointInfo& j : info_.joints)
      if (dof >= j.dof && dof < j.dof + sim::kJointDofs[static_cast<int>(j.type)]) return j.name;
    return "";
  }
  std::vector<int> actuators(const std::function<bool(const sim::ActuatorInfo&)>& fits) {
    return chosen<sim::ActuatorInfo>(info_.actuators, "actuators", "actuator", fits);
  }

  // ---- what is drawn

  void write(Write::Place place, int which, int item, std::uint64_t draw, double sign, const DrawRange& range) {
    out_.writes.push_back({.place = place, .which = which, .item = item, .draw = draw, .sign = sign, .range = range});
  }
  void write(Parameter parameter, int item, std::uint64_t draw, double sign, const DrawRange& range) {
    write(Write::kParameter, static_cast<int>(parameter), item, draw, sign, range);
  }

  static std::optional<int> axis_of(const std::string& key, int components) {
    static const std::vector<std::string> kNames{"x", "y", "z"};
    const auto named = std::ranges::find(kNames, key);
    int axis = -1;
    if (named != kNames.end() && components == 3) axis = static_cast<int>(named - kNames.begin());
    if (key.size() == 1 && key[0] >= '0' && key[0] <= '9') axis = key[0] - '0';
    if (axis < 0) return std::nullopt;
    COHORT_THROW_UNLESS(axis < components, "there is no axis {}: they are 0 to {}", key, components - 1);
    return axis;
  }

  /// `ranges` of every target and axis: one for all, an object by axis, or one by pattern of names.
  struct Ranges {
    std::vector<int> axes;
    std::vector<std::vector<std::optional<DrawRange>>> of;  ///< [target][axis in the order of `axes`]
  };
  Ranges ranges_of(const std::string& key, const std::vector<std::string>& names, int components,
                   const std::vector<int>& standard_axes) {
    COHORT_THROW_UNLESS(s_.has(key), "{} is missing: [low, high]", key);
    const Json value = s_.get(key);
    Ranges ranges{.axes = standard_axes, .of = {}};
    bool by_axis = value.is_object() && !value.empty();
    std::map<int, DrawRange> of_axis;
    if (by_axis) by_axis = axis_of(value.begin().key(), components).has_value();
    if (by_axis) {
      ranges.axes.clear();
      for (const auto& [name, range] : value.items()) {
        const std::optional<int> axis = axis_of(name, components);
        COHORT_THROW_UNLESS(axis, "{} has '{}' beside axes: its keys are axes, or patterns of names", key, name);
        of_axis[*axis] = range_of(range, key + "." + name, out_.distribution);
        ranges.axes.push_back(*axis);
      }
    }
    if (s_.has("axes")) {
      std::vector<std::int64_t> axes;
      s_.take("axes", axes);
      ranges.axes.clear();
      for (const std::int64_t a : axes) {
        COHORT_THROW_UNLESS(a >= 0 && a < components, "axes has {}: they are 0 to {}", a, components - 1);
        COHORT_THROW_UNLESS(!by_axis || of_axis.contains(static_cast<int>(a)), "{} has no axis {}", key, a);
        ranges.axes.push_back(static_cast<int>(a));
      }
    }
    ranges.of.assign(names.size(), std::vector<std::optional<DrawRange>>(ranges.axes.size()));
    if (by_axis) {
      for (auto& target : ranges.of)
        for (std::size_t a = 0; a < ranges.axes.size(); ++a) target[a] = of_axis.at(ranges.axes[a]);
    } else if (value.is_object()) {
      for (const auto& [pattern, range] : value.items()) {
        const DrawRange r = range_of(range, key + "." + pattern, out_.distribution);
        const std::string patterns[] = {pattern};
        for (const int t : match_names(names, patterns, what()))
          std::ranges::fill(ranges.of[static_cast<std::size_t>(t)], r);
      }
    } else {
      const DrawRange r = range_of(value, key, out_.distribution);
      for (auto& target : ranges.of) std::ranges::fill(target, r);
    }
    return ranges;
  }
  std::string what() const {
    const std::string plural = kind_->target;
    return plural.substr(0, plural.size() - 1);
  }
  std::string name_of(int target) const {
    const auto t = static_cast<std::size_t>(target);
    const std::string plural = kind_->target;
    if (plural.empty()) return plural;
    if (plural == "links") return info_.links[t].name;
    if (plural == "joints") return info_.joints[t].name;
    if (plural == "cameras") return info_.camera_names[t];
    if (plural == "lights") return info_.light_names[t];
    return plural == "geoms" ? info_.geoms[t].name : info_.actuators[t].name;
  }

  /// Values `components` of which belong to each target.
  void components(Parameter parameter, const std::vector<int>& targets, int count, const std::vector<int>& axes) {
    const bool of_dofs = parameter == Parameter::kDofArmature || parameter == Parameter::kDofDamping ||
                         parameter == Parameter::kDofFrictionloss;
    std::vector<std::string> names;
    for (const int t : targets) names.push_back(of_dofs ? dof_name(t) : name_of(t));
    bool subtree = false;
    if (parameter == Parameter::kLinkMass) s_.take("subtree", subtree);
    const Ranges ranges = ranges_of("ranges", names, count, axes);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      for (std::size_t a = 0; a < ranges.axes.size(); ++a) {
        const int axis = ranges.axes[a];
        const auto& range = ranges.of[t][a];
        if (!range) continue;
        const std::uint64_t draw = draw_of(shared_, targets[t], axis);
        const std::vector<int> all = subtree ? links_below(targets[t]) : std::vector<int>{targets[t]};
        for (const int item : all) write(parameter, count * item + axis, draw, 1, *range);
      }
    }
  }

  /// The link and all that hang on it.
  std::vector<int> links_below(int root) const {
    std::vector<int> all;
    for (int k = root; k < static_cast<int>(info_.links.size()); ++k) {
      int up = k;
      while (up > root) up = info_.links[static_cast<std::size_t>(up)].parent;
      if (up == root) all.push_back(k);
    }
    return all;
  }

  void geom_size() {
    const bool all = !s_.has("geoms") && !s_.has("links");
    std::vector<int> targets = geoms();
    const auto shape = [this](int g) { return info_.geoms[static_cast<std::size_t>(g)].type; };
    if (all) std::erase_if(targets, [&](int g) { return sim::size_count(shape(g)) == 0; });
    for (const int g : targets) {
      COHORT_THROW_UNLESS(sim::size_count(shape(g)) > 0,
                          "the geom '{}' is a {}: geom_size is about spheres, capsules, ellipsoids, cylinders and "
                          "boxes; geom_pos and geom_quat move what has another shape",
                          name_of(g), shape(g));
    }
    components(Parameter::kGeomSize, targets, 3, {0, 1, 2});
    // What a shape does not have is not drawn.
    std::erase_if(out_.writes, [&](const Write& w) { return w.item % 3 >= sim::size_count(shape(w.item / 3)); });
    for (const Write& w : out_.writes) {
      COHORT_THROW_UNLESS(out_.operation == RandomOperation::kAdd ||
                              out_.distribution == RandomDistribution::kGaussian || w.range.low > 0,
                          "ranges of geom_size begin at {}: a size is more than zero", w.range.low);
    }
  }

  void geom_turn() {
    need_operation({RandomOperation::kAdd}, "none: it turns geoms from where the model has them");
    static constexpr const char* kAngles[] = {"roll_range", "pitch_range", "yaw_range"};
    std::array<DrawRange, 3> ranges{};
    bool any = false;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!s_.has(kAngles[axis])) continue;
      any = true, ranges[axis] = take_range(kAngles[axis]);
    }
    COHORT_THROW_UNLESS(any, "geom_quat needs roll_range, pitch_range or yaw_range, rad: [low, high]");
    COHORT_THROW_UNLESS(out_.distribution != RandomDistribution::kLogUniform,
                        "geom_quat's numbers are angles, around 0: uniform or gaussian are meant for them");
    for (const int g : geoms()) out_.turns.push_back({.geom = g, .draw = draw_of(shared_, g, 0), .ranges = ranges});
  }

  void pseudo_inertia() {
    need_operation({RandomOperation::kAbs}, "none: it multiplies what the model has");
    static constexpr const char* kNames[] = {"alpha", "d1", "d2", "d3", "s12", "s13", "s23", "t1", "t2", "t3"};
    std::array<DrawRange, 10> ranges{};
    bool any = false;
    const auto take = [&](const std::string& name, std::initializer_list<std::size_t> which) {
      if (!s_.has(name + "_range")) return;
      for (const std::size_t i : which) ranges[i] = take_range(name + "_range");
      any = true;
    };
    take("d", {1, 2, 3}), take("t", {7, 8, 9});
    for (std::size_t i = 0; i < 10; ++i) take(kNames[i], {i});
    COHORT_THROW_UNLESS(any,
                        "pseudo_inertia needs alpha_range, d_range, t_range or another of its ranges: [low, high]");
    COHORT_THROW_UNLESS(out_.distribution != RandomDistribution::kLogUniform,
                        "pseudo_inertia's numbers are exponents, around 0: uniform or gaussian are meant for them");
    for (const int link : links())
      out_.inertias.push_back({.link = link, .draw = draw_of(shared_, link, 0), .ranges = ranges});
  }

  void joint_range() {
    const std::vector<int> all =
        chosen<sim::JointInfo>(info_.joints, "joints", "joint", [](const sim::JointInfo& j) { return j.limited; });
    for (const int j : all) {
      const sim::JointInfo& joint = info_.joints[static_cast<std::size_t>(j)];
      COHORT_THROW_UNLESS(joint.limited, "the joint '{}' has no limits in the model: give it a range there",
                          joint.name);
    }
    components(Parameter::kJointRange, all, 2, {0, 1});
  }

  void effort_limits() {
    need_operation({RandomOperation::kAbs, RandomOperation::kScale}, "'scale' or 'abs'");
    const auto fits = [](const sim::ActuatorInfo& a) { return std::isfinite(a.force_range[0]); };
    const std::vector<int> all = actuators(fits);
    std::vector<std::string> names;
    for (const int a : all) names.push_back(name_of(a));
    const Ranges ranges = ranges_of("effort_limit_range", names, 1, {0});
    const double lower = out_.operation == RandomOperation::kScale ? 1 : -1;
    for (std::size_t t = 0; t < all.size(); ++t) {
      const sim::ActuatorInfo& actuator = info_.actuators[static_cast<std::size_t>(all[t])];
      COHORT_THROW_UNLESS(fits(actuator),
                          "the actuator '{}' has no force range in the model: give it a forcerange there",
                          actuator.name);
      const auto& range = ranges.of[t][0];
      if (!range) continue;
      COHORT_THROW_UNLESS(range->low >= 0, "effort_limit_range begins at {}: a limit is not below zero", range->low);
      const std::uint64_t draw = draw_of(shared_, all[t], 0);
      write(Parameter::kActuatorForceRange, 2 * all[t], draw, lower, *range);
      write(Parameter::kActuatorForceRange, 2 * all[t] + 1, draw, 1, *range);
    }
  }

  static constexpr int kGains = 10;  // gainprm and biasprm of an actuator

  void need_operation(std::initializer_list<RandomOperation> allowed, const char* text) const {
    COHORT_THROW_UNLESS(std::ranges::find(allowed, out_.operation) != allowed.end(), "{}'s operation is {}",
                        kind_->name, text);
  }

  void pd_gains() {
    using Kind = sim::ActuatorInfo::Kind;
    need_operation({RandomOperation::kAbs, RandomOperation::kScale}, "'scale' or 'abs'");
    COHORT_THROW_UNLESS(s_.has("kp_range") || s_.has("kd_range"), "pd_gains needs kp_range or kd_range: [low, high]");
    const bool scale = out_.operation == RandomOperation::kScale;
    const auto fits = [](const sim::ActuatorInfo& a) { return a.kind == Kind::kPosition || a.kind == Kind::kVelocity; };
    const std::vector<int> all = actuators(fits);
    std::optional<DrawRange> kp, kd;
    if (s_.has("kp_range")) kp = take_range("kp_range");
    if (s_.has("kd_range")) kd = take_range("kd_range");
    // A position actuator's force is kp (ctrl - q) - kd qdot, a velocity actuator's kd (ctrl - qdot).
    const double back = scale ? 1 : -1;
    for (const int a : all) {
      const sim::ActuatorInfo& actuator = info_.actuators[static_cast<std::size_t>(a)];
      COHORT_THROW_UNLESS(fits(actuator), "the actuator '{}' has no gains of position or velocity", actuator.name);
      const bool position = actuator.kind == Kind::kPosition;
      const std::uint64_t draw = draw_of(shared_, a, 0);
      if (kp && position) {
        write(Parameter::kActuatorGain, kGains * a, draw, 1, *kp);
        write(Parameter::kActuatorBias, kGains * a + 1, draw, back, *kp);
      }
      if (!kd) continue;
      if (!position) write(Parameter::kActuatorGain, kGains * a, draw + 1, 1, *kd);
      write(Parameter::kActuatorBias, kGains * a + 2, draw + 1, back, *kd);
    }
    COHORT_THROW_UNLESS(!out_.writes.empty(), "kp_range belongs to position actuators, and there is none among these");
  }

  void motor_strength() {
    need_operation({RandomOperation::kScale}, "'scale'");
    const std::vector<int> all = actuators([](const sim::ActuatorInfo&) { return true; });
    std::vector<std::string> names;
    for (const int a : all) names.push_back(name_of(a));
    const Ranges ranges = ranges_of("ranges", names, 1, {0});
    for (std::size_t t = 0; t < all.size(); ++t) {
      const std::uint64_t draw = draw_of(shared_, all[t], 0);
      for (int k = 0; k < 3 && ranges.of[t][0]; ++k) {
        write(Parameter::kActuatorGain, kGains * all[t] + k, draw, 1, *ranges.of[t][0]);
        write(Parameter::kActuatorBias, kGains * all[t] + k, draw, 1, *ranges.of[t][0]);
      }
    }
  }

  void wrench() {
    need_operation({RandomOperation::kAbs}, "'abs'");
    COHORT_THROW_UNLESS(s_.has("force_range") || s_.has("torque_range"),
                        "apply_external_force_torque needs force_range (N) or torque_range (N m): [low, high]");
    const std::vector<int> all = links();
    std::vector<std::string> names;
    for (const int l : all) names.push_back(name_of(l));
    for (int half = 0; half < 2; ++half) {
      const std::string key = half == 0 ? "force_range" : "torque_range";
      if (!s_.has(key)) continue;
      const Ranges ranges = ranges_of(key, names, 3, {0, 1, 2});
      for (std::size_t t = 0; t < all.size(); ++t) {
        for (std::size_t a = 0; a < ranges.axes.size(); ++a) {
          const int component = 3 * half + ranges.axes[a];
          if (const auto& range = ranges.of[t][a])
            write(Write::kForce, 0, 6 * all[t] + component, draw_of(shared_, all[t], component), 1, *range);
        }
      }
    }
  }

  void task_values(TaskParameter parameter, const std::string& key) {
    if (parameter == TaskParameter::kEncoderBias) need_operation({RandomOperation::kAbs}, "'abs'");
    const std::vector<int> all = joints();
    std::vector<std::string> names;
    for (const int j : all) names.push_back(info_.joints[static_cast<std::size_t>(j)].name);
    const Ranges ranges = ranges_of(key, names, 1, {0});
    for (std::size_t t = 0; t < all.size(); ++t) {
      COHORT_THROW_UNLESS(sim::kJointQpos[static_cast<int>(info_.joints[static_cast<std::size_t>(all[t])].type)] == 1,
                          "the joint '{}' is no hinge or slide: {} is about one coordinate", names[t], kind_->name);
      if (const auto& range = ranges.of[t][0])
        write(Write::kTask, static_cast<int>(parameter), all[t], draw_of(shared_, all[t], 0), 1, *range);
    }
  }

  // ---- what is seen

  /// The model's cameras or lights that patterns choose, or all: they belong to no entity.
  std::vector<int> named(const std::vector<std::string>& names) {
    COHORT_THROW_UNLESS(!names.empty(), "the model has no {}", kind_->target);
    const std::vector<std::string> patterns = patterns_of(kind_->target);
    std::vector<int> all;
    if (!patterns.empty()) return match_names(names, patterns, what());
    for (std::size_t i = 0; i < names.size(); ++i) all.push_back(static_cast<int>(i));
    return all;
  }

  void looks(sim::Look look, const std::vector<int>& targets, int count) {
    std::vector<std::string> names;
    for (const int t : targets) names.push_back(name_of(t));
    std::vector<int> axes;
    for (int axis = 0; axis < count; ++axis) axes.push_back(axis);
    const Ranges ranges = ranges_of("ranges", names, count, axes);
    for (std::size_t t = 0; t < targets.size(); ++t)
      for (std::size_t a = 0; a < ranges.axes.size(); ++a)
        if (const auto& range = ranges.of[t][a])
          write(Write::kLook, static_cast<int>(look), count * targets[t] + ranges.axes[a],
                draw_of(shared_, targets[t], ranges.axes[a]), 1, *range);
  }

  void camera_turn() {
    need_operation({RandomOperation::kAdd}, "none: it turns cameras from where the model has them");
    static constexpr const char* kAngles[] = {"roll_range", "pitch_range", "yaw_range"};
    bool any = false;
    for (const int camera : named(info_.camera_names))
      for (int axis = 0; axis < 3; ++axis) {
        if (!s_.has(kAngles[axis])) continue;
        any = true;
        write(Write::kLook, static_cast<int>(sim::Look::kCameraTurn), 3 * camera + axis, draw_of(shared_, camera, axis),
              1, take_range(kAngles[axis]));
      }
    COHORT_THROW_UNLESS(any, "cam_quat needs roll_range, pitch_range or yaw_range, rad: [low, high]");
  }

  void delay() {
    need_operation({RandomOperation::kAbs}, "'abs'");
    const DrawRange range = take_range("delay_range");
    const double least = out_.distribution == RandomDistribution::kGaussian ? range.low - 6 * range.high : range.low;
    COHORT_THROW_UNLESS(least >= 0, "delay_range is [{}, {}]: an action cannot act before it is given", range.low,
                        range.high);
    // Every whole number of a uniform range is equally likely.
    const bool uniform = out_.distribution == RandomDistribution::kUniform;
    const DrawRange wide =
        uniform ? DrawRange{std::ceil(range.low) - 0.5, std::nextafter(std::floor(range.high) + 0.5, 0.0)} : range;
    COHORT_THROW_UNLESS(!uniform || wide.low < wide.high, "delay_range is [{}, {}]: there is no whole number in it",
                        range.low, range.high);
    write(Write::kTask, static_cast<int>(TaskParameter::kActionDelay), 0, 0, 1, wide);
    out_.writes.back().whole = true;
  }

  JsonSection& s_;
  const sim::ModelInfo& info_;
  std::span<const sim::EntityInfo> entities_;
  std::string entity_;
  const sim::EntityInfo* own_ = nullptr;  ///< null: the whole model
  const RandomizationKind* kind_ = nullptr;
  bool shared_ = false;
  Randomization out_;
};

}  // namespace

double draw_from(const RandomStream& random, std::uint64_t index, RandomDistribution distribution,
                 const DrawRange& range) {
  const auto share = [&] { return static_cast<double>(random.uniform(index)); };
  switch (distribution) {
    case RandomDistribution::kUniform:
      return range.low + (range.high - range.low) * share();
    case RandomDistribution::kLogUniform: {
      const double low = std::log(range.low);
      return std::clamp(std::exp(low + (std::log(range.high) - low) * share()), range.low, range.high);
    }
    case RandomDistribution::kGaussian:
      return range.low + range.high * static_cast<double>(random.normal(index));
    case RandomDistribution::kConstant:
      break;
  }
  return range.low;
}

const char* task_parameter_name(TaskParameter parameter) {
  constexpr const char* kNames[kTaskParameterCount] = {"encoder_bias", "joint_default_offset", "action_delay"};
  return kNames[static_cast<int>(parameter)];
}

int task_parameter_size(const sim::ModelInfo& info, TaskParameter parameter) {
  return parameter == TaskParameter::kActionDelay ? 1 : static_cast<int>(info.joints.size());
}

std::span<const RandomizationKind> randomization_kinds() {
  return kRandomizations;
}

bool Randomization::Inertia::density_alone() const {
  return std::all_of(ranges.begin() + 1, ranges.end(), [](const DrawRange& r) { return r.low == 0 && r.high == 0; });
}

std::array<double, 4> turned_by(const std::array<double, 3>& rpy, const std::array<double, 4>& quat) {
  const double cr = std::cos(rpy[0] / 2), sr = std::sin(rpy[0] / 2), cp = std::cos(rpy[1] / 2),
               sp = std::sin(rpy[1] / 2), cy = std::cos(rpy[2] / 2), sy = std::sin(rpy[2] / 2);
  const double w = cr * cp * cy + sr * sp * sy, x = sr * cp * cy - cr * sp * sy, y = cr * sp * cy + sr * cp * sy,
               z = cr * cp * sy - sr * sp * cy;
  return {w * quat[0] - x * quat[1] - y * quat[2] - z * quat[3], w * quat[1] + x * quat[0] + y * quat[3] - z * quat[2],
          w * quat[2] - x * quat[3] + y * quat[0] + z * quat[1], w * quat[3] + x * quat[2] - y * quat[1] + z * quat[0]};
}

LinkInertia perturbed(const LinkInertia& inertia, const std::array<double, 10>& by) {
  const auto [w, x, y, z] = inertia.quat;
  const double R[3][3] = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
                          {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
                          {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}};
  // J = [[integral of p p' dm, m c], [m c', m]]; about the centre, along the axes, the integral is (tr I) / 2 - I.
  const double half = 0.5 * (inertia.moments[0] + inertia.moments[1] + inertia.moments[2]);
  double J[4][4], U[4][4] = {}, changed[4][4] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      J[i][j] = inertia.mass * inertia.com[i] * inertia.com[j];
      for (std::size_t k = 0; k < 3; ++k) J[i][j] += R[i][k] * (half - inertia.moments[k]) * R[j][k];
    }
    J[i][3] = J[3][i] = inertia.mass * inertia.com[i];
  }
  J[3][3] = inertia.mass;
  const double scale = std::exp(by[0]);
  U[0][0] = scale * std::exp(by[1]), U[1][1] = scale * std::exp(by[2]), U[2][2] = scale * std::exp(by[3]);
  U[0][1] = scale * by[4], U[0][2] = scale * by[5], U[1][2] = scale * by[6];
  U[0][3] = scale * by[7], U[1][3] = scale * by[8], U[2][3] = scale * by[9], U[3][3] = scale;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 4; ++k)
        for (int l = 0; l < 4; ++l) changed[i][j] += U[i][k] * J[k][l] * U[j][l];
  LinkInertia out;
  out.mass = changed[3][3];
  for (std::size_t i = 0; i < 3; ++i) out.com[i] = changed[i][3] / out.mass;
  double S[3][3], V[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) S[i][j] = changed[i][j] - out.mass * out.com[i] * out.com[j];
  // Jacobi's rotations: axes and second moments.
  constexpr int kSweeps = 12;  // far more than three rows need
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (const auto& [p, q] : {std::pair<std::size_t, std::size_t>{0, 1}, {0, 2}, {1, 2}}) {
      if (S[p][q] == 0) continue;
      const double theta = (S[q][q] - S[p][p]) / (2 * S[p][q]);
      const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(1 + theta * theta));
      const double c = 1 / std::sqrt(1 + t * t), s = t * c;
      for (std::size_t k = 0; k < 3; ++k) {
        const double a = S[k][p], b = S[k][q];
        S[k][p] = c * a - s * b, S[k][q] = s * a + c * b;
      }
      for (std::size_t k = 0; k < 3; ++k) {
        const double a = S[p][k], b = S[q][k], v = V[k][p], u = V[k][q];
        S[p][k] = c * a - s * b, S[q][k] = s * a + c * b;
        V[k][p] = c * v - s * u, V[k][q] = s * v + c * u;
      }
    }
  }
  for (std::size_t k = 0; k < 3; ++k) out.moments[k] = S[(k + 1) % 3][(k + 1) % 3] + S[(k + 2) % 3][(k + 2) % 3];
  // Rotations keep the axes right-handed. The largest of the quaternion's numbers first (Shepperd 1978).
  const double trace = V[0][0] + V[1][1] + V[2][2];
  const double square[4] = {trace, V[0][0], V[1][1], V[2][2]};
  const auto most = static_cast<std::size_t>(std::max_element(square, square + 4) - square);
  std::array<double, 4>& o = out.quat;
  if (most == 0) {
    o = {1 + trace, V[2][1] - V[1][2], V[0][2] - V[2][0], V[1][0] - V[0][1]};
  } else {
    const std::size_t i = most - 1, j = (i + 1) % 3, k = (i + 2) % 3;
    o[0] = V[k][j] - V[j][k];
    o[1 + i] = 1 + V[i][i] - V[j][j] - V[k][k];
    o[1 + j] = V[j][i] + V[i][j], o[1 + k] = V[k][i] + V[i][k];
  }
  const double norm = std::sqrt(o[0] * o[0] + o[1] * o[1] + o[2] * o[2] + o[3] * o[3]);
  for (double& value : o) value /= norm;
  return out;
}

bool is_randomization(const std::string& kind) {
  return std::ranges::any_of(kRandomizations, [&](const RandomizationKind& k) {
    return kind == k.name || (k.alias != nullptr && kind == k.alias);
  });
}

Randomization read_randomization(JsonSection& section, const std::string& name, const sim::ModelInfo& info,
                                 std::span<const sim::EntityInfo> entities, const std::string& entity) {
  return Reader(section, name, info, entities, entity).read();
}

std::vector<Parameter> parameters_of(std::span<const Randomization> randomizations) {
  std::vector<Parameter> all;
  const auto add = [&all](Parameter p) {
    if (std::ranges::find(all, p) == all.end()) all.push_back(p);
  };
  for (const Randomization& r : randomizations) {
    for (const Write& w : r.writes)
      if (w.place == Write::kParameter) add(static_cast<Parameter>(w.which));
    for (const Randomization::Inertia& inertia : r.inertias) {
      add(Parameter::kLinkMass), add(Parameter::kLinkInertia);
      if (!inertia.density_alone()) add(Parameter::kLinkCom), add(Parameter::kLinkInertiaQuat);
    }
    if (!r.turns.empty()) add(Parameter::kGeomQuat);
  }
  return all;
}

}  // namespace cohort::tasks
