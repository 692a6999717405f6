// Parameters of single environments, links, geoms and dofs, on both engines: set, randomized, refused.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/message_of.h"
#include "sim/models.h"
#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

TEST_P(SceneApi, GainsOfOneEnvironmentReachItsActuatorOrItsSpring) {
  Scene scene(options());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(3);
  // The shoulder has a position actuator, the elbow has not.
  arm.set_dofs_kp(std::vector<float>{80, 60}, {}, {1, 2});
  arm.set_dofs_kv(std::vector<float>{5, 3}, {}, {1, 2});
  EXPECT_NE(message_of([&] { arm.control_dofs_position(std::vector<float>{0, 0}); }).find("elbow"), std::string::npos);
  const std::vector<float> gain = scene.get_parameter(Parameter::kActuatorGain, {}, {0}),
                           bias = scene.get_parameter(Parameter::kActuatorBias, {}, {1, 2});
  EXPECT_EQ(gain, (std::vector<float>{40, 80, 80}));
  EXPECT_EQ(bias, (std::vector<float>{-40, 0, -80, -5, -80, -5}));
  arm.control_dofs_position(std::vector<float>{0.4f, -0.3f}, {}, {1, 2});
  arm.control_dofs_position(std::vector<float>{0.4f}, {0}, {0});
  for (int i = 0; i < 3000; ++i) scene.step();
  const std::vector<float> q = arm.get_dofs_position();
  // Twice the gain, less than about half the sag.
  EXPECT_LT(std::abs(q[2] - 0.4f), std::abs(q[0] - 0.4f));
  EXPECT_EQ(q[2], q[4]);
  EXPECT_NEAR(q[3], -0.3f, 0.1f);
  EXPECT_NE(message_of([&] { arm.set_dofs_kp(std::vector<float>{-1, 0}); }).find("not below zero"), std::string::npos);
  const double driven = scene.memory().bytes_per_environment() - scene.engine().memory().bytes_per_environment();
  EXPECT_EQ(driven, 2 * 29);
}

TEST_P(SceneApi, MassesFrictionAndDampingOfSingleItems) {
  Scene scene(options());
  scene.add_entity(Plane{}, "floor");
  Entity arm = scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 0, 2}}}, "arm");
  Entity box = scene.add_entity(Box{{0.2, 0.2, 0.2}, {.pose = {{3, 0, 0.1}}}}, "box");
  scene.build(3);
  const std::vector<float> mass = scene.get_parameter(Parameter::kLinkMass);
  const std::size_t links = scene.info().links.size();
  arm.set_links_mass(std::vector<float>{4}, {arm.link("lower")}, {1});
  std::vector<float> expected = mass;
  expected[links + static_cast<std::size_t>(arm.links()[static_cast<std::size_t>(arm.link("lower"))])] = 4;
  EXPECT_EQ(scene.get_parameter(Parameter::kLinkMass), expected);
  // A slope of gravity's: the box slides where its friction and the floor's are low.
  scene.entity("floor").set_geoms_friction(std::vector<float>{0.05f, 0.005f, 0.0001f}, {}, {0, 1});
  box.set_geoms_friction(std::vector<float>{0.05f, 0.005f, 0.0001f}, {}, {1, 2});
  for (int e = 0; e < 3; ++e) {
    scene.set_links_force(std::vector<float>{30, 0, 0, 0, 0, 0}, {box.links()[0]}, {e});
  }
  for (int i = 0; i < 200; ++i) scene.step();
  const std::vector<float> pos = box.get_pos();
  EXPECT_NEAR(pos[0], 3, 0.01);  // one of the two is rough: the greater friction counts
  EXPECT_GT(pos[3], 3.05);
  EXPECT_NEAR(pos[6], 3, 0.01);
  arm.set_dofs_damping(std::vector<float>{50}, {0}, {2});
  arm.set_dofs_armature(std::vector<float>{1}, {1}, {2});
  EXPECT_EQ(scene.get_parameter(Parameter::kDofDamping, {2}, {0})[0], 50);
  EXPECT_EQ(scene.get_parameter(Parameter::kDofArmature, {2}, {1})[0], 1);
  EXPECT_FLOAT_EQ(scene.get_parameter(Parameter::kDofDamping, {0}, {0})[0], 0.2f);
  EXPECT_NE(message_of([&] { arm.set_links_mass(std::vector<float>{1}, {7}); }).find("link 7"), std::string::npos);
  EXPECT_NE(message_of([&] { box.set_geoms_friction(std::vector<float>{1}); }).find("1 values"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.randomize_parameter(Parameter::kLinkMass, 2, 1); }).find("smaller"),
            std::string::npos);
}

TEST_P(SceneApi, RandomizedItemsStartFromTheModelAlsoAfterLoading) {
  const auto path = file("random.state");
  const auto make = [](Scene& scene) {
    scene.add_entity(Mjcf{kModels + "arm.xml"});
    scene.build(4);
  };
  Scene first(options());
  make(first);
  first.randomize_parameter(Parameter::kLinkMass, 0.5, 1.5);
  const std::vector<float> once = first.get_parameter(Parameter::kLinkMass);
  first.save_state(path);
  Scene second(options());
  make(second);
  second.load_state(path);
  EXPECT_EQ(second.get_parameter(Parameter::kLinkMass), once);
  for (int i = 0; i < 30; ++i) first.step(), second.step();
  EXPECT_EQ(first.get_qpos(), second.get_qpos());
  // The factors multiply the model's masses, not those that the file brought.
  second.randomize_parameter(Parameter::kLinkMass, 0.5, 1.5);
  EXPECT_EQ(second.get_parameter(Parameter::kLinkMass), once);
  second.randomize_parameter(Parameter::kLinkMass, 2, 2, {}, 1, {1});
  std::vector<float> expected = once;
  const std::size_t links = second.info().links.size();
  for (std::size_t e = 0; e < 4; ++e) expected[e * links + 1] = 2 * static_cast<float>(second.info().links[1].mass);
  EXPECT_EQ(second.get_parameter(Parameter::kLinkMass), expected);
  // A scene that has parameters of its own forgets them for a state that has none.
  Scene plain(options());
  make(plain);
  plain.save_state(path);
  second.load_state(path);
  EXPECT_EQ(second.get_parameter(Parameter::kLinkMass), plain.get_parameter(Parameter::kLinkMass));
  std::filesystem::remove(path);
}

TEST_P(SceneApi, ChangingEnvironmentsOneByOneEqualsChangingThemAtOnce) {
  const auto run = [](bool one_by_one) {
    Scene scene(options());
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(5);
    for (Parameter p :
         {Parameter::kLinkMass, Parameter::kGeomFriction, Parameter::kDofArmature, Parameter::kActuatorGain}) {
      if (!one_by_one) {
        scene.randomize_parameter(p, 0.8, 1.2);
        continue;
      }
      for (int e : {3, 0, 4, 1, 2}) scene.randomize_parameter(p, 0.8, 1.2, {e});
    }
    for (int s = 0; s < 40; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    return scene.get_qvel();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(SceneApi, NoEnvironmentIsNotEveryEnvironment) {
  Scene scene(options());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(4);
  arm.set_dofs_kp(std::vector<float>{50}, {1});
  arm.control_dofs_position(std::vector<float>{0.3f}, {1});
  scene.randomize_parameter(Parameter::kLinkMass, 0.8, 1.2);
  for (int s = 0; s < 10; ++s) {
    scene.set_random_ctrl(s);
    scene.step();
  }
  const auto everything = [&] {
    std::vector<float> all = scene.get_qpos();
    for (const std::vector<float>& more :
         {scene.get_qvel(), scene.get_ctrl(), scene.get_parameter(Parameter::kLinkMass),
          scene.get_parameter(Parameter::kGeomFriction), scene.get_parameter(Parameter::kDofArmature),
          scene.get_parameter(Parameter::kDofDamping), scene.get_parameter(Parameter::kActuatorGain)}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    const ArrayView time = scene.host_view(Field::kTime);
    for (int e = 0; e < 4; ++e) {
      const std::int64_t i = e * time.strides[0];
      all.push_back(time.type == ElementType::kFloat64 ? static_cast<float>(static_cast<double*>(time.data)[i])
                                                       : static_cast<float*>(time.data)[i]);
    }
    return all;
  };
  const std::vector<float> before = everything();
  const std::vector<float> two{1, 2}, links(scene.info().links.size(), 1);
  for (const Indices& none :
       {Indices::from_mask(std::vector<std::uint8_t>(4, 0)), Indices(std::vector<std::int32_t>{})}) {
    scene.reset(none);
    scene.reset_to_keyframe("bent", none);
    scene.reset_to_state(two, two, none);
    scene.set_qpos(two, none), scene.set_qvel(two, none), scene.set_ctrl(two, none);
    arm.set_dofs_position(two, {}, none), arm.set_dofs_velocity(two, {}, none);
    arm.set_dofs_kp(two, {}, none), arm.set_dofs_kv(two, {}, none);
    arm.control_dofs_position(two, {}, none), arm.control_dofs_force(two, {}, none);
    scene.set_links_mass(links, {}, none), scene.set_dofs_armature(two, {}, none);
    scene.set_dofs_damping(two, {}, none);
    scene.set_links_force(std::vector<float>(6, 1), {1}, none);
    scene.randomize_parameter(Parameter::kGeomFriction, 2, 3, none);
    EXPECT_EQ(everything(), before);
  }
}

TEST_P(SceneApi, EnvironmentsComeInAnyOrderAndMayRepeat) {
  Scene scene(options());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(3);
  arm.set_links_mass(std::vector<float>{5, 6}, {1}, {2, 0});
  arm.set_links_mass(std::vector<float>{7, 8}, {0}, {2, 2});
  const std::size_t links = scene.info().links.size();
  const std::vector<float> mass = scene.get_parameter(Parameter::kLinkMass);
  const auto of = [&](std::size_t env, std::size_t local) {
    return mass[env * links + static_cast<std::size_t>(arm.links()[local])];
  };
  EXPECT_EQ(of(2, 1), 5);
  EXPECT_EQ(of(0, 1), 6);
  EXPECT_EQ(of(2, 0), 8);
  arm.set_dofs_kp(std::vector<float>{50}, {0}, {2, 0});
  EXPECT_EQ(scene.get_parameter(Parameter::kActuatorGain, {}, {0}), (std::vector<float>{50, 40, 50}));
  arm.control_dofs_force(std::vector<float>{0}, {0}, {2, 0, 2});
  EXPECT_EQ(scene.get_parameter(Parameter::kActuatorGain, {2, 0, 2}, {0}), (std::vector<float>{50, 50, 50}));
  Scene other(options());
  other.add_entity(Mjcf{kModels + "arm.xml"});
  other.build(3);
  scene.randomize_parameter(Parameter::kLinkMass, 0.5, 1.5, {2, 0});
  other.randomize_parameter(Parameter::kLinkMass, 0.5, 1.5);
  EXPECT_EQ(scene.get_parameter(Parameter::kLinkMass, {0, 2}), other.get_parameter(Parameter::kLinkMass, {0, 2}));
  scene.reset({2, 0, 2});
  scene.step();
}

TEST_P(SceneApi, ImpossibleParametersAreRefusedAndChangeNothing) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(3);
  for (Parameter p :
       {Parameter::kLinkMass, Parameter::kGeomFriction, Parameter::kDofArmature, Parameter::kDofDamping}) {
    const std::vector<float> before = scene.get_parameter(p);
    for (const float bad : {-1.0f, NAN, INFINITY}) {
      EXPECT_NE(message_of([&] {
                  scene.set_parameter(p, std::vector<float>{bad}, {1}, {0});
                }).find(format("environment 1 has impossible parameters: {}[0]", parameter_name(p))),
                std::string::npos);
    }
    if (p != Parameter::kDofArmature) {  // the model's is zero
      EXPECT_NE(message_of([&] { scene.randomize_parameter(p, -2, -1); }), "");
    }
    EXPECT_EQ(scene.get_parameter(p), before);
  }
  EXPECT_NE(message_of([&] { scene.randomize_parameter(Parameter::kLinkMass, 1, INFINITY); }).find("from 1 to inf"),
            std::string::npos);
  // Also past the scene: whoever writes the engine's memory commits it.
  const ArrayView mass = scene.engine().parameter(Parameter::kLinkMass);
  const std::int64_t at = 2 * mass.strides[0] + mass.strides[1];
  if (mass.type == ElementType::kFloat64) {
    static_cast<double*>(mass.data)[at] = -1;
  } else {
    static_cast<float*>(mass.data)[at] = -1;
  }
  EXPECT_NE(message_of([&] { scene.engine().commit_parameters(); }).find("environment 2"), std::string::npos);
  EXPECT_NE(message_of([&] {
              scene.get_parameter(static_cast<Parameter>(kParameterCount));
            }).find(format("no parameter {}", kParameterCount)),
            std::string::npos);
}

/// A link may lose its mass where what it is fixed to keeps one.
TEST_P(SceneApi, ALinkThatMovesKeepsAMass) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "", .xml = R"(<mujoco><worldbody><body name="arm"><joint/><geom size="0.1"/>
    <body name="load" pos="0.3 0 0"><geom size="0.1"/></body></body><body name="shelf"><geom size="0.1"/></body>
    </worldbody></mujoco>)"});
  scene.build(2);
  const int arm = scene.info().link("arm"), load = scene.info().link("load"), shelf = scene.info().link("shelf");
  const std::vector<float> before = scene.get_parameter(Parameter::kLinkMass);
  const std::vector<float> nothing = {0, 0};
  const std::string text = message_of([&] { scene.set_links_mass(nothing, {arm, load}, {1}); });
  EXPECT_NE(text.find("environment 1"), std::string::npos) << text;
  EXPECT_NE(text.find("`arm`"), std::string::npos) << text;
  EXPECT_NE(message_of([&] { scene.randomize_parameter(Parameter::kLinkMass, 0, 0); }), "");
  EXPECT_EQ(scene.get_parameter(Parameter::kLinkMass), before);
  EXPECT_EQ(message_of([&] { scene.set_links_mass(nothing, {load, shelf}, {1}); }), "");
  scene.step();
  EXPECT_EQ(scene.host_view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
}

}  // namespace
}  // namespace cohort::sim
