// What a random model has beside its bodies.
#include "random_parts.h"

#include <algorithm>

namespace cohort::sim::test {

namespace {

using Strings = std::vector<std::string>;

// Tendons.

const Attributes& tendon_attributes() {
  static const Attributes table{{0.4, "stiffness", number(0, 50)},
                                {0.4, "damping", number(0, 2)},
                                {0.2, "springlength", either(0.5, number(0.05, 0.3), tuple({{0.05, 0.2}, {0.2, 0.5}}))},
                                {0.2, "actuatorfrcrange", tuple({{-1, -0.1}, {0.1, 1}})}};
  return table;
}

const Attributes& tendon_limit_attributes() {
  static const Attributes table{
      {0.3, "margin", number(0, 0.05)}, {0.3, "solreflimit", solref()}, {0.3, "solimplimit", solimp()}};
  return table;
}

const Attributes& tendon_friction_attributes() {
  static const Attributes table{{1, "frictionloss", number(0, 1)}, {0.3, "solreffriction", solref()}};
  return table;
}

Element tendon(Sketch& s, const char* tag, const Value& range) {
  Element tendon{tag, {{"name", s.names.fresh("t")}}, {}};
  s.names.tendons.push_back(tendon.attributes[0].second);
  if (s.draw.chance(0.3)) {
    tendon.set("range", range(s.draw));
    draw_attributes(s.draw, tendon_limit_attributes(), tendon);
  }
  draw_attributes(s.draw, tendon_attributes(), tendon);
  if (s.draw.chance(0.25)) draw_attributes(s.draw, tendon_friction_attributes(), tendon);
  return tendon;
}

Element fixed_tendon(Sketch& s) {
  Element fixed_tendon = tendon(s, "fixed", tuple({{-0.5, 0}, {0, 0.5}}));
  if (s.draw.chance(0.25)) fixed_tendon.set("armature", number(0.001, 0.3)(s.draw));
  Strings joints = s.names.hinges;
  const int count = 1 + s.draw.below(std::min(3, static_cast<int>(joints.size())));
  for (int i = 0; i < count; ++i) {
    const auto chosen = joints.begin() + s.draw.below(static_cast<int>(joints.size()));
    fixed_tendon.add(Element{"joint", {{"joint", *chosen}, {"coef", number(-1.5, 1.5)(s.draw)}}, {}});
    joints.erase(chosen);
  }
  return fixed_tendon;
}

/// Two to four sites, with geoms to wrap around and pulleys between them.
Element spatial_tendon(Sketch& s) {
  Element spatial = tendon(s, "spatial", tuple({{0.05, 0.3}, {0.3, 0.8}}));
  const bool inertia = s.draw.chance(0.25);  // which MuJoCo allows without wrapping only
  if (inertia) spatial.set("armature", number(0.001, 0.3)(s.draw));
  const int count = 2 + s.draw.below(3);
  std::string site;
  for (int i = 0; i < count; ++i) {
    site = s.draw.any_but(s.names.sites, site);
    spatial.add(Element{"site", {{"site", site}}, {}});
    if (i + 1 < count && !inertia && !s.names.round.empty() && s.draw.chance(0.35)) {
      Element& wrap = spatial.add("geom");
      wrap.set("geom", s.draw.any(s.names.round));
      if (s.draw.chance(0.4)) wrap.set("sidesite", s.draw.any(s.names.sites));
    } else if (i >= 1 && i + 2 < count && s.draw.chance(0.3)) {
      spatial.add(Element{"pulley", {{"divisor", s.draw.pick({"2", "4", "0.5"})}}, {}});
      spatial.add(Element{"site", {{"site", site}}, {}});
    }
  }
  return spatial;
}

// Contacts.

const Attributes& pair_attributes() {
  static const Attributes table{{0.5, "condim", one_of({"1", "3", "4", "6"})},
                                {0.4, "friction", tuple({{0.1, 1}, {0.1, 1}, {0, 0.05}, {0, 0.01}, {0, 0.01}})},
                                {0.3, "solref", solref()},
                                {0.2, "solreffriction", solref()},
                                {0.3, "solimp", solimp()},
                                {0.3, "margin", number(0, 0.1)},
                                {0.2, "gap", number(0, 0.03)}};
  return table;
}

/// Sets two different names of the list; the list has two at least.
void set_two(Draw& draw, const Strings& names, const std::string& attribute, Element& element) {
  const std::string& first = draw.any(names);
  element.set(attribute + "1", first);
  element.set(attribute + "2", draw.any_but(names, first));
}

// Equalities.

const Attributes& equality_attributes() {
  static const Attributes table{{0.3, "solref", solref()}, {0.3, "solimp", solimp()}, {0.15, "active", fixed("false")}};
  return table;
}

/// An equality of two objects, of which the second may be missing where `alone` says so.
struct EqualityKind {
  const char* tag;
  const char* objects;  ///< the attributes' names without their number
  Strings Names::*from;
  bool alone;
  Attributes own;
};

const std::vector<EqualityKind>& equality_kinds() {
  const Attributes polynomial{{0.7, "polycoef", numbers(5, -1, 1)}};
  const Value pose = [](Draw& draw) { return numbers(3, -0.2, 0.2)(draw) + " 0.9 0.1 0.3 0.1"; };
  static const std::vector<EqualityKind> kinds{
      {"connect", "body", &Names::bodies, true, {{1, "anchor", numbers(3, -0.1, 0.1)}}},
      {"connect", "site", &Names::sites, false, {}},
      {"weld",
       "body",
       &Names::bodies,
       true,
       {{0.4, "relpose", pose}, {0.3, "anchor", numbers(3, -0.1, 0.1)}, {0.5, "torquescale", number(0, 2)}}},
      {"weld", "site", &Names::sites, false, {{0.5, "torquescale", number(0, 2)}}},
      {"joint", "joint", &Names::hinges, true, polynomial},
      {"tendon", "tendon", &Names::tendons, true, polynomial}};
  return kinds;
}

void add_equality(Sketch& s, Element& section) {
  const EqualityKind& kind = s.draw.any(equality_kinds());
  const Strings& objects = s.names.*kind.from;
  if (objects.size() < (kind.alone ? 1u : 2u)) return;
  Element& equality = section.add(kind.tag);
  if (objects.size() < 2 || (kind.alone && s.draw.chance(0.35))) {
    equality.set(std::string(kind.objects) + "1", s.draw.any(objects));
  } else {
    set_two(s.draw, objects, kind.objects, equality);
  }
  draw_attributes(s.draw, kind.own, equality);
  draw_attributes(s.draw, equality_attributes(), equality);
}

}  // namespace

Element random_tendons(Sketch& s) {
  Element section{"tendon", {}, {}};
  if (!s.names.hinges.empty() && s.draw.chance(0.35)) {
    for (int left = 1 + s.draw.below(2); left > 0; --left) section.add(fixed_tendon(s));
  }
  if (s.names.sites.size() > 2 && s.draw.chance(0.4)) {
    for (int left = 1 + s.draw.below(2); left > 0; --left) section.add(spatial_tendon(s));
  }
  return section;
}

Element random_contact(Sketch& s) {
  Element section{"contact", {}, {}};
  if (s.names.bodies.size() > 1 && s.draw.chance(0.25)) {
    set_two(s.draw, s.names.bodies, "body", section.add("exclude"));
  }
  if (s.names.geoms.size() > 1 && s.draw.chance(0.35)) {
    Element& pair = section.add("pair");
    set_two(s.draw, s.names.geoms, "geom", pair);
    draw_attributes(s.draw, pair_attributes(), pair);
  }
  return section;
}

Element random_equalities(Sketch& s) {
  Element section{"equality", {}, {}};
  for (int left = s.draw.chance(0.35) ? 1 + s.draw.below(2) : 0; left > 0; --left) add_equality(s, section);
  return section;
}

}  // namespace cohort::sim::test
