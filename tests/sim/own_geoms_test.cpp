// Geoms whose place and size differ between environments: what a model that says so in its file does, to the bit.
#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/message_of.h"
#include "sim/simulate.h"

namespace cohort::sim {
namespace {

/// Numbers that floats hold exactly, so that a file and a parameter say the same.
struct Heap {
  double ball = 0.125, rod = 0.0625, rod_length = 0.1875, egg = 0.15625, drum = 0.125, drum_height = 0.09375,
         brick = 0.125;
};
Heap heap_of(int env) {
  const double more = 0.03125 * (env % 4);
  return {.ball = 0.125 + more / 2,
          .rod = 0.0625 + more / 4,
          .rod_length = 0.1875 + more,
          .egg = 0.15625 - more / 2,
          .drum = 0.125 + more / 4,
          .drum_height = 0.09375 + more / 2,
          .brick = 0.125 + more / 2};
}

/// Two of each shape fall onto one another, a wedge, a plane and hills, so that every narrow phase has work; a ray looks
/// down on them, and sensors tell how far some are apart.
std::string model_xml(const Heap& h) {
  std::string bodies;
  for (int k = 0; k < 2; ++k) {
    const auto body = [&](const char* name, double x, double y, double z, const std::string& geom) {
      bodies += format(
          "<body name='{}{}' pos='{} {} {}' euler='{} {} 10'><freejoint/><inertial pos='0 0 0' mass='1' "
          "diaginertia='.01 .012 .014'/><geom name='{}{}' {}/></body>",
          name, k, x, y, z + 0.5 * k, 15 * k + 5, 20 - 30 * k, name, k, geom);
    };
    body("ball", 0, 0.02, 0.3, format("type='sphere' size='{}'", h.ball));
    body("rod", 0.25, 0, 0.3, format("type='capsule' size='{} {}'", h.rod, h.rod_length));
    body("egg", 0, 0.27, 0.3, format("type='ellipsoid' size='{} .125 .09375'", h.egg));
    body("drum", 0.26, 0.25, 0.3, format("type='cylinder' size='{} {}'", h.drum, h.drum_height));
    body("brick", 0.12, 0.12, 0.55, format("type='box' size='{} .09375 .0625'", h.brick));
    body("wedge", -0.2, 0.1, 0.5, "type='mesh' mesh='wedge'");
  }
  return R"(<mujoco><option timestep='0.004'/><asset><mesh name='wedge' vertex='-.15 -.1 0  .15 -.1 0  0 .12 0  0 0 .2'/>
    <hfield name='hills' nrow='3' ncol='3' size='.5 .5 .1 .1' elevation='0 1 0 1 0 1 0 1 0'/></asset>
    <worldbody><geom name='floor' type='plane' size='0 0 .1' pos='0 0 -.05'/><geom name='hills' type='hfield' hfield='hills' pos='.6 .2 -.06'/>
    <site name='eye' pos='.1 .1 2' euler='180 0 0'/>)" +
         bodies +
         "</worldbody><sensor><rangefinder name='ray' site='eye'/><distance name='rod' geom1='rod0' geom2='floor' "
         "cutoff='2'/><fromto name='brick' body1='brick0' body2='drum1' cutoff='2'/><normal name='egg' geom1='egg1' "
         "geom2='wedge0' cutoff='2'/></sensor></mujoco>";
}

std::unique_ptr<Scene> make(const Heap& heap, int n, LaneWidth lanes, EngineKind engine = EngineKind::kBatched) {
  SceneOptions o;
  o.lanes = lanes;
  o.engine = engine;
  auto scene = std::make_unique<Scene>(o);
  scene->add_entity(Mjcf{.file = "", .xml = model_xml(heap)});
  scene->build(n);
  return scene;
}

/// The sizes of a heap, as the engine takes them.
std::vector<float> sizes_of(Scene& scene, const Heap& h) {
  std::vector<float> sizes = scene.engine().model_values(Parameter::kGeomSize);
  const auto put = [&](const std::string& name, std::initializer_list<double> size) {
    for (int k = 0; k < 2; ++k) {
      auto* to = sizes.data() + 3 * scene.info().geom(name + std::to_string(k));
      for (const double x : size) *to++ = static_cast<float>(x);
    }
  };
  put("ball", {h.ball}), put("rod", {h.rod, h.rod_length}), put("egg", {h.egg, 0.125, 0.09375});
  put("drum", {h.drum, h.drum_height}), put("brick", {h.brick, 0.09375, 0.0625});
  return sizes;
}

constexpr int kHeaps = 20, kFallSteps = 150;

std::vector<float> end_of(Scene& scene, int env) {
  std::vector<float> seen = scene.get_qpos(Indices{env});
  const std::vector<float> speed = scene.get_qvel(Indices{env});
  seen.insert(seen.end(), speed.begin(), speed.end());
  for (const SensorInfo& sensor : scene.info().sensors) {
    const std::vector<float> told = scene.get_sensor(sensor.name, Indices{env});
    seen.insert(seen.end(), told.begin(), told.end());
  }
  return seen;
}

TEST(OwnGeoms, SizesGiveTheBitsOfAModelThatHasThemInEveryLaneWidth) {
  std::vector<std::vector<float>> truth;
  for (int env = 0; env < 4; ++env) {
    const std::unique_ptr<Scene> scene = make(heap_of(env), 1, LaneWidth::kScalar);
    for (int s = 0; s < kFallSteps; ++s) scene->step();
    truth.push_back(end_of(*scene, 0));
    ASSERT_TRUE(env == 0 || truth[0] != truth.back()) << "sizes change nothing";
  }
  for (const LaneWidth lanes : widths()) {
    const std::unique_ptr<Scene> scene = make({}, kHeaps, lanes);
    for (int env = 0; env < kHeaps; ++env)
      scene->set_parameter(Parameter::kGeomSize, sizes_of(*scene, heap_of(env)), Indices{env});
    for (int s = 0; s < kFallSteps; ++s) scene->step();
    for (int env = 0; env < kHeaps; ++env)
      EXPECT_TRUE(same_bits(end_of(*scene, env), truth[static_cast<std::size_t>(env % 4)]))
          << to_string(lanes) << " environment " << env;
  }
}

TEST(OwnGeoms, AnotherPlaceIsWhereTheModelWouldHaveTheGeom) {
  // A board on a trestle; in each environment its foot is elsewhere and turned otherwise.
  const auto xml = [](const std::string& foot) {
    return "<mujoco><option timestep='0.004'/><worldbody><geom type='plane' size='0 0 .1'/><body pos='0 0 "
           ".4'><freejoint/>"
           "<inertial pos='0 0 0' mass='2' diaginertia='.02 .03 .04'/><geom type='box' size='.25 .125 .03125'/>"
           "<geom name='foot' type='capsule' size='.0625 .125' " +
           foot + "/></body></worldbody></mujoco>";
  };
  const auto run = [&](const std::string& foot, bool own) {
    Scene scene(SceneOptions{});
    scene.add_entity(Mjcf{.file = "", .xml = xml(foot)});
    scene.build(3);
    if (own) {
      const std::int32_t g = scene.info().geom("foot");
      const auto items = [&](int width) {
        std::vector<std::int32_t> all;
        for (int i = 0; i < width; ++i) all.push_back(width * g + i);
        return Indices(all);
      };
      scene.set_parameter(Parameter::kGeomPos, std::vector<float>{0.125f, 0.0625f, -0.125f}, Indices{1}, items(3));
      scene.set_parameter(Parameter::kGeomQuat, std::vector<float>{0.6f, 0, 0.8f, 0}, Indices{1}, items(4));
    }
    for (int s = 0; s < kFallSteps; ++s) scene.step();
    return std::vector<std::vector<float>>{scene.get_qpos(Indices{0}), scene.get_qpos(Indices{1})};
  };
  const std::string plain = "pos='0 0 -.125'";
  const auto own = run(plain, true), model = run("pos='.125 .0625 -.125' quat='.6 0 .8 0'", false),
             before = run(plain, false);
  EXPECT_TRUE(same_bits(own[0], before[0])) << "who keeps the model's place keeps its bits";
  float moved = 0;
  for (std::size_t i = 0; i < own[1].size(); ++i) {
    EXPECT_NEAR(own[1][i], model[1][i], 1e-4f) << i;
    moved = std::max(moved, std::abs(own[1][i] - before[1][i]));
  }
  EXPECT_GT(moved, 0.01f);
}

TEST(OwnGeoms, WhatAShapeCannotHaveIsRefusedByName) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const std::unique_ptr<Scene> scene = make({}, 2, LaneWidth::kAuto, engine);
    const auto refusal = [&](Parameter p, const char* geom, int width, int i, float value) {
      std::vector<float> values = scene->get_parameter(p, Indices{1});
      values.at(static_cast<std::size_t>(width * scene->info().geom(geom) + i)) = value;
      return message_of([&] { scene->set_parameter(p, values, Indices{1}); });
    };
    const auto has = [](const std::string& text, const std::string& part) {
      EXPECT_NE(text.find(part), std::string::npos) << text << "\n lacks: " << part;
    };
    has(refusal(Parameter::kGeomSize, "wedge0", 3, 0, 0.5f),
        "`wedge0`) is another than the model's, and its shape is a mesh");
    has(refusal(Parameter::kGeomSize, "floor", 3, 2, 0.5f), "its shape is a plane");
    has(refusal(Parameter::kGeomSize, "ball0", 3, 0, 0.0f), "(`ball0`), a sphere, is 0, and more than zero is needed");
    has(refusal(Parameter::kGeomQuat, "ball0", 4, 1, 2.0f), "squared length");
    EXPECT_EQ(refusal(Parameter::kGeomPos, "wedge0", 3, 0, 0.5f), "");
  }
}

}  // namespace
}  // namespace cohort::sim
