// One step of every integrator against MuJoCo C, from random states, for every feature without constraints.
#include <gtest/gtest.h>

#include "block.h"
#include "features.h"

namespace cohort::sim {
namespace {

using test::smooth_features;
using test::take;

/// Velocities after one step: accelerations agree to 3e-4 of their scale, times a timestep of 0.01 s and more.
constexpr double kVelocityTolerance = 2e-5;

class Integrator : public ::testing::TestWithParam<std::tuple<std::size_t, const char*>> {};

TEST_P(Integrator, OneStepEqualsMujocoOnRandomStates) {
  const auto [feature, integrator] = GetParam();
  const auto [name, xml] = smooth_features()[feature];
  SCOPED_TRACE(name);
  std::string changed = xml;
  changed.replace(changed.find("<option"), 7, std::string("<option timestep='0.01' integrator='") + integrator + "'");
  test::Pair p(test::compile_xml(changed));
  test::Block block(p.view);
  for (std::uint64_t sample = 0; sample < 10; ++sample) {
    p.randomize(sample);
    block.load(p.view, *p.data);
    mj_step(p.mj.get(), p.data.get());
    test::evaluate_and_step(p.view, block.space);
    test::expect_near(take(block.space.w.v, p.view.nv), take(p.data->qvel, p.mj->nv), kVelocityTolerance, "qvel");
    test::expect_near(take(block.space.w.q, p.view.nq), take(p.data->qpos, p.mj->nq), kVelocityTolerance, "qpos");
    if (p.view.na > 0) {
      test::expect_near(take(block.space.w.act, p.view.na), take(p.data->act, p.mj->na), kVelocityTolerance, "act");
    }
  }
}

/// A body that turns by a third of a radian in a step while what turns it changes: only a method of the fourth order on
/// rotations moves it as MuJoCo's does.
TEST(RungeKutta, KeepsItsOrderOnRotations) {
  test::Pair p(test::compile_xml(
      "<mujoco><option timestep='0.02' integrator='RK4'><flag contact='disable'/></option><worldbody><body><freejoint/>"
      "<geom type='box' size='0.1 0.2 0.3' pos='0.1 0.05 -0.1'/></body><body pos='1 0 0'><joint type='ball' "
      "stiffness='3' "
      "pos='0 0.1 0.2'/><geom type='box' size='0.1 0.05 0.2' mass='1'/></body></worldbody></mujoco>"));
  test::Block block(p.view);
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    p.randomize(sample, 0.6, 10.0);
    block.load(p.view, *p.data);
    mj_step(p.mj.get(), p.data.get());
    test::evaluate_and_step(p.view, block.space);
    test::expect_near(take(block.space.w.v, p.view.nv), take(p.data->qvel, p.mj->nv), kVelocityTolerance, "qvel");
    test::expect_near(take(block.space.w.q, p.view.nq), take(p.data->qpos, p.mj->nq), kVelocityTolerance, "qpos");
  }
}

INSTANTIATE_TEST_SUITE_P(Features, Integrator,
                         ::testing::Combine(::testing::Range(std::size_t{0}, smooth_features().size()),
                                            ::testing::Values("Euler", "implicitfast", "RK4")));

}  // namespace
}  // namespace cohort::sim
