// What a user of the scene's interface does, on both engines: names, velocities, contacts, gains and masses of single
// environments, mocap bodies, files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/message_of.h"
#include "sim/host_memory.h"
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

TEST_P(SceneApi, ContactsOfGeomsThatCannotMoveAgainstEachOtherAreListedWithoutForce) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "", .xml = R"(<mujoco><worldbody>
      <geom name="floor" type="plane" size="1 1 1"/><body><geom name="rock" size="0.2"/></body>
      <body pos="0 0 1"><freejoint/><geom name="a" size="0.1"/><geom name="b" size="0.1" pos="0.15 0 0"/></body>
    </worldbody><contact><pair geom1="floor" geom2="rock"/><pair geom1="a" geom2="b"/></contact></mujoco>)"});
  scene.build(2);
  const std::vector<float> before = scene.get_qvel();
  std::vector<Contact> found = scene.get_contacts(1);
  ASSERT_EQ(found.size(), 2u);
  std::sort(found.begin(), found.end(), [](const Contact& x, const Contact& y) { return x.geom1 < y.geom1; });
  EXPECT_NEAR(found[0].distance, -0.2, 1e-6);
  EXPECT_NEAR(found[1].distance, -0.05, 1e-6);
  for (const Contact& c : found) EXPECT_EQ(c.force, (std::array<double, 3>{0, 0, 0}));
  scene.step();
  EXPECT_EQ(scene.view(Field::kContactCount).span<std::int32_t>()[1], 2);
  // Nothing but gravity moves the body.
  const std::vector<float> velocity = scene.get_qvel();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(velocity[i] - before[i], i == 2 ? -9.81 * 0.002 : 0, 1e-6) << i;
}

TEST_P(SceneApi, ANanInTheTimeOrTheWarmStartStopsItsEnvironment) {
  for (const Field field : {Field::kTime, Field::kWarmstart}) {
    SCOPED_TRACE(field_name(field));
    Scene scene(options());
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(3);
    scene.step();
    const std::vector<float> before = scene.get_qpos({1});
    const ArrayView view = scene.view(field);
    const std::int64_t at = view.strides[0];
    if (view.type == ElementType::kFloat64) {
      static_cast<double*>(view.data)[at] = NAN;
    } else {
      static_cast<float*>(view.data)[at] = NAN;
    }
    scene.step();
    const auto status = scene.view(Field::kStatus).span<std::int32_t>();
    EXPECT_EQ(status[1], kStatusBadState);
    EXPECT_EQ(status[0], kStatusOk);
    EXPECT_EQ(status[2], kStatusOk);
    EXPECT_EQ(scene.get_qpos({1}), before);
    scene.reset({1});
    scene.step();
    EXPECT_EQ(scene.view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
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

/// A robot that moves, with everything that refers to its parts.
const char* const kRover = R"(<mujoco>
  <option timestep="0.004" integrator="implicitfast"/>
  <default><geom density="500"/><default class="light"><geom density="100"/></default></default>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 0.1"/><geom type="box" size="0.1 0.1 0.1" pos="0 3 0.1"/>
    <site name="mark" pos="0 0 2"/>
    <body name="cart" pos="1 0 0.5"><freejoint name="root"/><geom name="hull" size="0.2"/><site name="deck"/>
      <body name="arm" pos="0.3 0 0"><joint name="swing" axis="0 1 0"/><geom name="bar" class="light" size="0.1"/></body>
    </body>
    <body name="crate" pos="1 1 0.5"><freejoint/><geom name="lid" size="0.1"/></body>
  </worldbody>
  <contact><exclude body1="cart" body2="crate"/><exclude body1="world" body2="crate"/></contact>
  <tendon><fixed name="cable"><joint joint="swing" coef="2"/></fixed>
    <spatial name="rope"><site site="mark"/><site site="deck"/></spatial></tendon>
  <equality><connect name="hinge" body1="crate" body2="cart" anchor="0 0 0"/>
    <weld name="nail" body1="crate" body2="world" active="false"/></equality>
  <actuator><position name="servo" joint="swing" kp="5"/><motor name="winch" tendon="cable"/></actuator>
  <sensor><framepos name="where" objtype="body" objname="cart"/><jointpos name="angle" joint="swing"/>
    <tendonpos name="length" tendon="rope"/>
    <framepos name="from" objtype="body" objname="crate" reftype="body" refname="world"/></sensor>
  <keyframe><key name="away" time="3" qpos="2 0 0.5 1 0 0 0 0.4 2 1 0.5 1 0 0 0" qvel="1 0 0 0 0 0 0 0 1 0 0 0 0"
    ctrl="0.4 0"/><key name="aim" ctrl="0.1 0"/></keyframe></mujoco>)";

TEST_P(SceneApi, AMovingRobotIsAddedTwiceAndStandsWhereItIsPut) {
  Scene scene(options());
  Entity here = scene.add_entity(Mjcf{.file = "", .xml = kRover}, "here");
  // A quarter of a turn about z.
  Entity there = scene.add_entity(Mjcf{.file = "", .xml = kRover, .pose = Pose{{10, 0, 0}, {0.5, 0, 0, 0.5}}}, "there");
  scene.build(2);
  const ModelInfo& m = scene.info();
  ASSERT_EQ(there.links().size(), 3u);
  EXPECT_EQ(m.links[static_cast<std::size_t>(there.links()[0])].name, "there/cart");  // the base
  EXPECT_EQ(there.links().size(), here.links().size());
  EXPECT_EQ(there.dofs().size(), here.dofs().size());
  EXPECT_EQ(there.geoms().size(), 5u);  // those of its world too, also without a name
  EXPECT_EQ(here.geoms().size(), 5u);
  EXPECT_DOUBLE_EQ(there.mass(), here.mass());  // its default classes
  const auto expect_near = [](const std::vector<float>& is, const std::vector<float>& wanted) {
    ASSERT_EQ(is.size(), wanted.size());
    for (std::size_t i = 0; i < is.size(); ++i) EXPECT_NEAR(is[i], wanted[i], 1e-5) << i;
  };
  expect_near(there.get_pos({1}), {10, 1, 0.5f});
  expect_near(scene.get_sensor("there/where", {1}), {10, 1, 0.5f});
  expect_near(scene.get_sensor("there/from", {1}), {9, 1, 0.5f});
  expect_near(scene.get_sensor("there/length"), scene.get_sensor("length"));
  for (const char* name : {"servo", "winch"}) {
    EXPECT_EQ(m.actuators[static_cast<std::size_t>(m.actuator(format("there/{}", name)))].moves,
              (std::vector<int>{there.dofs()[6]}));
  }
  // The same motion, apart from the turn: of one connected to the other, without a contact of the excluded.
  scene.reset_to_keyframe("away", {0});
  expect_near(here.get_pos({0}), {2, 0, 0.5f});
  scene.reset_to_keyframe("there/away", {1});
  expect_near(there.get_pos({1}), {10, 2, 0.5f});
  expect_near(there.get_vel({1}), {0, 1, 0});
  expect_near(there.get_dofs_position(there.dofs_of_joint("swing"), {1}), {0.4f});
  expect_near(there.get_quat({1}), {std::sqrt(0.5f), 0, 0, std::sqrt(0.5f)});
  for (int i = 0; i < 100; ++i) scene.step();
  const std::vector<float> a = here.get_pos({0}), b = there.get_pos({1});
  EXPECT_GT(a[0], 2.05f);
  expect_near({b[1], 10 - b[0], b[2]}, a);
  EXPECT_EQ(here.get_contacts(0).size(), there.get_contacts(1).size());
  // A keyframe that says no more than controls leaves the file's place.
  scene.reset_to_keyframe("there/aim", {1});
  expect_near(there.get_pos({1}), {10, 1, 0.5f});
  there.set_pos(std::vector<float>{4, 5, 6}, {1});
  expect_near(there.get_pos({1}), {4, 5, 6});
}

TEST_P(SceneApi, AMappedFileKeepsItsMocapKeyframesAndTheOnlyFileItsOptions) {
  const std::string xml =
      "<mujoco><option timestep='0.005' integrator='RK4'/><worldbody><body name='hand' mocap='true'/>"
      "<body name='ball' pos='0 0 1'><freejoint/><geom size='0.1'/></body></worldbody>"
      "<keyframe><key name='up' mpos='1 0 2' mquat='1 0 0 0'/></keyframe></mujoco>";
  Scene scene(options());
  Entity file = scene.add_entity(Mjcf{.file = "", .xml = xml, .pose = Pose{{5, 0, 0}, {0, 0, 0, 1}}}, "file");
  scene.build(1);
  EXPECT_EQ(scene.info().timestep, 0.005);
  EXPECT_EQ(scene.info().integrator, "RK4");
  scene.reset_to_keyframe("file/up");
  EXPECT_EQ(file.get_pos(), (std::vector<float>{4, 0, 2}));
  EXPECT_EQ(file.get_quat(), (std::vector<float>{0, 0, 0, 1}));
}

TEST_P(SceneApi, AUrdfMayMoveFreelyByItsOwnJoint) {
  const std::string xml =
      "<robot name='r'><link name='world'/><link name='base'><inertial><mass value='3'/><inertia ixx='.1' iyy='.1' "
      "izz='.1' ixy='0' ixz='0' iyz='0'/></inertial></link><joint name='j' type='floating'><parent link='world'/>"
      "<child link='base'/></joint></robot>";
  for (const bool fixed : {true, false}) {
    Scene scene(options());
    Entity robot = scene.add_entity(Urdf{.file = "", .xml = xml, .pose = {{0, 0, 2}}, .fixed = fixed}, "robot");
    scene.build(1);
    EXPECT_EQ(robot.dofs().size(), 6u);
    EXPECT_EQ(robot.mass(), 3);
    EXPECT_EQ(robot.get_pos(), (std::vector<float>{0, 0, 2}));
  }
}

TEST_P(SceneApi, NamesThatAModelFileTookAreRefused) {
  const std::string xml =
      "<mujoco><asset><mesh name='part' vertex='0 0 0 .1 0 0 0 .1 0 0 0 .1'/><hfield name='hill' nrow='2' ncol='2' "
      "size='1 1 1 .1' elevation='0 0 0 0'/></asset><worldbody><geom name='floor' type='plane' size='1 1 1'/>"
      "<camera name='eye'/><body name='torso' pos='0 0 .5'><freejoint/><geom size='.1'/></body></worldbody>"
      "<sensor><subtreecom name='centre' body='world'/></sensor></mujoco>";
  const auto build = [&](const Morph& morph, const std::string& name, const std::string& camera) {
    return message_of([&] {
      Scene scene(options());
      scene.add_entity(Mjcf{.file = "", .xml = xml}, "robot");
      scene.add_entity(morph, name);
      scene.add_camera({.name = camera});
      scene.build(1);
    });
  };
  const auto path = file("clash.obj");
  write_file_atomically(path, "v 0 0 0\nv 0.2 0 0\nv 0 0.2 0\nv 0 0 0.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  EXPECT_NE(build(Plane{}, "floor", "").find("entity `floor`: the scene has a geom"), std::string::npos);
  EXPECT_NE(build(Sphere{}, "torso", "").find("entity `torso`: the scene has a body"), std::string::npos);
  EXPECT_NE(build(Mesh{.file = path.string()}, "part", "").find("entity `part`: the scene has a mesh"),
            std::string::npos);
  EXPECT_NE(build(Terrain{.rows = 2, .cols = 2, .heights = {0, 0, 0, 1}}, "hill", "").find("a height field"),
            std::string::npos);
  EXPECT_NE(build(Plane{}, "plane", "eye").find("camera `eye`"), std::string::npos);
  // One file's world is the whole scene's: MuJoCo would leave its sensors out without a word.
  EXPECT_NE(build(Mjcf{.file = "", .xml = xml, .pose = Pose{}}, "second", "").find("sensor `centre`"),
            std::string::npos);
  std::filesystem::remove(path);
  Scene scene(options());
  Entity outer = scene.add_entity(Plane{}, "a"), inner = scene.add_entity(Plane{.pose = {{0, 0, -1}}}, "a/b");
  scene.add_entity(Sphere{});
  scene.build(1);
  EXPECT_EQ(outer.geoms().size(), 1u);
  EXPECT_EQ(inner.geoms().size(), 1u);
}

TEST_P(SceneApi, ShapesAreWhatTheyAreGivenWhateverAFilesDefaultsSay) {
  Scene scene(options());
  Entity robot = scene.add_entity(
      Mjcf{.file = "",
           .xml =
               "<mujoco><default><geom conaffinity='0' contype='1' solref='0.5 1' margin='0.1'/><mesh scale='3 3 3'/>"
               "<joint armature='9'/></default><worldbody><body name='ball' pos='0 0 1'><freejoint/>"
               "<geom size='0.1'/></body></worldbody></mujoco>"},
      "robot");
  scene.add_entity(Plane{.pose = {{0, 0, 0.3}}}, "ground");
  Entity box = scene.add_entity(Box{{0.2, 0.2, 0.2}, {.pose = {{1, 0, 0.45}}}}, "box");
  scene.build(1);
  EXPECT_EQ(scene.get_parameter(Parameter::kDofArmature), std::vector<float>(12, 0.0f));
  for (int i = 0; i < 700; ++i) scene.step();
  EXPECT_NEAR(robot.get_pos()[2], 0.4, 0.15);  // soft by its own solref
  EXPECT_NEAR(box.get_pos()[2], 0.4, 0.001);
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
  // Also past the scene: whoever writes the engine's memory commits it.
  const ArrayView mass = scene.engine().parameter(Parameter::kLinkMass);
  const std::int64_t at = 2 * mass.strides[0] + mass.strides[1];
  if (mass.type == ElementType::kFloat64) {
    static_cast<double*>(mass.data)[at] = -1;
  } else {
    static_cast<float*>(mass.data)[at] = -1;
  }
  EXPECT_NE(message_of([&] { scene.engine().commit_parameters(); }).find("environment 2"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.get_parameter(static_cast<Parameter>(9)); }).find("no parameter 9"),
            std::string::npos);
}

TEST_P(SceneApi, ADofThatFollowsAVelocityOrAForceIsLetGoByItsServo) {
  const auto path = file("idle.state");
  const auto make = [&](Scene& scene) {
    Entity arm = scene.add_entity(
        Mjcf{.file = "",
             .xml = "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='a' axis='0 0 1'/>"
                    "<geom size='0.1' pos='0.5 0 0' mass='1'/></body></worldbody>"
                    "<actuator><position name='servo' joint='a' kp='40.1' kv='2'/></actuator></mujoco>"},
        "arm");
    scene.build(3);
    return arm;
  };
  Scene scene(options());
  Entity arm = make(scene);
  arm.set_dofs_kv(std::vector<float>{5});
  arm.control_dofs_position(std::vector<float>{0.5f});
  for (int i = 0; i < 50; ++i) scene.step();
  arm.control_dofs_velocity(std::vector<float>{1}, {}, {1});
  arm.control_dofs_force(std::vector<float>{0}, {}, {2});
  // What is shown, and set, are the gains that it will have again.
  EXPECT_EQ(scene.get_parameter(Parameter::kActuatorGain, {}, {0}), (std::vector<float>(3, 40.1f)));
  const float coasting = arm.get_dofs_velocity({}, {2})[0];
  EXPECT_GT(coasting, 0.1f);
  for (int i = 0; i < 700; ++i) scene.step();
  scene.save_state(path);
  EXPECT_NEAR(arm.get_dofs_position({}, {0})[0], 0.5, 1e-3);
  EXPECT_NEAR(arm.get_dofs_velocity({}, {1})[0], 1, 1e-3);
  EXPECT_NEAR(arm.get_dofs_velocity({}, {2})[0], coasting, 1e-4);
  // A loaded state goes on with the same dofs let go, and gives the gains back as well.
  Scene other(options());
  make(other);
  other.load_state(path);
  for (Scene* each : {&scene, &other}) {
    Entity its = each->entity("arm");
    for (int i = 0; i < 20; ++i) each->step();
    its.set_dofs_kp(std::vector<float>{50}, {}, {2});
    its.control_dofs_position(std::vector<float>{-0.2f}, {}, {1, 2});
    EXPECT_EQ(each->get_parameter(Parameter::kActuatorGain, {}, {0}), (std::vector<float>{40.1f, 40.1f, 50}));
    for (int i = 0; i < 1500; ++i) each->step();
    EXPECT_NEAR(its.get_dofs_position({}, {1})[0], -0.2, 1e-3);
    EXPECT_NEAR(its.get_dofs_position({}, {2})[0], -0.2, 1e-3);
  }
  EXPECT_EQ(scene.get_qpos(), other.get_qpos());
  // A reset gives a dof back to its actuator, bit for bit as if nothing had been.
  Scene fresh(options());
  Entity untouched = make(fresh);
  untouched.set_dofs_kv(std::vector<float>{5});
  arm.control_dofs_force(std::vector<float>{3}, {}, {1});
  scene.step();
  scene.reset({1});
  arm.control_dofs_position(std::vector<float>{0.5f}, {}, {1});
  untouched.control_dofs_position(std::vector<float>{0.5f}, {}, {1});
  for (int i = 0; i < 100; ++i) scene.step(), fresh.step();
  EXPECT_EQ(arm.get_dofs_position({}, {1}), untouched.get_dofs_position({}, {1}));
  std::filesystem::remove(path);
}

TEST_P(SceneApi, ServosWithAGearOrAFilterAndDofsOfATendonReachTheirTargets) {
  Scene scene(options());
  Entity hand = scene.add_entity(
      Mjcf{.file = "",
           .xml =
               "<mujoco><option gravity='0 0 0'/><default><joint damping='1'/><geom contype='0'/></default><worldbody>"
               "<body><joint name='geared' axis='0 0 1'/><geom size='0.1' mass='1'/></body>"
               "<body><joint name='filtered' axis='0 0 1'/><geom size='0.1' mass='1'/></body>"
               "<body><joint name='left' type='slide' axis='0 0 1'/><geom size='0.1' mass='1'/></body>"
               "<body><joint name='right' type='slide' axis='0 0 1'/><geom size='0.1' mass='1'/></body></worldbody>"
               "<tendon><fixed name='both'><joint joint='left' coef='0.5'/><joint joint='right' coef='0.5'/></fixed>"
               "</tendon><actuator><position joint='geared' kp='1' gear='-3'/>"
               "<position joint='filtered' kp='9' timeconst='0.05'/><position name='grip' tendon='both' kp='50'/>"
               "</actuator></mujoco>"},
      "hand");
  scene.build(2);
  EXPECT_NE(message_of([&] { hand.control_dofs_position(std::vector<float>{0.1f}, {2}); }).find("left"),
            std::string::npos);
  hand.set_dofs_kp(std::vector<float>{18, 12, 40, 40});
  EXPECT_EQ(scene.get_parameter(Parameter::kActuatorGain, {1}, {0, 10, 20}), (std::vector<float>{2, 12, 50}));
  hand.set_dofs_kv(std::vector<float>{12, 12}, {2, 3});
  const std::vector<float> target{0.3f, -0.2f, 0.04f, 0.02f};
  hand.control_dofs_position(target);
  for (int i = 0; i < 2500; ++i) scene.step();
  const std::vector<float> q = hand.get_dofs_position({}, {1});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(q[i], target[i], 1e-4) << i;
}

TEST_P(SceneApi, AForceRangeThatAnActuatorWouldNotKeepIsRefused) {
  Scene scene(options());
  Entity arm = scene.add_entity(
      Mjcf{.file = "",
           .xml = "<mujoco><worldbody><body><joint name='a' axis='0 1 0'/><geom size='0.1' pos='0.5 0 0'/><body>"
                  "<joint name='b' axis='0 1 0'/><geom size='0.1' pos='0.9 0 0'/></body></body></worldbody><actuator>"
                  "<position name='servo' joint='a' kp='40' gear='2' forcerange='-8 8'/></actuator></mujoco>"});
  scene.build(2);
  const std::string text = message_of([&] {
    arm.set_dofs_force_range(std::vector<float>{-0.1f, -1}, std::vector<float>{0.1f, 1});
  });
  EXPECT_NE(text.find("servo"), std::string::npos) << text;
  EXPECT_NE(text.find("[-16, 16]"), std::string::npos) << text;
  arm.set_dofs_force_range(std::vector<float>{-16, -1}, std::vector<float>{16, 1});
}

TEST_P(SceneApi, ARotationIsSetAsOneVector) {
  Scene scene(options());
  Entity ball = scene.add_entity(Sphere{0.1}, "ball");
  scene.build(2);
  ball.set_dofs_position(std::vector<float>{0, 0, 0, 2.5f, 2.5f, 2.5f}, {}, {1});
  const std::vector<float> q = ball.get_quat({1});
  const double angle = 2.5 * std::sqrt(3.0);
  const float sign = q[0] < 0 ? 1 : -1;  // a quaternion and its opposite are one rotation; this one's first is negative
  EXPECT_NEAR(sign * q[0], std::cos(angle / 2), 1e-6);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(sign * q[i], std::sin(angle / 2) / std::sqrt(3.0), 1e-6);
  ball.set_dofs_position(std::vector<float>{0.2f, 0.1f, 0.3f}, {4, 3, 5}, {0});
  const std::vector<float> v = ball.get_dofs_position({3, 4, 5}, {0});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(v[i], 0.1 * (static_cast<double>(i) + 1), 1e-6);
}

TEST_P(SceneApi, OptionsThatNoModelHasAreRefused) {
  const auto with = [](const std::function<void(SceneOptions&)>& change) {
    SceneOptions o = options();
    change(o);
    return message_of([&] { Scene scene(o); });
  };
  EXPECT_NE(with([](auto& o) { o.gravity = {0, NAN, 0}; }).find("gravity"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.timestep = INFINITY; }).find("timestep"), std::string::npos);
  for (const double bad : {-1.0, std::nan("")}) {
    EXPECT_NE(with([&](auto& o) { o.tolerance = bad; }).find("tolerance"), std::string::npos);
    EXPECT_NE(with([&](auto& o) { o.compile_seconds = bad; }).find("compile_seconds"), std::string::npos);
    EXPECT_NE(with([&](auto& o) { o.compile_memory = bad; }).find("compile_memory"), std::string::npos);
  }
  EXPECT_NE(with([](auto& o) { o.iterations = -3; }).find("iterations"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.contact_capacity = -5; }).find("contact_capacity"), std::string::npos);
  const bool refuses = GetParam() == EngineKind::kMujoco;  // what it would not look at
  EXPECT_EQ(with([](auto& o) { o.contact_capacity = 40; }).find("engine batched") != std::string::npos, refuses);
  EXPECT_EQ(with([](auto& o) { o.row_space = 24; }).find("engine batched") != std::string::npos, refuses);
  Scene scene(options());
  scene.add_camera({.name = "eye"});
  EXPECT_NE(message_of([&] { scene.add_camera({.name = "eye"}); }).find("`eye`"), std::string::npos);
  for (const double fov : {0.0, -5.0, 180.0, std::nan("")}) {
    EXPECT_NE(message_of([&] { scene.add_camera({.name = "wide", .fov = fov}); }).find("field of view"),
              std::string::npos);
  }
  EXPECT_NE(message_of([&] { scene.add_camera({.pos = {NAN, 0, 0}}); }), "");
}

TEST_P(SceneApi, ShapesThatCannotBeAreRefused) {
  const auto build = [](const Morph& morph) {
    return message_of([&] {
      Scene scene(options());
      scene.add_entity(morph, "thing");
      scene.build(1);
    });
  };
  for (const double bad : {-1.0, std::nan("")}) {
    EXPECT_NE(build(Sphere{.shape = {.friction = {bad, 0, 0}}}).find("friction"), std::string::npos);
    EXPECT_NE(build(Plane{.friction = {1, bad, 0}}).find("friction"), std::string::npos);
  }
  for (const double bad : {1e11, std::nan("")}) {
    EXPECT_NE(build(Sphere{.shape = {.pose = {{bad, 0, 0}}}}).find("position"), std::string::npos);
  }
  EXPECT_NE(build(Terrain{.rows = 2, .cols = 2, .heights = {0, NAN, 0, 1}}).find("height"), std::string::npos);
}

TEST_P(SceneApi, AStateOfOtherOptionsIsRefused) {
  const auto path = file("options.state");
  const auto make = [&](const std::function<void(SceneOptions&)>& change) {
    SceneOptions o = options();
    change(o);
    auto scene = std::make_unique<Scene>(o);
    scene->add_entity(Mjcf{kModels + "arm.xml"});
    scene->build(2);
    return scene;
  };
  make([](auto&) {})->save_state(path);
  EXPECT_EQ(message_of([&] { make([](auto&) {})->load_state(path); }), "");
  const std::vector<std::function<void(SceneOptions&)>> changes{
      [](auto& o) {
        o.gravity = {0, 0, -1};
      },
      [](auto& o) { o.iterations = 7; }, [](auto& o) { o.tolerance = 1e-3; }, [](auto& o) { o.substeps = 2; }};
  for (const auto& change : changes) {
    EXPECT_NE(message_of([&] { make(change)->load_state(path); }).find("was saved by"), std::string::npos);
  }
  std::filesystem::remove(path);
}

TEST_P(SceneApi, ALookAtABrokenStateDoesNotStopTheNextStep) {
  Scene scene(options());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(2);
  arm.set_dofs_position(std::vector<float>{NAN, 0}, {}, {1});
  arm.get_links_pos();
  scene.get_contacts(1);
  arm.set_dofs_position(std::vector<float>{0, 0}, {}, {1});
  scene.step();
  EXPECT_EQ(scene.host_view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
}

TEST_P(SceneApi, AControlAboveWhatAStateMayHoldStopsItsEnvironment) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "",
                        .xml = "<mujoco><worldbody><body><joint name='a'/><geom size='0.1'/></body></worldbody>"
                               "<actuator><motor joint='a'/></actuator></mujoco>"});
  scene.build(2);
  scene.set_ctrl(std::vector<float>{2e10f}, {1});
  scene.step();
  const auto status = scene.host_view(Field::kStatus).span<std::int32_t>();
  EXPECT_EQ(status[0], kStatusOk);
  EXPECT_EQ(status[1], kStatusBadState);
}

TEST_P(SceneApi, EntitiesKnowTheirPartsAlsoWhenTheCompilerFusesBodies) {
  const std::string xml =
      "<mujoco><compiler fusestatic='true'/><worldbody><body name='table'><geom size='0.1'/><body name='wheel'>"
      "<joint/><geom size='0.1'/></body></body><body name='cart'><freejoint/><geom size='0.1'/><body name='box'>"
      "<geom size='0.1'/></body></body></worldbody></mujoco>";
  for (const bool posed : {false, true}) {
    Scene scene(options());
    Mjcf file{.file = "", .xml = xml};
    if (posed) file.pose = Pose{{0, 0, 3}};
    Entity robot = scene.add_entity(file, "robot");
    Entity ball = scene.add_entity(Sphere{}, "ball");
    scene.build(1);
    EXPECT_EQ(robot.geoms().size(), 4u);
    EXPECT_EQ(robot.dofs().size(), 7u);
    EXPECT_EQ(ball.geoms().size(), 1u);
    EXPECT_EQ(robot.links().size() + ball.links().size() + 1, scene.info().links.size());
    EXPECT_NO_THROW(robot.link("wheel"));
  }
}

TEST_P(SceneApi, MisuseIsSaidWithoutPlacesInTheSource) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  const std::string early = message_of([&] { scene.step(); });
  EXPECT_NE(early.find("build()"), std::string::npos);
  EXPECT_EQ(early.find(".cpp"), std::string::npos) << early;
  scene.build(3);
  EXPECT_EQ(message_of([&] { scene.add_entity(Plane{}); }).find(".cpp"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.set_qpos(std::vector<float>(5)); }).find("coordinate: 5 values"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.environment_offset(99); }).find("environment 99"), std::string::npos);
  scene.set_dofs_kp(std::vector<float>{30}, {1}, {0});
  EXPECT_NE(message_of([&] { scene.control_dofs_position(std::vector<float>{0.1f}, {1}); }).find("environment 1"),
            std::string::npos);
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
  for (const int n : {2000000000, std::numeric_limits<int>::max()}) {
    const std::string text = message_of([&] { scene.build(n); });
    EXPECT_NE(text.find(format("{} environments need", n)), std::string::npos) << text;
    EXPECT_NE(text.find("enough for"), std::string::npos) << text;
  }
}

/// While it lives, this process gets so many more bytes of its own and no others.
class HostMemory {
 public:
  explicit HostMemory(double more) {
    const std::string status = read_file("/proc/self/status");
    const double own = 1024 * std::stod(status.substr(status.find("RssAnon:") + 8));
    ::setenv(kHostMemoryVariable, format("{:.0f}", own + more).c_str(), 1);
  }
  ~HostMemory() { ::unsetenv(kHostMemoryVariable); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
};

TEST_P(SceneApi, ThePlanBeforeTheBuildIsWhatTheBuildTakes) {
  SceneOptions o = options();
  const auto total = [](const MemoryPlan& plan) { return plan.bytes_per_environment(); };
  double plain = 0;
  for (const bool own : {false, true}) {
    if (own) o.parameters = {Parameter::kLinkMass, Parameter::kGeomFriction, Parameter::kActuatorGain};
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    MemoryPlan plan = scene.plan();
    EXPECT_FALSE(scene.built());
    EXPECT_GT(plan.most_environments(), 1000);
    {
      const HostMemory limit(plan.fixed_bytes + 3000 * total(plan));
      plan = scene.plan();
      EXPECT_GT(plan.most_environments(), 1000);
      EXPECT_LE(plan.most_environments(), 3000);
      const std::string refused = message_of([&] { scene.build(6000); });
      EXPECT_NE(refused.find("6000 environments need"), std::string::npos) << refused;
      EXPECT_EQ(refused.find(", parameters ") != std::string::npos, own) << refused;
      EXPECT_FALSE(scene.built());
    }
    scene.build(16);
    const MemoryPlan taken = scene.memory();
    ASSERT_EQ(plan.parts.size(), taken.parts.size());
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      EXPECT_EQ(plan.parts[i].name, taken.parts[i].name);
      EXPECT_EQ(plan.parts[i].bytes, taken.parts[i].bytes) << plan.parts[i].name;
    }
    EXPECT_EQ(plan.fixed_bytes, taken.fixed_bytes);
    if (!own) {
      plain = total(plan);
    } else {
      EXPECT_GT(total(plan), plain);
      scene.randomize_parameter(Parameter::kLinkMass, 0.5, 1.5);
      EXPECT_EQ(scene.memory().bytes_per_environment(), total(taken)) << "what was taken at the build is used";
      EXPECT_NE(message_of([&] { scene.plan(); }), "");
    }
  }
  o.parameters = {static_cast<Parameter>(6)};
  EXPECT_NE(message_of([&] { Scene{o}; }).find("no parameter 6"), std::string::npos);
}

TEST_P(SceneApi, ParametersThatDoNotFitLaterAreRefusedAndChangeNothing) {
  constexpr int kEnvs = 4000;
  const auto file = SceneApi::file("state");
  const auto built = [&](Scene& scene, const char* model) {
    scene.add_entity(Mjcf{kModels + model});
    scene.build(kEnvs);
    scene.step();
  };
  Scene scene(options()), twin(options());
  built(scene, "walker.xml"), built(twin, "walker.xml");
  twin.randomize_parameter(Parameter::kGeomFriction, 0.5, 0.6);
  twin.save_state(file);
  const double before = scene.memory().bytes_per_environment();
  {
    const HostMemory limit(2e5);
    const auto refused = [&](const char* what, const std::function<void()>& take) {
      const std::string message = message_of(take);
      EXPECT_NE(message.find(format("{} of {} environments", what, kEnvs)), std::string::npos) << message;
      EXPECT_NE(message.find("this process can get"), std::string::npos) << message;
      EXPECT_EQ(scene.memory().bytes_per_environment(), before) << what;
    };
    for (int repeated = 0; repeated < 2; ++repeated) {
      refused("geom_friction", [&] { scene.randomize_parameter(Parameter::kGeomFriction, 0.5, 0.6); });
    }
    refused("link_mass", [&] { scene.set_links_mass(std::vector<float>{2}, {1}, {7}); });
    refused("the state's parameters", [&] { scene.load_state(file); });
  }
  // As one that was never asked.
  Scene other(options());
  built(other, "walker.xml");
  scene.step(), other.step();
  EXPECT_EQ(scene.get_qpos(), other.get_qpos());
  // And with more memory it can be had.
  scene.load_state(file);
  EXPECT_EQ(scene.get_parameter(Parameter::kGeomFriction), twin.get_parameter(Parameter::kGeomFriction));
  std::filesystem::remove(file);
  Scene driven(options());
  built(driven, "arm_plain.xml");
  const double plain = driven.memory().bytes_per_environment();
  {
    const HostMemory limit(5e4);
    const auto refused = [&](const char* what, const std::function<void()>& take) {
      const std::string message = message_of(take);
      EXPECT_NE(message.find(what), std::string::npos) << message;
      EXPECT_EQ(driven.memory().bytes_per_environment(), plain) << what;
    };
    refused("actuator_gain of 4000", [&] { driven.set_dofs_kp(std::vector<float>{50}, {0}); });
    refused("actuator_gain of 4000", [&] { driven.control_dofs_force(std::vector<float>{0}, {0}); });
    refused("dofs that the scene drives of 4000", [&] { driven.set_dofs_kp(std::vector<float>{50}, {1}); });
  }
  driven.control_dofs_force(std::vector<float>{0}, {0});
  driven.set_dofs_kp(std::vector<float>{50}, {1});
  driven.control_dofs_position(std::vector<float>{0.2f}, {1});
  driven.step();
}

INSTANTIATE_TEST_SUITE_P(Engines, SceneApi, ::testing::Values(EngineKind::kBatched, EngineKind::kMujoco),
                         [](const auto& each) { return to_string(each.param); });

TEST(SceneModelFile, KeepsTheEntitiesOfItsScene) {
  const auto path = std::filesystem::temp_directory_path() / format("cohort_api_{}.cohort", getpid());
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Plane{.pose = {{0, 0, -3}}}, "floor");
  scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 1, 0}}}, "arm");
  scene.add_camera({.name = "wall", .pos = {1, 2, 3}, .fov = 60});
  scene.build(2);
  scene.save_model(path);
  Scene loaded(o);
  loaded.add_camera({.name = "hand"});
  loaded.build_from_file(path, 2);
  ASSERT_EQ(loaded.cameras().size(), 2u);
  EXPECT_EQ(loaded.cameras()[0].name, "hand");
  EXPECT_EQ(loaded.cameras()[1].name, "wall");
  EXPECT_EQ(loaded.cameras()[1].pos, (std::array<double, 3>{1, 2, 3}));
  EXPECT_EQ(loaded.cameras()[1].fov, 60);
  Scene clash(o);
  clash.add_camera({.name = "wall"});
  EXPECT_NE(message_of([&] { clash.build_from_file(path, 2); }).find("`wall`"), std::string::npos);
  EXPECT_FALSE(clash.built());
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
