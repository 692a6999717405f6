// Every parameter that environments may have of their own: motion as MuJoCo's, the same bits in every lane width, saved
// and loaded; and what engines refuse.
#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "sim/simulate.h"

namespace cohort::sim {
namespace {

/// A floating trunk with a leg on limits, springs and friction, and an arm in the world; feet that touch the ground,
/// sensors of force. `integrator`, `cone`: of the model.
std::string model_xml(const std::string& integrator, const std::string& cone) {
  return "<mujoco><option timestep='0.002' integrator='" + integrator + "' cone='" + cone + R"('/>
  <worldbody><geom type='plane' size='0 0 .1' friction='.15 .005 .0001'/>
    <body name='trunk' pos='0 0 .45'><freejoint/><geom type='box' size='.2 .1 .05' mass='4' pos='.02 0 .01'/>
      <site name='imu' pos='.05 0 0'/>
      <body name='thigh' pos='.15 0 0' euler='0 10 5'><joint name='hip' axis='0 1 0' damping='.2' armature='.01' range='-30 20' limited='true' stiffness='8' springref='20'/>
        <geom type='capsule' fromto='0 0 0 0 .02 -.2' size='.03' mass='1'/>
        <body name='shin' pos='0 .02 -.2'><joint name='knee' axis='0 1 0' damping='.1' armature='.02' frictionloss='.3'/>
          <geom type='capsule' fromto='0 0 0 .01 0 -.2' size='.02' mass='.5'/><geom type='ellipsoid' pos='0 0 -.2' size='.06 .05 .04' mass='.1' friction='.1 .005 .0001'/></body></body></body>
    <body name='upper' pos='1 0 1'><joint name='shoulder' axis='1 0 0' frictionloss='.5' range='-40 60' limited='true'/>
      <geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03'/><site name='elbow' pos='0 0 -.3'/>
      <body name='fore' pos='0 0 -.3'><joint name='elbow' type='ball' damping='.02' range='0 70' limited='true'/>
        <geom type='box' size='.03 .02 .15' pos='.01 0 -.15' euler='0 20 30'/></body>
      <body name='slider' pos='.1 0 0'><joint name='slide' type='slide' axis='0 0 1' range='-.05 .05' limited='true' stiffness='50'/>
        <geom type='sphere' size='.03' pos='.02 0 0'/></body></body></worldbody>
  <actuator><position name='hip' joint='hip' kp='40' kv='2' forcerange='-6 6'/><motor name='knee' joint='knee' gear='2' forcerange='-1 1'/>
    <motor name='shoulder' joint='shoulder' gear='3'/></actuator>
  <sensor><force site='elbow' name='force'/><accelerometer site='imu' name='accelerometer'/><jointlimitfrc joint='slide' name='limit'/>
    <subtreecom body='trunk' name='com'/></sensor></mujoco>)";
}

constexpr int kEnvs = 20;

std::unique_ptr<Scene> make(EngineKind engine, LaneWidth lanes, const std::string& integrator,
                            const std::string& cone) {
  SceneOptions o;
  o.engine = engine;
  o.lanes = lanes;
  o.seed = 5;
  auto scene = std::make_unique<Scene>(o);
  scene->add_entity(Mjcf{.file = "", .xml = model_xml(integrator, cone)});
  scene->build(kEnvs);
  return scene;
}

/// Values of environment `env`, from the model's; environment 0 keeps those.
float changed(Parameter p, float own, int env, std::size_t i) {
  if (env == 0) return own;
  const float step = 0.13f * static_cast<float>((env * 5 + static_cast<int>(i) * 3) % 7 - 3);  // -0.39 to 0.39
  switch (p) {
    case Parameter::kLinkCom:
      return i < 3 ? own : own + 0.1f * step;  // the world has none
    case Parameter::kGravity:
      return own + 3 * step;
    case Parameter::kGeomPos:
      return own + 0.05f * step;
    case Parameter::kGeomSize:
      return i < 3 ? own : own * (1 + step);  // a plane keeps its own
    default:
      return own * (1 + step);
  }
}

void change(Scene& scene, Parameter p) {
  const std::vector<float> own = scene.engine().model_values(p);
  std::vector<float> values;
  for (int e = 0; e < kEnvs; ++e) {
    for (std::size_t i = 0; i < own.size(); ++i) values.push_back(changed(p, own[i], e, i));
    if (p == Parameter::kGeomQuat) {  // scaled above
      std::copy(own.begin(), own.end(), values.end() - static_cast<std::ptrdiff_t>(own.size()));
    }
    if (p != Parameter::kLinkInertiaQuat && p != Parameter::kGeomQuat) continue;
    for (std::size_t k = p == Parameter::kGeomQuat ? 4 : 0; k < own.size() && e > 0; k += 4) {
      // Turned about x, y or z by what differs between environments and links.
      float* const q = values.data() + static_cast<std::size_t>(e) * own.size() + k;
      const float half = 0.4f * static_cast<float>(e % 4) + 0.1f * static_cast<float>(k / 4);
      const float c = std::cos(half), s = std::sin(half), w = own[k], x = own[k + 1], y = own[k + 2], z = own[k + 3];
      const float turned[4] = {c * w - s * x, c * x + s * w, c * y + s * z, c * z - s * y};
      std::copy_n(turned, 4, q);
    }
  }
  scene.set_parameter(p, values);
}

std::vector<float> run(Scene& scene, int steps, int first = 0) {
  for (int s = first; s < steps; ++s) {
    scene.set_random_ctrl(s);
    scene.step();
  }
  std::vector<float> seen = scene.get_qpos();
  const std::vector<float> speed = scene.get_qvel();
  seen.insert(seen.end(), speed.begin(), speed.end());
  for (const char* name : {"force", "accelerometer", "limit", "com"}) {
    const std::vector<float> sensor = scene.get_sensor(name);
    seen.insert(seen.end(), sensor.begin(), sensor.end());
  }
  return seen;
}

class OwnParameter : public ::testing::TestWithParam<int> {
 protected:
  static Parameter parameter() { return static_cast<Parameter>(GetParam()); }
};

constexpr int kSteps = 50;

void push(Scene& scene) {
  std::vector<float> wrench(6 * scene.info().links.size(), 0.0f);
  wrench[6 * static_cast<std::size_t>(scene.info().link("trunk")) + 1] = 2;
  wrench[6 * static_cast<std::size_t>(scene.info().link("shin"))] = 4;
  scene.set_links_force(wrench);
}

TEST_P(OwnParameter, MovesEveryEnvironmentAsMujocoDoes) {
  for (const char* integrator : {"Euler", "implicitfast"}) {
    for (const char* cone : {"pyramidal", "elliptic"}) {
      const std::unique_ptr<Scene> batched = make(EngineKind::kBatched, LaneWidth::kAuto, integrator, cone),
                                   mujoco = make(EngineKind::kMujoco, LaneWidth::kAuto, integrator, cone);
      for (Scene* scene : {batched.get(), mujoco.get()}) change(*scene, parameter()), push(*scene);
      const std::vector<float> ours = run(*batched, kSteps), theirs = run(*mujoco, kSteps);
      ASSERT_EQ(ours.size(), theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        // Contacts and limits amplify rounding; forces are the largest of what is compared.
        EXPECT_NEAR(ours[i], theirs[i], 5e-3 * (1 + std::abs(theirs[i]))) << integrator << ' ' << cone << ' ' << i;
      }
      const std::unique_ptr<Scene> plain = make(EngineKind::kMujoco, LaneWidth::kAuto, integrator, cone);
      push(*plain);
      const std::vector<float> model = run(*plain, kSteps);
      float most = 0;
      for (std::size_t i = 0; i < model.size(); ++i) most = std::max(most, std::abs(model[i] - theirs[i]));
      EXPECT_GT(most, 1e-3f) << "the parameter changes nothing";
    }
  }
}

TEST_P(OwnParameter, HasTheSameBitsInEveryLaneWidthAndGoesOnFromASavedState) {
  std::vector<float> truth;
  for (const LaneWidth lanes : widths()) {
    const std::unique_ptr<Scene> scene = make(EngineKind::kBatched, lanes, "implicitfast", "pyramidal");
    change(*scene, parameter()), push(*scene);
    std::vector<std::uint8_t> saved;
    run(*scene, kSteps / 2);
    saved = scene->engine().save_state();
    const std::vector<float> end = run(*scene, kSteps, kSteps / 2);
    if (truth.empty()) truth = end;
    EXPECT_TRUE(same_bits(end, truth)) << to_string(lanes);
    const std::unique_ptr<Scene> again = make(EngineKind::kBatched, lanes, "implicitfast", "pyramidal");
    again->engine().load_state(saved);
    EXPECT_TRUE(same_bits(run(*again, kSteps, kSteps / 2), truth)) << to_string(lanes);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OwnParameter, ::testing::Range(0, kParameterCount),
                         [](const ::testing::TestParamInfo<int>& of) {
                           return std::string(parameter_name(static_cast<Parameter>(of.param)));
                         });

TEST(OwnParameters, WhatAnEngineHasNoPlaceForIsRefusedWithARemedy) {
  const auto refusal = [](EngineKind engine, Parameter p, std::size_t item, float value) {
    const std::unique_ptr<Scene> scene = make(engine, LaneWidth::kAuto, "Euler", "pyramidal");
    std::vector<float> values = scene->engine().model_values(p);
    values.at(item) = value;
    return message_of([&] { scene->set_parameter(p, values); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal(EngineKind::kBatched, Parameter::kDofFrictionloss, 0, 0.1f), "a small frictionloss in the file");
  EXPECT_EQ(refusal(EngineKind::kMujoco, Parameter::kDofFrictionloss, 0, 0.1f), "");
  has(refusal(EngineKind::kBatched, Parameter::kJointStiffness, 0, 1), "no hinge or slide");
  has(refusal(EngineKind::kBatched, Parameter::kLinkInertia, 3, -1), "below zero");
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco})
    has(refusal(engine, Parameter::kLinkCom, 2, 0.1f), "the world has no centre of mass");
  SceneOptions o;
  o.engine = EngineKind::kMujoco;
  Scene cube(o);
  cube.add_entity(
      Mjcf{.file = "",
           .xml = "<mujoco><worldbody><body name='cube'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"});
  cube.build(1);
  const std::vector<float> com{0, 0, 0, 0, 0, 0.1f};
  has(message_of([&] { cube.set_parameter(Parameter::kLinkCom, com); }), "take the engine `batched`");
}

TEST(OwnParameters, AFreeCubesCentreMovesInTheBatchedEngine) {
  // MuJoCo's answer to a file that says so: the body turns about its centre of mass, wherever its origin is.
  const auto fall = [](EngineKind engine, const std::string& inertial, bool moved) {
    SceneOptions o;
    o.engine = engine;
    Scene scene(o);
    scene.add_entity(Mjcf{.file = "",
                          .xml = "<mujoco><worldbody><geom type='plane' size='0 0 .1'/><body name='cube' pos='0 0 2'>"
                                 "<freejoint/><inertial mass='1' diaginertia='.01 .02 .015' " +
                                 inertial + "/><geom type='box' size='.1 .1 .1'/></body></worldbody></mujoco>"});
    scene.build(2);
    if (moved) scene.set_parameter(Parameter::kLinkCom, std::vector<float>{0, 0, 0, .03f, .02f, -.01f}, Indices{1});
    scene.set_qvel(std::vector<float>{0, 0, 0, 1, 2, .5f});
    for (int s = 0; s < 100; ++s) scene.step();
    return scene.get_qpos(Indices{1});
  };
  const std::vector<float> ours = fall(EngineKind::kBatched, "pos='0 0 0'", true),
                           theirs = fall(EngineKind::kMujoco, "pos='.03 .02 -.01'", false),
                           still = fall(EngineKind::kBatched, "pos='0 0 0'", false);
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-4) << i;
  EXPECT_GT(std::abs(ours[0] - still[0]) + std::abs(ours[1] - still[1]), 1e-3f);
}

}  // namespace
}  // namespace cohort::sim
