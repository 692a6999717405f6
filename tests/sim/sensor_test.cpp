// Every kind of sensor against MuJoCo C on random states, outputs poisoned first.
#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "block.h"
#include "core/format.h"

namespace cohort::sim {
namespace {

using test::take;

/// What depends on positions and velocities only.
constexpr double kMotionTolerance = 2e-5;
/// Accelerations without constraints.
constexpr double kSensedAccelerationTolerance = 5e-4;
/// What depends on the constraint solver's answer, where both solvers go on until they have converged.
constexpr double kSensedForceTolerance = 5e-4;
/// Forces between links, N: inertia's and the contacts', up to a thousand, of which next to nothing is left.
constexpr double kInteractionTolerance = 1e-2;

const std::string kWorld = R"(
  <geom name="floor" type="plane" size="5 5 1"/>
  <site name="fixed" pos="0.3 0.1 0.2" euler="10 40 0"/>
  <camera name="lens" pos="0.1 -2.5 0.4" euler="85 5 0" resolution="640 480" sensorsize="0.0036 0.0024"
    focal="0.003 0.0031"/>
  <body name="base" pos="0 0 0.3"><freejoint name="free"/><geom name="trunk" type="capsule" size="0.08 0.2" euler="80 0 10" mass="2"/>
    <site name="trunk_site" pos="0.1 0.02 0.05" euler="20 30 40"/>
    <site name="trunk_touch" type="box" size="0.5 0.5 0.5" pos="0 0 -0.1"/>
    <camera name="eye" pos="0.1 0 0.8" euler="30 20 0" fovy="70" resolution="64 48"/>
    <body name="mount" pos="0.2 0 0" euler="0 20 0"><geom name="flange" size="0.05 0.05 0.02" type="box" mass="0.5" contype="0" conaffinity="0"/>
      <site name="ft" pos="0.01 0.02 0.03" euler="0 30 10"/>
      <body name="arm" pos="0.1 0 0"><joint name="h" axis="0 1 0.2" damping="0.2" range="-1 1"/><geom name="fore" type="capsule" size="0.05 0.15" euler="0 70 0"/>
        <site name="arm_site" pos="0.05 0 0.1" euler="0 90 0"/>
        <body name="hand" pos="0.2 0 0"><joint name="b" type="ball" range="0 25"/><geom name="palm" type="sphere" size="0.08"/>
          <site name="hand_touch" type="sphere" size="0.1"/><site name="hand_ray" euler="0 150 20"/></body></body>
    </body>
    <body name="leg" pos="-0.2 0 -0.1"><joint name="s" type="slide" axis="0 0 1" range="-0.01 0.02" margin="0.015"/><geom name="foot" type="sphere" size="0.07" pos="0 0 -0.1"/>
      <site name="leg_touch" type="capsule" size="0.1 0.1"/></body>
  </body>
  <body name="ball" pos="0.15 0.1 0.55"><freejoint/><geom name="ball" type="sphere" size="0.1"/><site name="ball_site"/></body>
)";

std::string sensed_model(const std::string& sensors, const std::string& option = "") {
  return "<mujoco><option magnetic='0.1 -0.5 0.3' " + option + "/><worldbody>" + kWorld +
         "</worldbody><tendon><fixed name='t' range='-0.1 0.2'><joint joint='h' coef='2'/><joint joint='s' "
         "coef='-1'/></fixed>"
         "<spatial name='p' range='0.1 0.5'><site site='fixed'/><site site='arm_site'/><geom geom='palm'/><site "
         "site='ball_site'/></spatial>"
         "</tendon>"
         "<actuator><position name='servo' joint='h' kp='10' kv='1'/><motor name='pull' tendon='t' gear='2'/>"
         "<motor name='string' tendon='p' gear='-3'/><position tendon='p' kp='2'/>"
         "<motor name='spin' joint='b' gear='1 2 3'/></actuator>"
         "<equality><connect body1='ball' body2='leg' anchor='-0.2 -0.1 -0.2' solref='0.1 1'/></equality>"
         "<sensor>" +
         sensors + "</sensor></mujoco>";
}

struct Case {
  const char* name;
  std::string sensors;
  double tolerance;
};

std::vector<Case> cases() {
  std::vector<Case> list{
      {"values of joints, tendons and actuators, clock",
       "<clock/><jointpos joint='h'/><jointpos joint='s' cutoff='0.05'/><jointvel joint='h'/><ballquat joint='b'/>"
       "<ballangvel joint='b'/><tendonpos tendon='t'/><tendonvel tendon='t' cutoff='0.3'/>"
       "<tendonpos tendon='p'/><tendonvel tendon='p'/><tendonactuatorfrc tendon='p'/><actuatorpos actuator='string'/>"
       "<actuatorvel actuator='string'/>"
       "<actuatorpos actuator='servo'/><actuatorpos actuator='spin'/><actuatorvel actuator='servo'/>"
       "<actuatorfrc actuator='servo'/><actuatorfrc actuator='spin' cutoff='0.5'/><jointactuatorfrc joint='h'/>"
       "<tendonactuatorfrc tendon='t'/>",
       kMotionTolerance},
      {"inertial unit",
       "<gyro site='arm_site'/><velocimeter site='arm_site'/><magnetometer site='arm_site'/>"
       "<gyro site='fixed'/><velocimeter site='fixed'/><gyro site='trunk_site' cutoff='0.4'/>",
       kMotionTolerance},
      {"subtrees",
       "<subtreecom body='world'/><subtreecom body='mount'/><subtreelinvel body='base'/>"
       "<subtreelinvel body='mount'/><subtreeangmom body='base'/><subtreeangmom body='mount'/>",
       kMotionTolerance},
      {"accelerations",
       "<accelerometer site='arm_site'/><accelerometer site='trunk_site'/><accelerometer site='fixed'/>"
       "<framelinacc objtype='site' objname='hand_touch'/><frameangacc objtype='body' objname='hand'/>"
       "<framelinacc objtype='xbody' objname='world'/>",
       kSensedForceTolerance},
      {"interaction forces",
       "<force site='ft'/><torque site='ft'/><force site='hand_touch'/><torque site='hand_touch'/>"
       "<force site='ball_site'/><torque site='ball_site'/><force site='trunk_site'/>"
       "<torque site='trunk_site'/><force site='leg_touch' cutoff='3'/>",
       kInteractionTolerance},
      {"touch", "<touch site='trunk_touch'/><touch site='hand_touch'/><touch site='leg_touch'/>",
       kSensedForceTolerance},
      {"rangefinder",
       "<rangefinder site='hand_ray'/><rangefinder site='fixed'/><rangefinder site='arm_site'/>"
       "<rangefinder site='trunk_site' cutoff='0.3'/>"
       "<rangefinder site='hand_ray' data='dist dir origin point depth'/>"
       "<rangefinder site='leg_touch' data='point depth'/><rangefinder site='arm_site' data='dir origin' "
       "cutoff='0.2'/>",
       1e-4},
      {"contact sensors",
       "<contact geom1='foot' num='1' reduce='netforce' data='found force torque dist pos normal tangent'/>"
       "<contact subtree1='base' num='1' reduce='netforce' data='found force torque pos'/>"
       "<contact body1='base' geom2='floor' num='2' reduce='mindist' data='found dist pos normal tangent'/>"
       "<contact geom1='floor' num='3' reduce='maxforce' data='found force'/>"
       "<contact site='trunk_touch' subtree2='base' num='2' reduce='mindist' data='found dist'/>"
       "<contact geom1='ball' num='1' reduce='mindist' data='found dist normal'/>"
       "<contact geom1='foot' num='2' reduce='mindist' data='found pos linvel angvel'/>"
       "<contact geom1='floor' num='3' reduce='mindist' data='linvel angvel'/>"
       "<contact body1='ball' subtree2='base' num='2' reduce='mindist' data='normal tangent linvel angvel'/>",
       kSensedForceTolerance},
  };
  list.push_back({"limits",
                  "<jointlimitpos joint='h'/><jointlimitpos joint='b'/><jointlimitpos joint='s'/>"
                  "<jointlimitvel joint='h'/><jointlimitvel joint='b'/><jointlimitvel joint='s' cutoff='0.1'/>"
                  "<jointlimitfrc joint='h'/><jointlimitfrc joint='b'/><jointlimitfrc joint='s' cutoff='40'/>"
                  "<tendonlimitpos tendon='t'/><tendonlimitvel tendon='t'/><tendonlimitfrc tendon='t'/>"
                  "<tendonlimitpos tendon='p'/><tendonlimitfrc tendon='p'/>",
                  kSensedForceTolerance});
  list.push_back({"where sites are on images",
                  "<camprojection site='arm_site' camera='eye'/><camprojection site='fixed' camera='lens'/>"
                  "<camprojection site='ball_site' camera='lens'/>",
                  1e-3});
  std::string frames;
  for (const char* object :
       {"objtype='site' objname='hand_ray'", "objtype='body' objname='mount'", "objtype='xbody' objname='arm'",
        "objtype='geom' objname='trunk'", "objtype='camera' objname='eye'", "objtype='site' objname='fixed'"}) {
    for (const char* reference : {"", "reftype='site' refname='trunk_site'", "reftype='body' refname='ball'"}) {
      for (const char* kind :
           {"framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel"}) {
        frames += std::string("<") + kind + " " + object + " " + reference + "/>";
      }
    }
  }
  list.push_back({"frames", frames, kMotionTolerance});
  return list;
}

class Sensor : public ::testing::TestWithParam<std::tuple<std::size_t, const char*>> {};

TEST_P(Sensor, EqualsMujocoOnRandomStates) {
  const auto [index, cone] = GetParam();
  const Case c = cases()[index];
  SCOPED_TRACE(c.name);
  test::Pair p(test::compile_xml(sensed_model(c.sensors, cone)));
  p.mj->opt.iterations = p.view.option.iterations = 1000;
  p.mj->opt.tolerance = 1e-14;
  p.view.option.tolerance = 1e-14f;
  test::Block block(p.view);
  double most = 0;
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    p.randomize(sample, 0.05, 0.5);
    for (int k = 0; k < 4; ++k) p.data->qpos[3 + k] = p.mj->qpos0[3 + k];
    mj_forward(p.mj.get(), p.data.get());
    block.load(p.view, *p.data);
    BlockSpace<ScalarLane>& b = block.space;
    test::evaluate(p.view, b);
    test::sensors(p.view, b, static_cast<float>(p.data->time));
    for (int i = 0; i < p.mj->nsensor; ++i) {
      const int at = p.mj->sensor_adr[i], size = p.mj->sensor_dim[i];
      std::vector<double> ours = take(b.w.sensordata + at, size), theirs = take(p.data->sensordata + at, size);
      // A quaternion and its opposite are one orientation.
      if (size == 4 && mju_dot(ours.data(), theirs.data(), 4) < 0) {
        for (double& x : ours) x = -x;
      }
      for (double x : theirs) most = std::max(most, std::abs(x));
      test::expect_near(ours, theirs, c.tolerance,
                        "sample " + std::to_string(sample) + " sensor " + std::to_string(i) + " of type " +
                            p.ours.info.sensors[static_cast<std::size_t>(i)].type);
    }
  }
  EXPECT_GT(most, 0.05) << "the sensors see nothing";
}

INSTANTIATE_TEST_SUITE_P(Kinds, Sensor,
                         ::testing::Combine(::testing::Range(std::size_t{0}, cases().size()),
                                            ::testing::Values("cone='pyramidal'", "cone='elliptic'")));

TEST(Rangefinder, SeesMeshesAndHeightFieldsAsMujocoDoes) {
  test::Pair p(test::compile_xml(
      "<mujoco><asset><mesh name='m' vertex='0 0 0 0.5 0 0 0 0.4 0 0 0 0.6 0.4 0.4 0.4'/>"
      "<mesh name='n' vertex='0 0 0 1 0 0 1 1 0 0 1 0 0.5 0.5 -0.3 0 0 0.2 1 0 0.2' "
      "face='0 2 1 0 3 2 0 1 4 1 2 4 2 3 4 3 0 4 0 5 1 1 5 6'/>"
      "<hfield name='h' nrow='5' ncol='4' size='2 1.5 0.7 0.2' elevation='0 1 2 1  3 1 0 2  1 1 4 0  2 0 1 3  0 2 1 "
      "1'/>"
      "</asset><worldbody><geom type='hfield' hfield='h' pos='0 0 -1' euler='3 5 10'/><geom type='mesh' mesh='m' "
      "pos='0.4 0.3 0.2'/><geom type='mesh' mesh='n' pos='-1 -0.4 -0.1' euler='20 0 40'/><geom size='0.2' pos='-0.5 "
      "0.8 "
      "0'/><body pos='0 0 0.6'><freejoint/><geom size='0.05'/><site name='s'/><site name='t' euler='180 0 0'/><site "
      "name='u' pos='0.1 0 0' euler='100 30 0'/><site name='v' euler='-90 10 0'/></body></worldbody><sensor>"
      "<rangefinder site='s'/><rangefinder site='t'/><rangefinder site='u'/><rangefinder "
      "site='v'/></sensor></mujoco>"));
  test::Block block(p.view);
  int hits = 0, misses = 0;
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    p.randomize(sample, 0.5, 0.5);
    mj_forward(p.mj.get(), p.data.get());
    block.load(p.view, *p.data);
    test::evaluate(p.view, block.space);
    test::sensors(p.view, block.space, 0);
    for (int i = 0; i < 4; ++i) {
      const double ours = block.space.w.sensordata[i], theirs = p.data->sensordata[i];
      ++(theirs >= 0 ? hits : misses);
      EXPECT_NEAR(ours, theirs, kMotionTolerance * (1 + std::abs(theirs))) << "sample " << sample << " ray " << i;
    }
  }
  EXPECT_GE(hits, 300);
  EXPECT_GE(misses, 100);
}

/// Sensors of the distance of shape `a` of the world from shape `b` of a free body, and of all shapes of both bodies.
std::string two_shapes(const std::string& a, const std::string& b) {
  std::string sensors;
  for (const char* type : {"distance", "normal", "fromto"}) {
    for (const char* of : {"geom1='b' geom2='a' cutoff='2'", "geom1='a' geom2='b' cutoff='2'", "geom1='a' geom2='b'",
                           "body1='moves' body2='world' cutoff='0.4'"}) {
      sensors += format("<{} {}/>", type, of);
    }
  }
  return format(
      "<mujoco><asset><mesh name='m' vertex='0 0 0 0.5 0 0 0 0.4 0 0 0 0.6 0.4 0.4 0.4'/></asset><default><geom "
      "contype='0' conaffinity='0'/></default><worldbody><geom name='a' {}/><geom size='0.1' pos='0.6 0.6 0.4'/>"
      "<body name='moves' pos='0.1 0.2 0.45'><freejoint/><geom name='b' {}/><geom type='capsule' size='0.05 0.1' "
      "pos='0.3 0 0.1'/></body></worldbody><sensor>{}</sensor></mujoco>",
      a, b, sensors);
}

TEST(DistanceSensor, TellsWhatMujocoTellsOfGeomsThatMayNotTouch) {
  const std::string solids[] = {"type='sphere' size='0.2'",         "type='capsule' size='0.1 0.2'",
                                "type='ellipsoid' size='.1 .2 .3'", "type='cylinder' size='0.15 0.2'",
                                "type='box' size='0.2 0.1 0.25'",   "type='mesh' mesh='m'",
                                "type='plane' size='1 1 1'"};
  int apart = 0, inside = 0, beyond = 0;
  for (std::size_t i = 0; i < std::size(solids); ++i) {
    for (std::size_t j = 0; j + 1 < std::size(solids); ++j) {
      SCOPED_TRACE(solids[i] + " and " + solids[j]);
      test::Pair p(test::compile_xml(two_shapes(solids[i], solids[j])));
      test::Block block(p.view);
      for (std::uint64_t sample = 0; sample < 25; ++sample) {
        p.randomize(sample, 0.25, 0.5);
        mj_forward(p.mj.get(), p.data.get());
        block.load(p.view, *p.data);
        test::evaluate(p.view, block.space);
        test::sensors(p.view, block.space, 0);
        const auto ours = [&](int sensor) { return take(block.space.w.sensordata + p.mj->sensor_adr[sensor], 6); };
        const mjtNum* const theirs = p.data->sensordata;
        for (int k = 0; k < 4; ++k) {
          const double distance = ours(k)[0];
          const std::string where = format("sample {} sensor {}", sample, k);
          // Of the ways out of each other ours is as short, or shorter.
          if (theirs[k] < -1e-3) {
            // Of two bodies MuJoCo leaves out pairs of geoms that are deeper in each other than one before them.
            if (k != 3) ASSERT_GE(distance, theirs[k] - 5e-5) << where;
            ASSERT_LE(distance, 0.75 * theirs[k]) << where;
          } else {
            ASSERT_NEAR(distance, theirs[k], 5e-5) << where;
          }
          const std::vector<double> normal = ours(4 + k), ends = ours(8 + k);
          ++(distance < 0 ? inside : theirs[4 + 3 * k] == 0 && theirs[5 + 3 * k] == 0 ? beyond : apart);
          // The two ends are as far from each other as is told, along the direction that is told.
          for (std::size_t c = 0; c < 3; ++c) {
            const bool found = normal[0] != 0 || normal[1] != 0 || normal[2] != 0;
            ASSERT_NEAR(ends[3 + c] - ends[c], found ? normal[c] * std::abs(distance) : 0, 1e-5) << where;
          }
          // Inside each other, and side by side, another way or place may be as good.
          if (distance < 0.02) continue;
          for (std::size_t c = 0; c < 3; ++c)
            ASSERT_NEAR(normal[c], theirs[4 + 3 * static_cast<std::size_t>(k) + c], 5e-3) << where;
        }
      }
    }
  }
  EXPECT_GT(apart, 1000);
  EXPECT_GT(inside, 300);
  EXPECT_GT(beyond, 300);
}

TEST(Sensors, SeeContactsOfGeomsThatCannotMoveAgainstEachOtherAsMujocoDoes) {
  const char* const shapes = R"(
    <geom name="wall" size="0.2 0.2 0.2" type="box"/><site name="wall_site" size="0.5"/>
    <body name="post" pos="0.3 0 0"><geom name="post" size="0.15"/></body>
    <body name="robot" pos="0 0 %s"><joint type="slide" axis="0 0 1"/><joint axis="1 0 0"/>
      <geom name="trunk" size="0.1"/><site name="trunk_site" size="0.4"/>
      <body name="head" pos="0 0.15 0"><geom name="head" size="0.1"/><geom name="hat" size="0.05" pos="0 0 0.2"/></body>
    </body>)";
  const char* const rest = R"(
    <contact><pair geom1="wall" geom2="post"/><pair geom1="trunk" geom2="head" condim="1"/>
      <pair geom1="head" geom2="hat" margin="0.1"/><pair geom1="hat" geom2="trunk"/></contact>
    <sensor><contact geom1="wall" num="3" data="found force torque dist pos normal tangent"/>
      <contact geom1="wall" num="1" reduce="netforce" data="found force torque pos"/>
      <contact body1="robot" num="4" reduce="mindist" data="found force dist pos normal"/>
      <contact subtree1="robot" num="4" reduce="maxforce" data="found force"/>
      <contact geom1="head" geom2="hat" num="2" data="found force dist"/>
      <touch site="wall_site"/><touch site="trunk_site"/></sensor>)";
  for (const char* cone : {"pyramidal", "elliptic"}) {
    for (const char* height : {"1.5", "0.25"}) {  // in the air; on the wall
      for (const int row_space : {0, 24}) {
        SCOPED_TRACE(format("{} {} {}", cone, height, row_space));
        char bodies[2000];
        std::snprintf(bodies, sizeof bodies, shapes, height);
        test::Pair p(test::compile_xml(
                         format("<mujoco><option cone='{}'/><worldbody>{}</worldbody>{}</mujoco>", cone, bodies, rest)),
                     row_space);
        test::Block block(p.view);
        for (std::uint64_t sample = 0; sample < 10; ++sample) {
          p.randomize(sample, 0.02, 0.5);
          mj_forward(p.mj.get(), p.data.get());
          block.load(p.view, *p.data);
          test::evaluate(p.view, block.space);
          test::sensors(p.view, block.space, 0);
          ASSERT_GE(p.data->ncon, 3);
          EXPECT_EQ(static_cast<int>(block.space.c.contacts), p.data->ncon);
          test::expect_near(take(block.space.w.qacc, p.mj->nv), take(p.data->qacc, p.mj->nv), kSensedForceTolerance,
                            "qacc");
          for (int i = 0; i < p.mj->nsensor; ++i) {
            const int at = p.mj->sensor_adr[i], size = p.mj->sensor_dim[i];
            test::expect_near(take(block.space.w.sensordata + at, size), take(p.data->sensordata + at, size),
                              kSensedForceTolerance, format("sample {} sensor {}", sample, i));
          }
        }
      }
    }
  }
}

/// Largest difference of a sensor from MuJoCo's over random states without contacts, relative to 1 and to MuJoCo's.
double worst_force_difference(const std::string& world, const std::string& rest) {
  test::Pair p(test::compile_xml("<mujoco><option><flag contact='disable'/></option><worldbody>" + world +
                                 "</worldbody>" + rest + "</mujoco>"));
  test::Block block(p.view);
  double worst = 0, most = 0;
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    p.randomize(sample, 0.3, 0.5);
    mj_forward(p.mj.get(), p.data.get());
    block.load(p.view, *p.data);
    test::evaluate(p.view, block.space);
    test::sensors(p.view, block.space, 0);
    for (int i = 0; i < p.mj->nsensordata; ++i) {
      const double ours = block.space.w.sensordata[i], theirs = p.data->sensordata[i];
      worst = std::max(worst, std::abs(ours - theirs) / std::max(1.0, std::abs(theirs)));
      most = std::max(most, std::abs(theirs));
    }
  }
  EXPECT_GT(most, 0.3) << "the sensors feel nothing";
  return worst;
}

TEST(ForceSensor, OfALinkThatCannotMoveFeelsWhatPullsAtIt) {
  const char* sensors = "<sensor><force site='s'/><torque site='s'/></sensor>";
  EXPECT_LT(
      worst_force_difference("<body pos='0.1 0 0.2'><site name='s' pos='0 0.1 0'/><geom size='0.1' pos='0.1 0 0'/>"
                             "<body pos='0 0 0.3' euler='10 20 30'><geom size='0.05' pos='0 0.1 0'/></body></body>"
                             "<body pos='1 0 0'><joint/><geom size='0.1'/></body>",
                             sensors),
      kSensedForceTolerance);
}

TEST(ForceSensor, FeelsBothEndsOfATendonsLimitWhoseMarginIsWiderThanItsRange) {
  EXPECT_LT(
      worst_force_difference("<site name='w' pos='0 0 0.3'/><body><joint axis='0 1 0'/><geom size='0.1' pos='0.2 0 0'/>"
                             "<site name='s' pos='0.3 0.1 0'/></body>",
                             "<tendon><spatial range='0.4 0.45' margin='0.1'><site site='w'/><site site='s'/></spatial>"
                             "</tendon><sensor><force site='s'/><torque site='s'/></sensor>"),
      kSensedForceTolerance);
}

/// Such an equality has no rows in MuJoCo.
TEST(ForceSensor, FeelsNothingOfAnEqualityThatMovesNothing) {
  const char* sensors = "<sensor><force site='s'/><torque site='s'/></sensor>";
  const std::string arm = "<body pos='0 0 0.1'><joint axis='0 1 0'/><geom size='0.05' pos='0.1 0 0'/></body>";
  for (const char* base : {"mocap='true'", ""}) {
    for (const char* equality : {"<connect site1='here' site2='there'/>", "<weld site1='here' site2='there'/>"}) {
      EXPECT_LT(worst_force_difference(format("<body {} pos='0.1 0.2 0.3'><site name='here' pos='0.1 0 0'/>{}<site "
                                              "name='s'/></body><site name='there' pos='0.2 0.2 0.3'/>",
                                              base, arm),
                                       format("<equality>{}</equality>{}", equality, sensors)),
                kInteractionTolerance)
          << base << equality;
    }
  }
}

/// Two ends that are apart: the opposite forces at them make a torque, until the connection has closed.
TEST(ForceSensor, FeelsTheTorqueOfAnOpenLoopBelowIt) {
  for (const char* loop :
       {"<connect site1='upper' site2='lower'/>", "<connect body1='b' body2='a' anchor='0.1 0 0.1'/>"}) {
    EXPECT_LT(worst_force_difference(
                  "<body name='base'><site name='s' pos='0 0.1 0'/><geom size='0.1'/>"
                  "<body name='a' pos='0.2 0 0'><joint axis='0 1 0'/><geom type='capsule' size='0.05 0.1'/>"
                  "<site name='upper' pos='0 0.1 0.1'/>"
                  "<body name='b' pos='0 0 0.3'><joint axis='1 0 0'/><geom type='capsule' size='0.05 0.1'/>"
                  "<site name='lower' pos='0.1 0 0'/></body></body></body>",
                  std::string("<equality>") + loop + "</equality><sensor><force site='s'/><torque site='s'/></sensor>"),
              kInteractionTolerance)
        << loop;
  }
}

TEST(SensorCoverage, AnUnsupportedSensorIsRefusedByItsName) {
  const std::vector<std::uint8_t> mjb = test::compile_xml(
      "<mujoco><worldbody><body><joint name='j' limited='true' range='-1 1'/><geom size='0.1'/></body></worldbody>"
      "<sensor><e_kinetic name='energy'/></sensor></mujoco>");
  const std::vector<Unsupported> missing = find_unsupported(mjb);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].name, "energy");
}

}  // namespace
}  // namespace cohort::sim
