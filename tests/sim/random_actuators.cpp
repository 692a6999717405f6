// Actuators and sensors of a random model.
#include "random_parts.h"

namespace cohort::sim::test {

namespace {

using Strings = std::vector<std::string>;

// Actuators: what they pull, and by which law.

/// Which element of the model an actuator moves.
struct Target {
  Strings attributes;  ///< one of them, chosen evenly
  Strings Names::*from;
  double gear_probability;
  Value gear;
};

const std::vector<Target>& targets() {
  const Value wrench = [](Draw& draw) {
    if (draw.chance(0.3)) return numbers(3, -1, 1)(draw) + " 0 0 0";
    return draw.chance(0.4) ? "0 0 0 " + numbers(3, -1, 1)(draw) : numbers(6, -1, 1)(draw);
  };
  const Target joint{
      {"joint", "joint", "joint", "joint", "joint", "jointinparent"}, &Names::hinges, 0.5, number(-2, 2)};
  static const std::vector<Target> list{{{"joint", "jointinparent"}, &Names::balls, 1, numbers(3, -1, 1)},
                                        {{"joint", "jointinparent"}, &Names::frees, 1, numbers(6, -1, 1)},
                                        {{"tendon"}, &Names::tendons, 0.5, number(-2, 2)},
                                        {{"site"}, &Names::sites, 1, wrench},
                                        {{"cranksite"}, &Names::sites, 0.5, number(-2, 2)},
                                        joint,
                                        joint};
  return list;
}

/// A servo that every target may have.
struct Law {
  const char* tag;
  Attributes own;
};

const std::vector<Law>& laws() {
  static const std::vector<Law> list{
      {"motor", {}},
      {"position", {{1, "kp", number(0.5, 20)}, {0.4, "kv", number(0, 2)}, {0.3, "timeconst", number(0.005, 0.2)}}},
      {"position", {{1, "kp", number(0.5, 20)}, {1, "dampratio", number(0.2, 1.5)}}},
      {"velocity", {{1, "kv", number(0.1, 3)}}},
      {"intvelocity",
       {{1, "kp", number(0.5, 10)}, {0.3, "kv", number(0.1, 2)}, {1, "actrange", tuple({{-2, -0.2}, {0.2, 2}})}}},
      {"damper", {{1, "kv", number(0.1, 3)}}},
      {"muscle",
       {{1, "lengthrange", tuple({{-1, -0.3}, {0.3, 1}})},
        {1, "force", number(0.5, 10)},
        {0.3, "tausmooth", number(0.1, 1)},
        {0.3, "range", tuple({{0.5, 0.8}, {1, 1.3}})},
        {0.3, "vmax", number(0.3, 3)},
        {0.3, "fvmax", number(1, 1.5)},
        {0.3, "fpmax", number(0.5, 2)}}},
      {"general", {}},
      {"general", {}}};
  return list;
}

void add_general_law(Draw& draw, Element& general) {
  static const Attributes activation{{0.4, "actrange", tuple({{-0.5, -0.05}, {0.05, 0.5}})},
                                     {0.4, "actearly", fixed("true")}};
  static const Attributes bias{{1, "biastype", fixed("affine")}, {1, "biasprm", tuple({{-2, 1}, {-2, 1}, {-2, 1}})}};
  const std::string dynamics = draw.pick({"none", "integrator", "filter", "filterexact"});
  general.set("dyntype", dynamics);
  if (dynamics == "filter" || dynamics == "filterexact") general.set("dynprm", number(0.001, 0.2)(draw));
  if (dynamics != "none") draw_attributes(draw, activation, general);
  if (draw.chance(0.4)) {
    general.set("gaintype", "affine");
    general.set("gainprm", numbers(3, -2, 2)(draw));
  } else {
    general.set("gainprm", number(-3, 3)(draw));
  }
  if (draw.chance(0.5)) draw_attributes(draw, bias, general);
}

void set_target(Sketch& s, const Target& target, Element& actuator) {
  const Strings& objects = s.names.*target.from;
  const std::string attribute = s.draw.any(target.attributes), object = s.draw.any(objects);
  if (attribute == "cranksite") {
    actuator.set("slidersite", s.draw.any_but(objects, object));
    actuator.set("cranklength", number(0.1, 1)(s.draw));
  }
  actuator.set(attribute, object);
  if (attribute == "site" && objects.size() > 1 && s.draw.chance(0.5)) {
    actuator.set("refsite", s.draw.any_but(objects, object));
  }
  if (s.draw.chance(target.gear_probability)) actuator.set("gear", target.gear(s.draw));
}

void add_actuator(Sketch& s, Element& section) {
  static const Attributes limits{{0.3, "forcerange", tuple({{-1, -0.05}, {0.05, 1}})}};
  const Target& target = s.draw.any(targets());
  const bool is_crank = target.attributes.front() == "cranksite";
  if ((s.names.*target.from).size() < (is_crank ? 2u : 1u)) return;
  const Law* chosen = &s.draw.any(laws());
  // MJCF has no muscle at a site.
  while (std::string(chosen->tag) == "muscle" && target.attributes.front() == "site") chosen = &s.draw.any(laws());
  const Law& law = *chosen;
  Element& actuator = section.add(law.tag);
  actuator.set("name", s.names.fresh("a"));
  s.names.actuators.push_back(actuator.attributes[0].second);
  set_target(s, target, actuator);
  const std::string tag = law.tag;
  if (tag == "damper") {  // whose control is a gain
    actuator.set("ctrlrange", "0 " + number(0.1, 1)(s.draw));
  } else if (s.draw.chance(0.3)) {
    actuator.set("ctrlrange", tuple({{-1, -0.1}, {0.1, 1}})(s.draw));
  }
  draw_attributes(s.draw, limits, actuator);
  draw_attributes(s.draw, law.own, actuator);
  if (tag == "general") add_general_law(s.draw, actuator);
}

// Sensors.

/// Sensors of one object, all of them at once.
struct SensorGroup {
  const char* object;
  Strings Names::*from;
  Strings tags;
  bool cutoff;
};

const std::vector<SensorGroup>& sensor_groups() {
  static const std::vector<SensorGroup> list{
      {"joint", &Names::hinges, {"jointpos", "jointvel", "jointactuatorfrc"}, true},
      {"joint", &Names::balls, {"ballquat"}, false},
      {"joint", &Names::balls, {"ballangvel"}, true},
      {"tendon", &Names::tendons, {"tendonpos", "tendonvel", "tendonactuatorfrc"}, true},
      {"actuator", &Names::actuators, {"actuatorpos", "actuatorvel", "actuatorfrc"}, true},
      {"site", &Names::sites, {"accelerometer"}, true},
      {"site", &Names::sites, {"gyro", "velocimeter"}, true},
      {"site", &Names::sites, {"magnetometer"}, true},
      {"site", &Names::sites, {"force"}, true},
      {"site", &Names::sites, {"torque"}, true},
      {"site", &Names::sites, {"touch"}, true},
      {"site", &Names::sites, {"rangefinder"}, true},
      {"body", &Names::bodies, {"subtreecom"}, true},
      {"body", &Names::bodies, {"subtreelinvel"}, true},
      {"body", &Names::bodies, {"subtreeangmom"}, true}};
  return list;
}

void set_cutoff(Draw& draw, Element& sensor) {
  if (draw.chance(0.25)) sensor.set("cutoff", number(0.05, 2)(draw));
}

void add_group(Sketch& s, Element& section) {
  const SensorGroup& group = s.draw.any(sensor_groups());
  const Strings& objects = s.names.*group.from;
  if (objects.empty()) return;
  for (const std::string& tag : group.tags) {
    Element& sensor = section.add(tag);
    sensor.set(group.object, s.draw.any(objects));
    if (group.cutoff) set_cutoff(s.draw, sensor);
  }
}

/// prefix: "obj" or "ref".
void set_frame(Sketch& s, const std::string& prefix, Element& sensor) {
  const struct {
    const char* type;
    const Strings& names;
  } kinds[] = {{"body", s.names.bodies},
               {"xbody", s.names.bodies},
               {"geom", s.names.geoms},
               {"site", s.names.sites},
               {"camera", s.names.cameras}};
  const auto& kind = kinds[s.draw.below(s.names.cameras.empty() ? 4 : 5)];
  sensor.set(prefix + "type", kind.type);
  sensor.set(prefix + "name", s.draw.any(kind.names));
}

void add_frame_sensor(Sketch& s, Element& section) {
  const struct {
    const char* tag;
    bool reference, cutoff;
  } kinds[] = {{"framepos", true, true},     {"framequat", true, false},   {"framexaxis", true, false},
               {"frameyaxis", true, false},  {"framezaxis", true, false},  {"framelinvel", true, true},
               {"frameangvel", true, true},  {"framelinacc", false, true}, {"framelinacc", false, true},
               {"frameangacc", false, true}, {"frameangacc", false, true}};
  const auto& kind = kinds[s.draw.below(static_cast<int>(std::size(kinds)))];
  Element& sensor = section.add(kind.tag);
  set_frame(s, "obj", sensor);
  if (kind.reference && s.draw.chance(0.5)) set_frame(s, "ref", sensor);
  if (kind.cutoff) set_cutoff(s.draw, sensor);
}

/// Of the contacts of one or two objects, or all.
void add_contact_sensor(Sketch& s, Element& section) {
  static const Attributes output{{1, "num", one_of({"1", "2", "3"})},
                                 {1, "reduce", one_of({"none", "mindist", "maxforce", "netforce"})},
                                 {1, "data", fixed("found force torque dist pos normal tangent")}};
  Element& sensor = section.add("contact");
  const int first = s.draw.below(6);
  if (first == 0) sensor.set("geom1", s.draw.any(s.names.geoms));
  if (first == 1) sensor.set("body1", s.draw.any(s.names.bodies));
  if (first == 2) sensor.set("subtree1", s.draw.any(s.names.bodies));
  if (first == 3) sensor.set("site", s.draw.any(s.names.sites));
  if (first != 3 && s.draw.chance(0.5)) {
    const bool geom = s.draw.chance(0.5);
    sensor.set(geom ? "geom2" : "body2", s.draw.any(geom ? s.names.geoms : s.names.bodies));
  }
  draw_attributes(s.draw, output, sensor);
}

/// How far two geoms or bodies are apart, and where they are nearest. No geom is asked for its distance from itself.
void add_distance_sensor(Sketch& s, Element& section) {
  Element& sensor = section.add(s.draw.pick({"distance", "normal", "fromto"}));
  const auto& [geom, own] =
      s.names.solids[static_cast<std::size_t>(s.draw.below(static_cast<int>(s.names.solids.size())))];
  Strings bodies, geoms;
  for (const std::string& body : s.names.bodies)
    if (body != own) bodies.push_back(body);
  for (const auto& [other, body] : s.names.solids)
    if (other != geom) geoms.push_back(other);
  const int kind = s.draw.below(4);
  if (kind == 0 && own != "world" && !bodies.empty())
    sensor.set("body1", own), sensor.set("body2", s.draw.any(bodies));
  else if (kind == 1 && !bodies.empty())
    sensor.set("geom1", geom), sensor.set("body2", s.draw.any(bodies));
  else
    sensor.set("geom1", geom), sensor.set("geom2", s.draw.any(geoms));
  sensor.set("cutoff", number(0.2, 2)(s.draw));
}

}  // namespace

Element random_actuators(Sketch& s) {
  Element section{"actuator", {}, {}};
  for (int left = s.draw.chance(0.6) ? 1 + s.draw.below(4) : 0; left > 0; --left) add_actuator(s, section);
  return section;
}

Element random_sensors(Sketch& s) {
  Element section{"sensor", {}, {}};
  for (int left = s.draw.below(9); left > 0; --left) {
    const int kind = s.draw.below(10);
    if (kind == 0) {
      section.add("clock");
    } else if (kind < 6) {
      add_group(s, section);
    } else if (kind < 9) {
      add_frame_sensor(s, section);
    } else {
      add_contact_sensor(s, section);
    }
  }
  // After the others, which a seed has kept.
  if (s.names.solids.size() > 1 && s.draw.chance(0.3)) add_distance_sensor(s, section);
  return section;
}

}  // namespace cohort::sim::test
