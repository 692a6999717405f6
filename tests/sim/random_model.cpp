#include "random_model.h"

#include <set>

#include "core/error.h"
#include "random_parts.h"

namespace cohort::sim::test {

namespace {

const char* const kNoFlags[] = {"constraint",   "equality",  "frictionloss", "limit",     "contact",
                                "spring",       "damper",    "gravity",      "clampctrl", "warmstart",
                                "actuation",    "refsafe",   "sensor",       "midphase",  "eulerdamp",
                                "filterparent", "autoreset", "nativeccd",    "multiccd",  "island"};

const Attributes& compiler_attributes() {
  static const Attributes table{{1, "angle", fixed("degree")},
                                {0.1, "boundmass", fixed("0.2")},
                                {0.1, "balanceinertia", fixed("true")},
                                {0.1, "inertiafromgeom", fixed("true")},
                                {0.15, "fusestatic", fixed("true")}};
  return table;
}

const Attributes& option_attributes() {
  static const Attributes table{{1, "timestep", one_of({"0.001", "0.002", "0.005", "0.01"})},
                                {1, "integrator", one_of({"Euler", "Euler", "implicitfast", "RK4"})},
                                {1, "solver", one_of({"Newton", "Newton", "Newton", "CG"})},
                                {1, "cone", one_of({"pyramidal", "elliptic"})},
                                {1, "iterations", fixed("200")},
                                {0.3, "impratio", number(0.3, 12)},
                                {0.2, "gravity", numbers(3, -10, 10)},
                                {0.3, "magnetic", numbers(3, -1, 1)}};
  return table;
}

const Attributes& fluid_attributes() {
  static const Attributes table{
      {0.15, "density", number(1, 500)}, {0.15, "viscosity", number(0.01, 1)}, {0.2, "wind", numbers(3, -2, 2)}};
  return table;
}

/// At most two flags that are off, and one that is on.
Element random_flags(Draw& draw) {
  Element flag{"flag", {}, {}};
  std::set<std::string> off;
  for (int left = draw.chance(0.35) ? 1 + draw.below(2) : 0; left > 0; --left) {
    const std::string name = kNoFlags[draw.below(static_cast<int>(std::size(kNoFlags)))];
    // Without sensors a model tells less.
    if (name == "sensor" && draw.chance(0.7)) continue;
    if (off.insert(name).second) flag.set(name, "disable");
  }
  if (draw.chance(0.1)) flag.set(draw.pick({"energy", "fwdinv", "invdiscrete"}), "enable");
  return flag;
}

Element random_option(Sketch& sketch) {
  Element option{"option", {}, {}};
  draw_attributes(sketch.draw, option_attributes(), option);
  if (sketch.choice.fluid) draw_attributes(sketch.draw, fluid_attributes(), option);
  Element flag{"flag", {}, {}};
  if (sketch.choice.flags) flag = random_flags(sketch.draw);
  if (!sketch.choice.contacts) flag = Element{"flag", {{"contact", "disable"}}, {}};
  if (!flag.attributes.empty()) option.add(flag);
  return option;
}

/// Two meshes, one of them all edges, one with a flat floor, and a terrain.
Element assets() {
  Element asset{"asset", {}, {}};
  asset.add(
      Element{"mesh",
              {{"name", "rock"},
               {"vertex", "0.1 0.01 0 -0.09 0.02 0.03 0.02 0.1 0.01 0.01 -0.12 -0.02 0.03 0.01 0.1 -0.02 0.02 -0.11"}},
              {}});
  asset.add(Element{"mesh",
                    {{"name", "wedge"},
                     {"vertex", "-.1 -.1 -.05 .1 -.1 -.06 .1 .1 -.05 -.1 .1 -.05 0 -.1 .08 0.02 .1 .1"},
                     {"scale", "0.8 1 0.9"}},
                    {}});
  asset.add(Element{"hfield",
                    {{"name", "field"},
                     {"nrow", "6"},
                     {"ncol", "5"},
                     {"size", "0.8 0.7 0.15 0.1"},
                     {"elevation", "0 1 2 1 0  3 1 0 2 1  1 1 4 0 1  2 0 1 3 0  0 2 1 1 1  1 2 0 1 0"}},
                    {}});
  return asset;
}

void add_unless_empty(Element& root, Element part) {
  if (!part.children.empty()) root.add(std::move(part));
}

}  // namespace

bool& member(Choice& choice, std::string_view name) {
  const struct {
    std::string_view name;
    bool& value;
  } members[] = {{"contacts", choice.contacts}, {"searched", choice.searched},   {"equalities", choice.equalities},
                 {"tendons", choice.tendons},   {"actuators", choice.actuators}, {"sensors", choice.sensors},
                 {"flags", choice.flags},       {"fluid", choice.fluid}};
  std::string known;
  for (const auto& m : members) {
    if (m.name == name) return m.value;
    known += (known.empty() ? "" : ", ") + std::string(m.name);
  }
  throw Error(format("a random model has no part {}: choose one of {}", name, known));
}

Element random_model(std::uint64_t seed, const Choice& choice) {
  Sketch sketch{Draw(seed), choice, {}};
  Element root{"mujoco", {}, {}};
  draw_attributes(sketch.draw, compiler_attributes(), root.add("compiler"));
  root.add(random_option(sketch));
  root.add(assets());
  root.add(random_worldbody(sketch));
  if (choice.tendons) add_unless_empty(root, random_tendons(sketch));
  if (choice.contacts) add_unless_empty(root, random_contact(sketch));
  if (choice.equalities) add_unless_empty(root, random_equalities(sketch));
  if (choice.actuators) add_unless_empty(root, random_actuators(sketch));
  if (choice.sensors) add_unless_empty(root, random_sensors(sketch));
  return root;
}

}  // namespace cohort::sim::test
