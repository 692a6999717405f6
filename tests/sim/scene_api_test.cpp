// What a user of the scene's interface does, on both engines: names, velocities, contacts, gains and masses of single
// environments, mocap bodies, files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/message_of.h"
#include "sim/scene.h"

namespace cohort::sim {
namespace {

const std::string kModels = COHORT_SOURCE_DIR "/tests/sim/models/";
/// Single precision of the poses that velocities are worked out from, over arms of a metre.
constexpr float kVelocityTolerance = 2e-5f;

class SceneApi : public ::testing::TestWithParam<EngineKind> {
 protected:
  static SceneOptions options() {
    SceneOptions o;
    o.engine = GetParam();
    o.seed = 11;
    return o;
  }
  static std::filesystem::path file(const std::string& ending) {
    return std::filesystem::temp_directory_path() / format("cohort_api_{}.{}", getpid(), ending);
  }
};

/// Every kind of joint, several in a body, anchors beside the origin; sensors say what MuJoCo takes for the velocities.
const char* const kTree = R"(<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="base" pos="0 0 1"><freejoint/><geom size="0.1" mass="1"/>
      <body name="hip" pos="0.3 0 0.1" euler="20 0 30">
        <joint name="roll" axis="1 0.2 0" pos="0.05 0 0" ref="10"/><joint name="pitch" axis="0 1 0" pos="0 0 -0.1"/>
        <joint name="reach" type="slide" axis="1 0 1"/><geom size="0.05" pos="0.1 0 0" mass="0.5"/>
        <body name="hand" pos="0.2 0.1 0"><joint name="wrist" type="ball" pos="0 0.03 0"/>
          <geom size="0.04" pos="0.1 0 0" mass="0.2"/>
          <body name="tool" pos="0 0 0.1" euler="0 40 0"><geom size="0.02" mass="0.1"/></body></body></body></body>
    <body name="post" pos="2 0 0"><geom size="0.1" mass="1"/></body>
  </worldbody>
  <sensor>
    <framelinvel name="lin0" objtype="xbody" objname="base"/><frameangvel name="ang0" objtype="xbody" objname="base"/>
    <framelinvel name="lin1" objtype="xbody" objname="hip"/><frameangvel name="ang1" objtype="xbody" objname="hip"/>
    <framelinvel name="lin2" objtype="xbody" objname="hand"/><frameangvel name="ang2" objtype="xbody" objname="hand"/>
    <framelinvel name="lin3" objtype="xbody" objname="tool"/><frameangvel name="ang3" objtype="xbody" objname="tool"/>
  </sensor></mujoco>)";

TEST_P(SceneApi, LinksMoveAsMujocosFrameSensorsSay) {
  Scene scene(options());
  Entity tree = scene.add_entity(Mjcf{.file = "", .xml = kTree});
  scene.build(3);
  std::vector<float> velocity;
  for (int i = 0; i < 3 * scene.info().nv; ++i) velocity.push_back(std::sin(1.7f * static_cast<float>(i)));
  scene.set_qvel(velocity);
  for (int i = 0; i < 40; ++i) scene.step();
  const std::vector<float> lin = tree.get_links_vel(), ang = tree.get_links_ang();
  const auto links = static_cast<std::size_t>(tree.links().size());
  for (std::size_t e = 0; e < 3; ++e) {
    for (std::size_t k = 0; k < 4; ++k) {
      const std::vector<float> l = scene.get_sensor(format("lin{}", k), {static_cast<int>(e)}),
                               a = scene.get_sensor(format("ang{}", k), {static_cast<int>(e)});
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(lin[(e * links + k) * 3 + i], l[i], kVelocityTolerance) << "link " << k;
        EXPECT_NEAR(ang[(e * links + k) * 3 + i], a[i], kVelocityTolerance) << "link " << k;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(lin[(e * links + 4) * 3 + i], 0) << "a fixed link moves";
  }
  EXPECT_EQ(tree.get_vel({1}), scene.get_links_vel({tree.links()[0]}, {1}));
}

TEST_P(SceneApi, ContactsAtRestCarryTheWeight) {
  Scene scene(options());
  Entity floor = scene.add_entity(Plane{}, "floor");
  Entity ball = scene.add_entity(Sphere{0.1, {.pose = {{0, 0, 0.1}}, .mass = 2}}, "ball");
  Entity box = scene.add_entity(Box{{0.4, 0.4, 0.2}, {.pose = {{2, 0, 0.1}}, .mass = 3}}, "box");
  scene.build(2);
  for (int i = 0; i < 1500; ++i) scene.step();
  EXPECT_EQ(scene.get_contacts(1).size(), 5u);
  const std::vector<Contact> under_ball = ball.get_contacts(1), under_box = box.get_contacts(1);
  ASSERT_EQ(under_ball.size(), 1u);
  const Contact& c = under_ball[0];
  EXPECT_EQ(c.geom1, floor.geoms()[0]);
  EXPECT_EQ(c.geom2, ball.geoms()[0]);
  EXPECT_EQ(c.link2, ball.links()[0]);
  EXPECT_NEAR(c.force[2], 2 * 9.81, 0.02);
  EXPECT_NEAR(c.normal[2], 1, 1e-6);
  EXPECT_NEAR(c.pos[2], 0, 0.01);
  EXPECT_LT(c.distance, 0);
  ASSERT_EQ(under_box.size(), 4u);
  double sum = 0;
  for (const Contact& corner : under_box) sum += corner.force[2];
  EXPECT_NEAR(sum, 3 * 9.81, 0.03);
  EXPECT_EQ(floor.get_contacts(0).size(), 5u);
  EXPECT_NE(message_of([&] { scene.get_contacts(2); }).find("environment 2"), std::string::npos);
}

TEST(SceneContacts, AreTheSameOnBothEngines) {
  std::vector<std::vector<Contact>> found;
  std::vector<float> qpos, qvel;
  for (EngineKind engine : {EngineKind::kMujoco, EngineKind::kBatched}) {
    SceneOptions o;
    o.engine = engine;
    o.tolerance = 1e-12;
    o.iterations = 200;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "pile.xml"});
    scene.build(1);
    if (engine == EngineKind::kMujoco) {
      for (int i = 0; i < 300; ++i) scene.step();
      qpos = scene.get_qpos(), qvel = scene.get_qvel();
    }
    // Both from the state that single precision keeps.
    scene.set_qpos(qpos);
    scene.set_qvel(qvel);
    found.push_back(scene.get_contacts(0));
    std::sort(found.back().begin(), found.back().end(), [](const Contact& a, const Contact& b) {
      const auto key = [](const Contact& c) {
        return std::make_tuple(c.geom1, c.geom2, std::lround(1e3 * c.pos[0]), std::lround(1e3 * c.pos[1]));
      };
      return key(a) < key(b);
    });
  }
  ASSERT_GT(found[0].size(), 3u);
  ASSERT_EQ(found[0].size(), found[1].size());
  double scale = 0;
  for (const Contact& c : found[0]) scale = std::max(scale, std::abs(c.force[2]));
  for (std::size_t k = 0; k < found[0].size(); ++k) {
    const Contact &theirs = found[0][k], &ours = found[1][k];
    EXPECT_EQ(theirs.geom1, ours.geom1);
    EXPECT_EQ(theirs.geom2, ours.geom2);
    EXPECT_NEAR(theirs.distance, ours.distance, 1e-5);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(theirs.pos[i], ours.pos[i], 1e-4) << k;
      EXPECT_NEAR(theirs.normal[i], ours.normal[i], 1e-4) << k;
      EXPECT_NEAR(theirs.force[i], ours.force[i], 0.01 * scale) << k;
    }
  }
}

TEST_P(SceneApi, EntitiesAndTheirPartsAreFoundByName) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"}, "arm");
  scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 2, 0}}}, "copy");
  scene.add_entity(Plane{.pose = {{0, 0, -1}}}, "floor");
  EXPECT_EQ(scene.entity("copy").name(), "copy");
  scene.build(2, {1.5, 2});
  Entity copy = scene.entity("copy");
  EXPECT_EQ(
      scene.info().links[static_cast<std::size_t>(copy.links()[static_cast<std::size_t>(copy.link("lower"))])].name,
      "copy/lower");
  copy.set_dofs_position(std::vector<float>{0.7f}, copy.dofs_of_joint("elbow"), {1});
  EXPECT_FLOAT_EQ(scene.get_dofs_position({3}, {1})[0], 0.7f);
  EXPECT_EQ(scene.entity("floor").geoms().size(), 1u);
  EXPECT_EQ(scene.entity("arm").geoms().size(), 2u);
  EXPECT_NEAR(copy.mass(), scene.entity("arm").mass(), 1e-12);
  EXPECT_NE(message_of([&] { scene.entity("cpy"); }).find("`copy`"), std::string::npos);
  EXPECT_NE(message_of([&] { copy.link("lowr"); }).find("lower"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.entity("floor").get_pos(); }).find("part of the world"), std::string::npos);
  EXPECT_NE(message_of([&] { copy.set_pos(std::vector<float>{0, 0, 0}); }).find("stands still"), std::string::npos);
  // Where a picture puts the environments: about the origin.
  EXPECT_EQ(scene.environment_offset(0)[1], -1);
  EXPECT_EQ(scene.environment_offset(1)[1], 1);
}

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
  EXPECT_EQ(driven, 2 * 21);
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

TEST_P(SceneApi, AStateOfAnotherModelOfTheSameSizesIsRefused) {
  const auto path = file("other.state");
  const std::string xml = read_file(kModels + "arm.xml");
  std::string other = xml;
  other.replace(other.find("0.4 0 0\" size"), 3, "0.5");
  Scene one(options()), two(options());
  one.add_entity(Mjcf{.file = "", .xml = xml});
  two.add_entity(Mjcf{.file = "", .xml = other});
  one.build(2);
  two.build(2);
  one.save_state(path);
  EXPECT_NE(message_of([&] { two.load_state(path); }).find("another scene"), std::string::npos);
  one.load_state(path);
  std::filesystem::remove(path);
}

TEST_P(SceneApi, BasesAndMocapBodiesArePut) {
  Scene scene(options());
  Entity ball = scene.add_entity(Sphere{0.1, {.pose = {{0, 0, 5}}, .mass = 2}}, "ball");
  scene.build(3);
  ball.set_pos(std::vector<float>{1, 2, 3}, {1});
  ball.set_quat(std::vector<float>{0, 1, 0, 0}, {1});
  EXPECT_EQ(ball.get_pos(), (std::vector<float>{0, 0, 5, 1, 2, 3, 0, 0, 5}));
  EXPECT_EQ(ball.get_quat({1}), (std::vector<float>{0, 1, 0, 0}));
  // A force of its weight keeps the ball where it is.
  scene.set_links_force(std::vector<float>{0, 0, 2 * 9.81f, 0, 0, 0}, {ball.links()[0]}, {0});
  for (int i = 0; i < 100; ++i) scene.step();
  EXPECT_NEAR(ball.get_pos({0})[2], 5, 1e-4);
  EXPECT_LT(ball.get_pos({2})[2], 4.9);
  EXPECT_NEAR(ball.get_vel({2})[2], -9.81 * 100 * scene.info().timestep, 1e-3);
  EXPECT_NE(message_of([&] {
              scene.set_mocap_pos(std::vector<float>{0, 0, 0}, {ball.links()[0]});
            }).find("no mocap"),
            std::string::npos);

  Scene lone(options());
  Entity hand = lone.add_entity(Mjcf{.file = "",
                                     .xml = "<mujoco><worldbody><body name='target' mocap='true' pos='0 0 1'><geom "
                                            "size='0.1'/></body></worldbody></mujoco>"},
                                "hand");
  lone.build(3);
  hand.set_pos(std::vector<float>{4, 5, 6}, {2});
  EXPECT_EQ(hand.get_pos(), (std::vector<float>{0, 0, 1, 0, 0, 1, 4, 5, 6}));
}

TEST_P(SceneApi, MocapBodiesOfSeveralFilesStandWhereTheirFilesArePut) {
  // Half a turn about z. The file's floor and the frame around the box are put with it.
  const Pose pose{{1, 6, 0}, {0, 0, 0, 1}};
  const std::string xml =
      "<mujoco><worldbody><geom type='plane' size='1 1 0.1' pos='0 0 -1'/>"
      "<body name='target' mocap='true' pos='0.5 0 1'><geom size='0.1' contype='0' conaffinity='0'/></body>"
      "<frame pos='0 1 0'><body name='box' pos='0.5 0 1'><freejoint/><geom size='0.1'/></body></frame>"
      "</worldbody><equality><weld body1='target' body2='box'/></equality></mujoco>";
  SceneOptions without_gravity = options();
  without_gravity.gravity = {0, 0, 0};
  Scene scene(without_gravity);
  Entity here = scene.add_entity(Mjcf{.file = "", .xml = xml}, "here");
  Entity there = scene.add_entity(Mjcf{.file = "", .xml = xml, .pose = pose}, "there");
  scene.build(2);
  ASSERT_EQ(here.links().size(), 2u);
  ASSERT_EQ(there.links().size(), 2u);
  const auto expect_at = [&](Entity& entity, std::vector<float> target, std::vector<float> box, int env) {
    const std::vector<float> pos = entity.get_links_pos({env});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(pos[i], target[i], 2e-3) << i;
      EXPECT_NEAR(pos[3 + i], box[i], 2e-3) << i;
    }
  };
  expect_at(here, {0.5f, 0, 1}, {0.5f, 1, 1}, 0);
  expect_at(there, {0.5f, 6, 1}, {0.5f, 5, 1}, 0);
  // The weld takes the box along, in the environment whose target moves.
  scene.set_mocap_pos(std::vector<float>{0.5f, 6, 1.2f}, {there.links()[0]}, {1});
  for (int i = 0; i < 500; ++i) scene.step();
  expect_at(there, {0.5f, 6, 1.2f}, {0.5f, 5, 1.2f}, 1);
  expect_at(there, {0.5f, 6, 1}, {0.5f, 5, 1}, 0);
}

TEST_P(SceneApi, AStateIsSetAsAWholeOrNotAtAll) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(3);
  for (int i = 0; i < 10; ++i) scene.step();
  const std::vector<float> before = scene.get_qpos();
  const std::vector<float> q{0.1f, 0.2f, 0.3f, 0.4f}, v{1, 2, 3, 4};
  EXPECT_NE(message_of([&] { scene.reset_to_state(q, std::vector<float>{1}, {0, 2}); }), "");
  EXPECT_EQ(scene.get_qpos(), before);
  scene.reset_to_state(q, v, {2, 0});
  EXPECT_EQ(scene.get_qpos({0}), (std::vector<float>{0.3f, 0.4f}));
  EXPECT_EQ(scene.get_qvel({2}), (std::vector<float>{1, 2}));
  EXPECT_EQ(scene.get_qpos({1}), (std::vector<float>{before[2], before[3]}));
  EXPECT_EQ(scene.get_ctrl({0}), (std::vector<float>{0, 0}));
  const std::vector<std::uint8_t> mask{0, 1};
  EXPECT_NE(message_of([&] { scene.reset(Indices::from_mask(mask)); }).find("mask has 2 entries"), std::string::npos);
}

TEST_P(SceneApi, AMeshAndATerrainAreEntities) {
  const auto path = file("obj");
  write_file_atomically(path, "v 0 0 0\nv 0.2 0 0\nv 0 0.2 0\nv 0 0 0.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  Scene scene(options());
  Entity hill = scene.add_entity(Terrain{.rows = 3,
                                         .cols = 3,
                                         .heights = std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0},
                                         .size = {4, 4},
                                         .height = 0.2},
                                 "hill");
  Entity part =
      scene.add_entity(Mesh{.file = path.string(), .scale = {2, 2, 2}, .shape = {.pose = {{0.5, 0.5, 0.6}}}}, "part");
  scene.build(2);
  EXPECT_NEAR(part.mass(), 1000 * 0.4 * 0.4 * 0.4 / 6, 0.05);
  for (int i = 0; i < 400; ++i) scene.step();
  EXPECT_GT(part.get_pos({1})[2], 0.0f);
  EXPECT_GE(hill.get_contacts(1).size(), 1u);
  std::filesystem::remove(path);
}

TEST_P(SceneApi, MoreEnvironmentsThanMemoryAreRefusedWithTheNumbers) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  const std::string text = message_of([&] { scene.build(2000000000); });
  EXPECT_NE(text.find("2000000000"), std::string::npos) << text;
  EXPECT_NE(text.find("enough for"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Engines, SceneApi, ::testing::Values(EngineKind::kBatched, EngineKind::kMujoco),
                         [](const auto& each) { return to_string(each.param); });

TEST(SceneModelFile, KeepsTheEntitiesOfItsScene) {
  const auto path = std::filesystem::temp_directory_path() / format("cohort_api_{}.cohort", getpid());
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Plane{.pose = {{0, 0, -3}}}, "floor");
  scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 1, 0}}}, "arm");
  scene.build(2);
  scene.save_model(path);
  Scene loaded(o);
  loaded.build_from_file(path, 2);
  Entity arm = loaded.entity("arm");
  EXPECT_EQ(arm.dofs().size(), 2u);
  arm.set_dofs_position(std::vector<float>{0.4f}, arm.dofs_of_joint("elbow"));
  scene.entity("arm").set_dofs_position(std::vector<float>{0.4f}, {1});
  for (int i = 0; i < 20; ++i) scene.step(), loaded.step();
  EXPECT_EQ(scene.get_qpos(), loaded.get_qpos());
  EXPECT_EQ(arm.get_links_vel(), scene.entity("arm").get_links_vel());
  EXPECT_NE(message_of([&] { loaded.save_model(path); }).find("copy that file"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cohort::sim
