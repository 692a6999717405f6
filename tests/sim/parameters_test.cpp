// Parameters of single environments in the batched engine: bits, and motion as MuJoCo's.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/format.h"
#include "core/message_of.h"
#include "sim/simulate.h"

namespace cohort::sim {
namespace {

TEST(Parameters, TheModelsValuesGiveTheModelsBits) {
  const std::vector<float> truth = simulate({.n = 20, .steps = 60});
  Job run{.n = 20, .steps = 60};
  run.before_step = [](Scene& scene, int s) {
    if (s > 0) return;
    for (int k = 0; k < kParameterCount; ++k) {
      const auto p = static_cast<Parameter>(k);
      scene.set_parameter(p, scene.get_parameter(p));
    }
  };
  EXPECT_TRUE(same_bits(simulate(run), truth));
}

/// Everything randomized, as a learner would.
void randomize(Scene& scene, int s) {
  if (s > 0) return;
  scene.randomize_parameter(Parameter::kLinkMass, 0.7, 1.4);
  scene.randomize_parameter(Parameter::kGeomFriction, 0.5, 1.5);
  scene.randomize_parameter(Parameter::kDofArmature, 0.5, 2);
  scene.randomize_parameter(Parameter::kDofDamping, 0.5, 2);
  scene.randomize_parameter(Parameter::kActuatorGain, 0.8, 1.2);
}

TEST(Parameters, RandomizedOnesAreKeyedByTheGlobalEnvironmentAndKeepTheBits) {
  Job whole{.n = 40, .steps = 60};
  whole.before_step = randomize;
  const std::vector<float> truth = simulate(whole);
  EXPECT_FALSE(same_bits(truth, simulate({.n = 40, .steps = 60})));
  const auto one = static_cast<std::ptrdiff_t>(truth.size() / 40);
  Job part{.n = 17, .threads = 2, .steps = 60, .first = 23, .lanes = LaneWidth::kScalar};
  part.before_step = randomize;
  EXPECT_TRUE(same_bits(simulate(part), std::vector<float>(truth.begin() + 23 * one, truth.end())));
}

TEST(Parameters, EveryEnvironmentMovesAsMujocoWithItsParameters) {
  const auto run = [](EngineKind engine) {
    SceneOptions o;
    o.engine = engine;
    o.seed = 9;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(12);
    randomize(scene, 0);
    // Short, because walkers are chaotic.
    for (int s = 0; s < 25; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    return scene.get_dofs_velocity();
  };
  const std::vector<float> ours = run(EngineKind::kBatched), theirs = run(EngineKind::kMujoco);
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 5e-3 * (1 + std::abs(theirs[i]))) << i;
}

TEST(Parameters, MassesOfLinksReachSensorsOfForceAndSubtreesAndDrag) {
  // Links welded into a body and into the world among them, one without mass.
  const std::string xml = R"(<mujoco><option density='900' viscosity='0.4' wind='0.3 -0.2 0.1' timestep='0.002'/>
    <default><geom contype='0' conaffinity='0'/></default><worldbody><body name='post' pos='0 0 1'><geom size='0.1' mass='2'/><site name='base'/>
      <body name='upper'><joint type='ball' damping='0.05'/><geom type='box' size='0.05 0.08 0.2' pos='0 0 -0.2'/>
        <site name='shoulder'/>
        <body name='plate' pos='0.05 0 -0.3' euler='20 10 0'><geom type='box' size='0.1 0.02 0.05'/></body>
        <body name='lower' pos='0 0 -0.4'><joint axis='0 1 0'/><joint axis='1 0 0'/>
          <geom type='capsule' size='0.04 0.15' pos='0 0 -0.15'/><site name='elbow' euler='0 30 0'/>
          <body name='bare' pos='0 0.1 -0.3'/></body></body></body>
      <body name='drop' pos='1 0 1'><freejoint/><geom type='ellipsoid' size='0.1 0.2 0.05'/></body></worldbody>
    <sensor><force site='shoulder' name='s0'/><torque site='shoulder' name='s1'/><force site='elbow' name='s2'/><torque site='elbow' name='s3'/><force site='base' name='s4'/>
      <subtreecom body='post' name='s5'/><subtreelinvel body='post' name='s6'/><subtreeangmom body='post' name='s7'/><subtreecom body='lower' name='s8'/>
      <subtreeangmom body='lower' name='s9'/><subtreecom body='drop' name='s10'/></sensor></mujoco>)";
  for (const char* integrator : {"Euler", "implicitfast"}) {
    const auto run = [&](EngineKind engine) {
      SceneOptions o;
      o.engine = engine;
      o.seed = 4;
      Scene scene(o);
      std::string text = xml;
      text.replace(text.find("<option"), 7, std::string("<option integrator='") + integrator + "'");
      scene.add_entity(Mjcf{.file = "", .xml = text});
      scene.build(8);
      std::vector<float> mass = scene.get_parameter(Parameter::kLinkMass);
      const std::size_t links = mass.size() / 8;
      for (std::size_t e = 1; e < 8; ++e) {  // the first environment keeps the model's
        for (std::size_t k = 1; k < links; ++k) {
          float& m = mass[e * links + k];
          m = m * (0.5f + 0.25f * static_cast<float>((e * 3 + k) % 7)) + (m > 0 ? 0.0f : 0.1f * static_cast<float>(e));
        }
      }
      scene.set_parameter(Parameter::kLinkMass, mass);
      std::vector<float> velocity = scene.get_dofs_velocity();
      for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] = 0.6f * static_cast<float>(i % 11 % 5) - 1.2f;
      scene.set_dofs_velocity(velocity);
      for (int s = 0; s < 50; ++s) scene.step();
      std::vector<float> seen = scene.get_dofs_velocity();
      for (int k = 0; k < 11; ++k) {
        const std::vector<float> sensor = scene.get_sensor(format("s{}", k));
        seen.insert(seen.end(), sensor.begin(), sensor.end());
      }
      return seen;
    };
    const std::vector<float> ours = run(EngineKind::kBatched), theirs = run(EngineKind::kMujoco);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(ours[i], theirs[i], 1e-3 * (1 + std::abs(theirs[i]))) << integrator << ' ' << i;
    EXPECT_GT(std::abs(theirs[0] - theirs[11]), 1e-2f) << "the masses change nothing";
  }
}

TEST(Parameters, ImpossibleOnesAreRefusedAndChangeNothing) {
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  scene.build(3);
  const std::vector<float> before = scene.get_parameter(Parameter::kLinkMass);
  std::vector<float> mass = before;
  mass[mass.size() / 2] = -1;
  EXPECT_NE(message_of([&] { scene.set_parameter(Parameter::kLinkMass, mass); }).find("environment 1"),
            std::string::npos);
  EXPECT_EQ(scene.get_parameter(Parameter::kLinkMass), before);
  scene.step();
  EXPECT_EQ(scene.view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
}

TEST(Parameters, AStateCarriesThem) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_parameters_{}.state", getpid());
  Job whole{.n = 20, .steps = 40};
  whole.before_step = randomize;
  const std::vector<float> truth = simulate(whole);
  Job first{.n = 20, .steps = 21};
  first.before_step = [&](Scene& scene, int s) {
    randomize(scene, s);
    if (s == 20) scene.save_state(path);
  };
  simulate(first);
  Job second{.n = 20, .steps = 40};
  second.before_step = [&](Scene& scene, int s) {
    if (s == 20) {
      scene.load_state(path);
      scene.set_random_ctrl(20);
    }
  };
  EXPECT_TRUE(same_bits(simulate(second), truth));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cohort::sim
