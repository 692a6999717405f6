// What a scene tells of its motion, on both engines: velocities of links, contacts and their forces.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/message_of.h"
#include "sim/models.h"
#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

/// Single precision of the poses that velocities are worked out from, over arms of a metre.
constexpr float kVelocityTolerance = 2e-5f;

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
  EXPECT_EQ(tree.get_links_ang({1, 0}, {1}), scene.get_links_ang({tree.links()[1], tree.links()[0]}, {1}));
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
  const std::vector<Contact> all = scene.get_contacts(), backwards = ball.get_contacts({1, 0});
  ASSERT_EQ(all.size(), 10u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].env, i < 5 ? 0 : 1);
  ASSERT_EQ(backwards.size(), 2u);
  EXPECT_EQ(backwards[0].env, 1);
  EXPECT_EQ(backwards[1].env, 0);
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
  EXPECT_EQ(scene.host_view(Field::kContactCount).span<std::int32_t>()[1], 2);
  // Nothing but gravity moves the body.
  const std::vector<float> velocity = scene.get_qvel();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(velocity[i] - before[i], i == 2 ? -9.81 * 0.002 : 0, 1e-6) << i;
}

/// Motors and sensors that come late, by every interpolation and with too few samples for some delays; and sensors that
/// are read once in a while, on multiples of the timestep and between them, with and without a delay and a phase.
std::string delayed_model(const std::string& integrator) {
  std::string bodies, actuators, sensors;
  int k = 0;
  for (const char* interpolation : {"zoh", "linear", "cubic"}) {
    for (const char* samples : {"2", "4", "7"}) {
      for (const char* delay : {"0.001", "0.002", "0.003", "0.0055", "0.006", "0.011"}) {
        const std::string late = format(" delay='{}' nsample='{}' interp='{}'", delay, samples, interpolation);
        bodies += format(
            "<body name='b{0}' pos='{0} 0 0'><joint name='j{0}' type='slide' axis='1 0 0' damping='0.3'/><geom "
            "size='0.1' "
            "mass='1'/></body>",
            k);
        actuators += format("<motor name='m{0}' joint='j{0}' gear='50' ctrlrange='-0.5 0.5'{1}/>", k, late);
        sensors += format(
            "<jointvel name='v{0}' joint='j{0}' cutoff='0.05'{1}/><actuatorfrc name='f{0}' "
            "actuator='m{0}'/>",
            k, late);
        ++k;
      }
    }
    for (const char* interval : {"0.004", "0.005", "0.0075 -0.0031", "0.004 -0.001"}) {
      for (const char* samples : {"1", "2", "6"}) {
        for (const char* delay : {"0", "0.003", "0.004", "0.0115"}) {
          sensors += format(
              "<framepos name='i{}' objtype='xbody' objname='b3' delay='{}' nsample='{}' interp='{}' interval='{}'/>",
              k, delay, samples, interpolation, interval);
          ++k;
        }
      }
    }
  }
  return "<mujoco><option timestep='0.002' integrator='" + integrator +
         "' gravity='0 0 0'><flag contact='disable'/></option><worldbody>" + bodies + "</worldbody><actuator>" +
         actuators + "<motor joint='j0' nsample='3'/></actuator><sensor>" + sensors +
         "<clock name='late' delay='0.004' nsample='9'/></sensor></mujoco>";
}

/// Of an engine beside MuJoCo: going on, from a saved state, and after a reset.
void expect_delays_as_mujoco(const SceneOptions& options, const std::string& integrator,
                             const std::filesystem::path& saved) {
  SceneOptions theirs_options;
  theirs_options.engine = EngineKind::kMujoco;
  Scene ours(options), theirs(theirs_options);
  for (Scene* scene : {&ours, &theirs}) {
    scene->add_entity(Mjcf{.file = "", .xml = delayed_model(integrator)});
    scene->build(3);
  }
  const auto nu = static_cast<std::size_t>(ours.info().nu);
  const auto advance = [&](Scene& scene, int step) {
    std::vector<float> ctrl(3 * nu);
    for (std::size_t i = 0; i < ctrl.size(); ++i) {
      ctrl[i] = std::sin(static_cast<float>(i) * 1.7f + static_cast<float>(step * step) * 0.9f);
    }
    scene.set_ctrl(ctrl);
    scene.step();
  };
  const auto seen = [](Scene& scene) {
    std::vector<float> all = scene.get_qvel();
    for (const SensorInfo& sensor : scene.info().sensors) {
      const std::vector<float> values = scene.get_sensor(sensor.name);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const auto expect_same = [&](const char* when, int step) {
    const std::vector<float> a = seen(ours), b = seen(theirs);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5) << when << ", step " << step << ", " << i;
  };
  for (int step = 0; step < 12; ++step) {
    advance(ours, step), advance(theirs, step);
    expect_same("from the start", step);
  }
  // What is on its way belongs to the state.
  ours.save_state(saved);
  for (int step = 12; step < 16; ++step) advance(ours, step);
  const std::vector<float> went_on = seen(ours);
  ours.load_state(saved);
  for (int step = 12; step < 16; ++step) advance(ours, step);
  EXPECT_EQ(seen(ours), went_on);
  std::filesystem::remove(saved);
  for (int step = 12; step < 16; ++step) advance(theirs, step);
  // An environment that is reset has nothing on its way.
  for (Scene* scene : {&ours, &theirs}) scene->reset(std::vector<std::int32_t>{1});
  for (int step = 16; step < 24; ++step) {
    advance(ours, step), advance(theirs, step);
    expect_same("after a reset", step);
  }
}

TEST_P(SceneApi, DelaysAndIntervalsAreMujocosAndPartOfTheState) {
  for (const char* integrator : {"Euler", "RK4"}) {
    SCOPED_TRACE(integrator);
    expect_delays_as_mujoco(options(), integrator, file("delays"));
  }
}

TEST_P(SceneApi, ADelayOfWholeStepsAndAHalfActsInTheMiddleOfAStepAsMujocos) {
  // 0.035 / 0.01 is above 3.5 in floating point, 0.025 / 0.01 is not.
  for (const auto& [timestep, delay] : {std::pair{"0.01", "0.035"}, std::pair{"0.005", "0.0175"},
                                        std::pair{"0.01", "0.025"}, std::pair{"0.002", "0.003"}}) {
    const std::string xml = format(
        "<mujoco><option timestep='{}' integrator='RK4' gravity='0 0 0'/><worldbody><body><joint name='j' type='slide' "
        "axis='1 0 0'/><geom size='0.1' mass='1'/></body></worldbody><actuator><motor joint='j' delay='{}' "
        "nsample='8'/>"
        "</actuator></mujoco>",
        timestep, delay);
    SceneOptions theirs_options;
    theirs_options.engine = EngineKind::kMujoco;
    Scene ours(options()), theirs(theirs_options);
    for (Scene* scene : {&ours, &theirs}) {
      scene->add_entity(Mjcf{.file = "", .xml = xml});
      scene->build(1);
    }
    for (int step = 0; step < 20; ++step) {
      const std::vector<float> ctrl{std::sin(static_cast<float>(step * step))};
      for (Scene* scene : {&ours, &theirs}) {
        scene->set_ctrl(ctrl);
        scene->step();
      }
      ASSERT_NEAR(ours.get_qvel()[0], theirs.get_qvel()[0], 1e-6) << timestep << " " << delay << " step " << step;
    }
  }
}

}  // namespace
}  // namespace cohort::sim
