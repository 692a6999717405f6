// Stage by stage against MuJoCo C on random states, our outputs poisoned with infinity first.
#include <algorithm>

#include <gtest/gtest.h>

#include "block.h"
#include "features.h"
#include "oracle.h"

namespace cohort::sim {
namespace {

using test::expect_near;
using test::smooth_features;
using test::take;

/// Single precision of a unit vector between points decimetres apart, and of where a line touches a circle: the square
/// root of a difference.
constexpr double kPathTolerance = 1e-5;
/// Single precision through chains of up to eight joints and one solve; the bound demanded is 5e-4.
constexpr double kPoseTolerance = 2e-6;
constexpr double kInertiaTolerance = 2e-5;
constexpr double kSmoothForceTolerance = 5e-5;
constexpr double kSmoothAccelerationTolerance = 3e-4;

/// Rows of the tendons' Jacobian, dense.
std::vector<double> our_arms(const ModelView& m, const Workspace<ScalarLane>& w) {
  std::vector<double> rows(static_cast<std::size_t>(m.ntendon * m.nv));
  for (int t = 0; t < m.ntendon; ++t) {
    for (int k = m.tendon[t].first_wrap; k < m.tendon[t].first_wrap + m.tendon[t].wrap_count; ++k) {
      rows[static_cast<std::size_t>(t * m.nv + m.wrap[k].dof)] += wrap_arm<ScalarLane>(m, w, k);
    }
  }
  return rows;
}
std::vector<double> their_arms(const mjModel& m, const mjData& d) {
  std::vector<double> rows(static_cast<std::size_t>(m.ntendon * m.nv));
  for (int t = 0; t < m.ntendon; ++t) {
    for (int k = m.ten_J_rowadr[t]; k < m.ten_J_rowadr[t] + m.ten_J_rownnz[t]; ++k) {
      rows[static_cast<std::size_t>(t * m.nv + m.ten_J_colind[k])] = d.ten_J[k];
    }
  }
  return rows;
}

class Smooth : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Smooth, EveryStageEqualsMujocoOnRandomStates) {
  const auto [name, xml] = smooth_features()[GetParam()];
  SCOPED_TRACE(name);
  test::Pair p(test::compile_xml(xml));
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    p.randomize(sample);
    mj_forward(p.mj.get(), p.data.get());
    p.copy_state();
    test::kinematics(p.view, p.w);
    test::velocities(p.view, p.w);
    const int nv = p.view.nv;
    for (int b = 0; b < p.mj->nbody; ++b) {
      double pos[3], rot[9];
      p.link_pose(b, pos, rot);
      expect_near(take(pos, 3), take(p.data->xpos + 3 * b, 3), kPoseTolerance, "position of link " + std::to_string(b));
      expect_near(take(rot, 9), take(p.data->xmat + 9 * b, 9), kPoseTolerance, "rotation of link " + std::to_string(b));
    }
    test::smooth_dynamics(p.view, p.w);
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
    expect_near(take(p.w.smooth, nv), take(p.data->qfrc_smooth, nv), kSmoothForceTolerance, "qfrc_smooth");
    expect_near(take(p.w.acc_smooth, nv), take(p.data->qacc_smooth, nv), kSmoothAccelerationTolerance, "qacc_smooth");
    if (p.view.ntendon > 0) {
      expect_near(our_arms(p.view, p.w), their_arms(*p.mj, *p.data), kPathTolerance, "ten_J");
      expect_near(take(p.w.ten_length, p.view.ntendon), take(p.data->ten_length, p.view.ntendon), kPathTolerance,
                  "ten_length");
    }
    if (p.view.nact > 0) {
      expect_near(take(p.w.actuator_force, p.view.nact), take(p.data->actuator_force, p.view.nact),
                  kSmoothForceTolerance, "actuator_force");
      expect_near(take(p.w.actuator_length, p.view.nact), take(p.data->actuator_length, p.view.nact),
                  kSmoothForceTolerance, "actuator_length");
      expect_near(take(p.w.actuator_velocity, p.view.nact), take(p.data->actuator_velocity, p.view.nact),
                  kSmoothForceTolerance, "actuator_velocity");
    }
    if (p.view.na > 0) {
      expect_near(take(p.w.act_dot, p.view.na), take(p.data->act_dot, p.view.na), kSmoothForceTolerance, "act_dot");
    }
  }
}

TEST(Tendon, EveryPathHasMujocosLengthRateAndArmsOnRandomStates) {
  for (const auto& [name, path] : test::tendon_paths()) {
    SCOPED_TRACE(name);
    test::Pair p(test::compile_xml(test::model(test::kLimbs, "<tendon><spatial>" + path + "</spatial></tendon>")));
    const bool wraps = path.find("<geom") != std::string::npos;
    int touched = 0, straight = 0;
    for (std::uint64_t sample = 0; sample < 200; ++sample) {
      SCOPED_TRACE("sample " + std::to_string(sample));
      p.randomize(sample);
      mj_forward(p.mj.get(), p.data.get());
      p.copy_state();
      test::kinematics(p.view, p.w);
      test::tendons(p.view, p.w);
      bool around = false;
      for (int k = 0; k < p.data->ten_wrapnum[0]; ++k) around = around || p.data->wrap_obj[k] >= 0;
      ++(around ? touched : straight);
      expect_near(take(p.w.ten_length, 1), take(p.data->ten_length, 1), kPathTolerance, "ten_length");
      expect_near(take(p.w.ten_velocity, 1), take(p.data->ten_velocity, 1), kPathTolerance, "ten_velocity");
      expect_near(our_arms(p.view, p.w), their_arms(*p.mj, *p.data), kPathTolerance, "ten_J");
      if (HasFatalFailure()) return;
    }
    if (!wraps) continue;
    EXPECT_GE(touched, 10) << "the path hardly ever touches its geom";
    EXPECT_GE(straight, 5) << "the path hardly ever leaves its geom";
  }
}

INSTANTIATE_TEST_SUITE_P(Features, Smooth, ::testing::Range(std::size_t{0}, smooth_features().size()));

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
