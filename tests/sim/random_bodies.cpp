// Bodies of a random model: joints, inertias, geoms, sites and cameras.
#include "random_parts.h"

namespace cohort::sim::test {

namespace {

/// Of geoms, m. Bodies lie within twice that of each other, so that many touch.
constexpr double kLeastSize = 0.04, kMostSize = 0.12;

struct Shape {
  const char* type;
  int sizes;      ///< numbers of `size`
  bool searched;  ///< its contacts with shapes like it are found by a search
  bool round;     ///< tendons wrap around it
};
/// The sphere is there twice, because tendons and closed forms need it.
constexpr Shape kShapes[] = {{"sphere", 1, false, true}, {"sphere", 1, false, true},    {"capsule", 2, false, false},
                             {"box", 3, false, false},   {"ellipsoid", 3, true, false}, {"cylinder", 2, true, true},
                             {"mesh", 0, true, false}};
constexpr int kClosedShapes = 4, kAllShapes = 7;

const Attributes& contact_attributes() {
  static const Attributes table{{0.3, "condim", one_of({"1", "3", "4", "6"})},
                                {0.4, "friction", tuple({{0, 1.5}, {0, 0.05}, {0, 0.01}})},
                                {0.25, "margin", number(0, 0.06)},
                                {0.2, "gap", number(0, 0.03)},
                                {0.25, "solref", solref()},
                                {0.25, "solimp", solimp()},
                                {0.15, "priority", one_of({"1", "-1", "2"})},
                                {0.2, "solmix", one_of({"0", "0.3", "2", "1e-20"})},
                                {0.2, "contype", one_of({"0", "1", "2", "3"})},
                                {0.2, "conaffinity", one_of({"0", "1", "2", "3"})},
                                {0.05, "rgba", fixed("1 0 0 0")},  // rays pass through it
                                {0.1, "group", one_of({"0", "3"})}};
  return table;
}

const Attributes& joint_attributes() {
  static const Attributes table{
      {0.4, "pos", numbers(3, -0.1, 0.1)},   {0.3, "damping", number(0, 2)},
      {0.3, "stiffness", number(0, 20)},     {0.1, "springdamper", tuple({{0.05, 0.5}, {0.3, 1.2}})},
      {0.5, "armature", number(0.001, 0.2)}, {0.1, "actuatorgravcomp", fixed("true")}};
  return table;
}

const Attributes& limit_attributes() {
  static const Attributes table{{0.3, "margin", number(0, 0.1)},
                                {0.3, "solreflimit", solref()},
                                {0.3, "solimplimit", solimp()},
                                {0.05, "limited", fixed("false")}};
  return table;
}

const Attributes& friction_loss_attributes() {
  static const Attributes table{
      {1, "frictionloss", number(0, 1)}, {0.4, "solreffriction", solref()}, {0.4, "solimpfriction", solimp()}};
  return table;
}

/// What a hinge, a slide or a ball has of its own.
struct JointKind {
  const char* type;
  Value range;
  Attributes own;
};
enum : int { kHinge = 0, kSlide = 1, kBall = 2 };

const JointKind& joint_kind(int kind) {
  const Value axis = either(0.5, one_of({"1 0 0", "0 1 0", "0 0 1", "0 0 -1", "0 -1 0"}), numbers(3, -1, 1));
  const Value force = tuple({{-2, -0.1}, {0.1, 2}});
  static const JointKind kinds[] = {
      {"hinge",
       tuple({{-40, 5}, {5, 60}}),
       {{1, "axis", axis},
        {0.2, "springref", number(-30, 30)},
        {0.2, "ref", number(-30, 30)},
        {0.15, "actuatorfrcrange", force}}},
      {"slide",
       tuple({{-0.2, 0.02}, {0.03, 0.2}}),
       {{1, "axis", axis},
        {0.2, "springref", number(-0.1, 0.1)},
        {0.2, "ref", number(-0.1, 0.1)},
        {0.15, "actuatorfrcrange", force}}},
      {"ball", [](Draw& draw) { return "0 " + number(10, 80)(draw); }, {}},
  };
  return kinds[kind];
}

const Attributes& free_joint_attributes() {
  static const Attributes table{{0.3, "damping", number(0, 1)},
                                {0.3, "stiffness", number(0, 5)},
                                {0.3, "armature", number(0, 0.1)},
                                {0.2, "frictionloss", number(0, 1)}};
  return table;
}

const Attributes& site_attributes() {
  static const Attributes table{{1, "type", one_of({"sphere", "box", "capsule", "cylinder", "ellipsoid"})},
                                {1, "size", numbers(3, 0.03, 0.2)},
                                {1, "pos", numbers(3, -0.15, 0.15)},
                                {0.6, "euler", numbers(3, -180, 180)}};
  return table;
}

const Attributes& camera_attributes() {
  static const Attributes table{{1, "pos", numbers(3, -0.1, 0.1)}, {1, "euler", numbers(3, -90, 90)}};
  return table;
}

/// Type and size; the name is registered.
Element shape_of_geom(Sketch& s) {
  const Shape& shape = kShapes[s.draw.below(s.choice.searched ? kAllShapes : kClosedShapes)];
  Element geom{"geom", {{"name", s.names.fresh("g")}, {"type", shape.type}}, {}};
  if (shape.sizes > 0) {
    geom.set("size", numbers(shape.sizes, kLeastSize, kMostSize)(s.draw));
  } else {
    geom.set("mesh", s.draw.pick({"rock", "wedge"}));
  }
  if (shape.round) s.names.round.push_back(geom.attributes[0].second);
  return geom;
}

/// A plane or a terrain.
Element ground(Sketch& s) {
  Element geom{"geom", {{"name", s.names.fresh("g")}}, {}};
  if (s.choice.searched && s.draw.chance(0.5)) {
    geom.set("type", "hfield");
    geom.set("hfield", "field");
  } else {
    geom.set("type", "plane");
    geom.set("size", s.draw.pick({"0 0 1", "1 1 1"}));
  }
  geom.set("pos", numbers(3, -0.1, 0.1)(s.draw));
  if (s.draw.chance(0.4)) geom.set("euler", numbers(3, -10, 10)(s.draw));
  return geom;
}

void finish_geom(Sketch& s, Element& geom, const std::string& body) {
  draw_attributes(s.draw, contact_attributes(), geom);
  s.names.geoms.push_back(geom.attributes[0].second);
  if (geom.attributes[1].second != "hfield") s.names.solids.emplace_back(s.names.geoms.back(), body);
}

Element world_geom(Sketch& s) {
  static const Attributes place{{1, "pos", tuple({{-0.4, 0.4}, {-0.4, 0.4}, {-0.1, 0.3}})},
                                {0.4, "euler", numbers(3, -90, 90)}};
  Element geom = s.draw.chance(0.4) ? ground(s) : shape_of_geom(s);
  const bool placed = geom.attributes[1].second == "plane" || geom.attributes[1].second == "hfield";
  if (!placed) draw_attributes(s.draw, place, geom);
  finish_geom(s, geom, "world");
  return geom;
}

Element body_geom(Sketch& s) {
  static const Attributes own{
      {0.7, "pos", numbers(3, -0.12, 0.12)}, {0.6, "euler", numbers(3, -180, 180)}, {0.2, "mass", number(0.1, 2)}};
  Element geom = shape_of_geom(s);
  draw_attributes(s.draw, own, geom);
  const bool mesh = geom.attributes[1].second == "mesh";
  if (!mesh && s.draw.chance(0.05)) geom.set("shellinertia", "true");
  finish_geom(s, geom, s.names.bodies.back());
  return geom;
}

Element joint(Sketch& s, int kind) {
  const JointKind& k = joint_kind(kind);
  Element joint{"joint", {{"name", s.names.fresh("j")}, {"type", k.type}}, {}};
  (kind == kBall ? s.names.balls : s.names.hinges).push_back(joint.attributes[0].second);
  draw_attributes(s.draw, k.own, joint);
  draw_attributes(s.draw, joint_attributes(), joint);
  if (s.draw.chance(0.35)) {
    joint.set("range", k.range(s.draw));
    draw_attributes(s.draw, limit_attributes(), joint);
  }
  if (s.draw.chance(0.25)) draw_attributes(s.draw, friction_loss_attributes(), joint);
  return joint;
}

Element free_joint(Sketch& s) {
  const std::string name = s.names.fresh("j");
  s.names.frees.push_back(name);
  if (s.draw.chance(0.6)) return Element{"freejoint", {{"name", name}}, {}};
  Element joint{"joint", {{"name", name}, {"type", "free"}}, {}};
  draw_attributes(s.draw, free_joint_attributes(), joint);
  return joint;
}

/// One to three; a ball is the last.
void add_joints(Sketch& s, Element& body) {
  const int count = s.draw.pick({1, 1, 1, 1, 2, 2, 3});
  for (int i = 0; i < count; ++i) {
    const int kind = s.draw.pick({kHinge, kHinge, kHinge, kSlide, kSlide, kBall});
    body.add(joint(s, kind));
    if (kind == kBall) return;
  }
}

Element inertial(Draw& draw) {
  Element e{"inertial", {}, {}};
  e.set("pos", numbers(3, -0.1, 0.1)(draw));
  e.set("mass", number(0.1, 3)(draw));
  if (draw.chance(0.5)) {
    e.set("diaginertia", numbers(3, 0.02, 0.03)(draw));
    if (draw.chance(0.6)) e.set("euler", numbers(3, -90, 90)(draw));
  } else {
    e.set("fullinertia", "0.02 0.03 0.025 " + numbers(3, -0.004, 0.004)(draw));
  }
  return e;
}

Element site(Sketch& s) {
  Element site{"site", {{"name", s.names.fresh("s")}}, {}};
  s.names.sites.push_back(site.attributes[0].second);
  draw_attributes(s.draw, site_attributes(), site);
  return site;
}

Element camera(Sketch& s) {
  Element camera{"camera", {{"name", s.names.fresh("c")}}, {}};
  s.names.cameras.push_back(camera.attributes[0].second);
  draw_attributes(s.draw, camera_attributes(), camera);
  return camera;
}

/// Depth: levels of bodies that may hang on it.
Element random_body(Sketch& s, int depth, bool top) {
  static const Attributes own{{0.5, "euler", numbers(3, -60, 60)}, {0.15, "gravcomp", number(0, 1.5)}};
  static const Value top_pos = tuple({{-0.25, 0.25}, {-0.25, 0.25}, {0, 0.4}}), child_pos = numbers(3, -0.2, 0.2);
  Element body{"body", {{"name", s.names.fresh("b")}}, {}};
  s.names.bodies.push_back(body.attributes[0].second);
  body.set("pos", (top ? top_pos : child_pos)(s.draw));
  draw_attributes(s.draw, own, body);
  const bool mocap = top && s.draw.chance(0.07);
  if (mocap) {
    body.set("mocap", "true");
  } else if (top && s.draw.chance(0.4)) {
    body.add(free_joint(s));
  } else if (top || !s.draw.chance(0.15)) {  // else it is welded to its parent
    add_joints(s, body);
  }
  if (s.draw.chance(0.15)) body.add(inertial(s.draw));
  for (int left = 1 + s.draw.below(2); left > 0; --left) body.add(body_geom(s));
  for (int left = s.draw.below(3); left > 0; --left) body.add(site(s));
  if (s.draw.chance(0.1)) body.add(camera(s));
  const int children = depth > 0 ? s.draw.pick({0, 1, 1, 2}) : 0;
  for (int i = 0; i < children; ++i) body.add(random_body(s, depth - 1, false));
  return body;
}

}  // namespace

Element random_worldbody(Sketch& s) {
  Element world{"worldbody", {}, {}};
  for (double probability : {0.7, 0.3}) {
    if (s.draw.chance(probability)) world.add(world_geom(s));
  }
  for (double probability : {1.0, 0.5}) {
    if (s.draw.chance(probability)) world.add(site(s));
  }
  for (int left = 1 + s.draw.below(3); left > 0; --left) world.add(random_body(s, s.draw.below(3), true));
  return world;
}

}  // namespace cohort::sim::test
