// Stage by stage against MuJoCo C on random states, our outputs poisoned with infinity first.
#include "sim/kernels/smooth.h"

#include <gtest/gtest.h>

#include "oracle.h"

namespace cohort::sim {
namespace {

using test::expect_near;
using test::take;

/// Single precision through chains of up to eight joints and one solve; the bound demanded is 5e-4.
constexpr double kPoseTolerance = 2e-6;
constexpr double kInertiaTolerance = 2e-5;
constexpr double kForceTolerance = 5e-5;
constexpr double kAccelerationTolerance = 3e-4;

struct Feature {
  const char* name;
  const char* xml;
};

constexpr const char* kTree = R"(
  <body pos="0.1 0.2 0.3" euler="10 20 30"><joint type="hinge" axis="0 0 1"/><geom size="0.1 0.2 0.3" type="box" mass="1"/>
    <body pos="0.3 0 0.1"><joint type="hinge" axis="1 2 3" pos="0.02 0.03 -0.01"/><geom size="0.05 0.2" type="capsule"/>
      <body pos="0 0.1 0.2" euler="-30 5 60"><geom size="0.06"/>
        <body pos="0.1 0.1 0"><joint type="slide" axis="0 1 0"/><joint type="hinge" axis="1 0 0" pos="0 0.05 0"/>
          <joint type="hinge" axis="0 0.6 0.8"/><geom size="0.05 0.1 0.02" type="box" pos="0.1 0 0.02" euler="0 30 0"/></body>
      </body>
    </body>
  </body>)";

std::string model(const std::string& body, const std::string& rest = "", const std::string& option = "") {
  return "<mujoco><option>" + option + "<flag contact='disable' constraint='disable'/></option><worldbody>" + body +
         "</worldbody>" + rest + "</mujoco>";
}

std::vector<std::pair<std::string, std::string>> features() {
  const std::string hinge =
      "<body><joint name='j' axis='0 1 0' damping='0.3' stiffness='2' springref='20' armature='0.02'/>"
      "<geom size='0.05 0.2' type='capsule' pos='0.2 0 0'/>"
      "<body pos='0.4 0 0'><joint name='k' axis='0 1 0'/><geom size='0.05 0.1' type='capsule'/></body></body>";
  return {
      {"tree of hinges and slides with anchors and welded bodies", model(kTree)},
      {"free body with children", model("<body><freejoint/><geom size='0.1 0.2 0.3' type='box' pos='0.05 0 0'/>" +
                                        std::string(kTree) + "</body>")},
      {"ball joints",
       model("<body pos='1 0 1'><joint type='ball' pos='0 0 0.2'/><geom size='0.1 0.2' type='capsule'/>"
             "<body pos='0 0 -0.4'><joint type='ball' damping='0.1'/><geom size='0.1 0.1 0.2' type='box'/></body>"
             "</body>")},
      {"slide at the root far away",
       model("<body pos='100 50 2'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 0 1'/>"
             "<joint type='hinge' axis='0 1 0' pos='0 0 0.1'/><geom size='0.1 0.2' type='capsule'/>" +
             std::string(kTree) + "</body>")},
      {"several trees and a mocap body", model("<body mocap='true' pos='0 1 0'><geom size='0.1'/></body><body pos='0 0 "
                                               "2'><freejoint/><geom size='0.1'/></body>" +
                                               std::string(kTree))},
      {"gravity compensation",
       model("<body gravcomp='0.7'><joint axis='0 1 0'/><geom size='0.1' pos='0.2 0.1 0'/>"
             "<body gravcomp='1.5' pos='0.2 0 0'><geom size='0.05' pos='0 0 0.1'/></body></body>")},
      {"joint springs, dampers, armature", model(hinge)},
      {"motors, position and velocity servos",
       model(hinge,
             "<actuator><motor joint='j' gear='3' ctrlrange='-0.5 0.5'/><position joint='k' kp='20' kv='2'/>"
             "<velocity joint='j' kv='3' forcerange='-1 1'/><damper joint='k' kv='2' ctrlrange='0 1'/></actuator>")},
      {"general actuators with activation",
       model(
           hinge,
           "<actuator><general joint='j' dyntype='filter' dynprm='0.1' gainprm='3' biastype='affine' biasprm='0.1 -2 "
           "-0.3'/>"
           "<general joint='k' dyntype='filterexact' dynprm='0.02' gaintype='affine' gainprm='1 0.5 0.2'/>"
           "<intvelocity joint='j' kp='10' actrange='-1 1'/>"
           "<general joint='k' dyntype='integrator' actearly='true' actlimited='true' actrange='-0.2 0.2' gainprm='2'/>"
           "</actuator>")},
      {"joint force limits",
       model("<body><joint name='j' axis='0 1 0' actuatorfrcrange='-0.4 0.6'/><geom size='0.1' pos='0.2 0 0'/>"
             "</body>",
             "<actuator><motor joint='j'/><motor joint='j' gear='2'/></actuator>")},
      {"fixed tendons",
       model(hinge,
             "<tendon><fixed name='t' stiffness='3' damping='0.4' springlength='0.1 0.2'><joint joint='j' "
             "coef='0.5'/><joint joint='k' coef='-1.2'/></fixed></tendon><actuator><motor tendon='t' gear='2'/>"
             "</actuator>")},
      {"reference angles",
       model("<body euler='0 0 40'><joint axis='0 0 1' ref='30'/><geom size='0.1' pos='0.2 0 0'/></body>")},
  };
}

class Smooth : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Smooth, EveryStageEqualsMujocoOnRandomStates) {
  const auto [name, xml] = features()[GetParam()];
  SCOPED_TRACE(name);
  test::Pair p(test::compile_xml(xml));
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    p.randomize(sample);
    mj_forward(p.mj.get(), p.data.get());
    p.copy_state();
    kinematics<ScalarLane>(p.view, p.w);
    velocities<ScalarLane>(p.view, p.w);
    const int nv = p.view.nv;
    for (int b = 0; b < p.mj->nbody; ++b) {
      double pos[3], rot[9];
      p.link_pose(b, pos, rot);
      expect_near(take(pos, 3), take(p.data->xpos + 3 * b, 3), kPoseTolerance, "position of link " + std::to_string(b));
      expect_near(take(rot, 9), take(p.data->xmat + 9 * b, 9), kPoseTolerance, "rotation of link " + std::to_string(b));
    }
    smooth_dynamics<ScalarLane>(p.view, p.w);
    std::vector<double> full(static_cast<std::size_t>(nv * nv)), ours, theirs;
    mj_fullM(p.mj.get(), p.data.get(), full.data());
    for (int i = 0; i < nv; ++i) {
      for (int k = p.view.pattern_start[i]; k < p.view.pattern_start[i + 1]; ++k) {
        const int j = p.view.pattern[k];
        ours.push_back(p.w.mass[triangle(i, j)]);
        theirs.push_back(full[static_cast<std::size_t>(i * nv + j)]);
      }
    }
    expect_near(ours, theirs, kInertiaTolerance, "inertia matrix");
    expect_near(take(p.w.smooth, nv), take(p.data->qfrc_smooth, nv), kForceTolerance, "qfrc_smooth");
    expect_near(take(p.w.acc_smooth, nv), take(p.data->qacc_smooth, nv), kAccelerationTolerance, "qacc_smooth");
    if (p.view.na > 0) {
      expect_near(take(p.w.act_dot, p.view.na), take(p.data->act_dot, p.view.na), kForceTolerance, "act_dot");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Features, Smooth, ::testing::Range(std::size_t{0}, features().size()));

TEST(LaneMath, ElementaryFunctionsAreAccurate) {
  double sine = 0, cosine = 0, angle = 0, exponential = 0, logarithm = 0;
  for (int i = -200000; i <= 200000; ++i) {
    const float x = static_cast<float>(i) * 0.00137f;
    float s, c;
    sincos(x, s, c);
    sine = std::max(sine, std::abs(s - std::sin(static_cast<double>(x))));
    cosine = std::max(cosine, std::abs(c - std::cos(static_cast<double>(x))));
    const float y = static_cast<float>(i % 997) * 0.01f - 5;
    angle = std::max(angle, std::abs(atan2(y, x) - std::atan2(static_cast<double>(y), static_cast<double>(x))));
    const float e = x * 0.3f;
    if (std::abs(e) < 80) {
      exponential = std::max(exponential, std::abs(exp(e) / std::exp(static_cast<double>(e)) - 1));
      const double truth = std::log(std::exp(static_cast<double>(e)));
      logarithm = std::max(logarithm, std::abs(log(static_cast<float>(std::exp(static_cast<double>(e)))) - truth) /
                                          std::max(1.0, std::abs(truth)));
    }
  }
  EXPECT_LT(sine, 2e-7);
  EXPECT_LT(cosine, 2e-7);
  EXPECT_LT(angle, 4e-7);
  EXPECT_LT(exponential, 3e-7);
  EXPECT_LT(logarithm, 3e-7);
  EXPECT_NEAR(pow(0.3f, 2.5f), std::pow(0.3, 2.5), 1e-7);
}

}  // namespace
}  // namespace cohort::sim
