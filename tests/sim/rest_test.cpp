// What is put down comes to rest: pairs of shapes drawn by the date (sim_rest for all of them).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/philox.h"
#include "rest_suite.h"
#include "sim/host/scene.h"
#include "support/today.h"

namespace cohort::sim {
namespace {

TEST(Rest, WhatIsPutDownIsAsStillAfterTwoSecondsAsInMujoco) {
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
  constexpr std::size_t kPairs = 2;
#else
  constexpr std::size_t kPairs = 24;
#endif
  const std::uint64_t today = cohort::test::today();
  SCOPED_TRACE(format("again with COHORT_TEST_DAY={}", today));
  std::vector<test::RestCase> left = test::rest_cases();
  const RandomStream random(today, RandomPurpose::kTest, 0, 0);
  std::size_t shapes = 0;
  for (std::size_t k = 0; k < kPairs && !left.empty(); ++k) {
    const auto at = static_cast<std::size_t>(static_cast<double>(random.uniform(k)) * static_cast<double>(left.size()));
    for (const test::RestResult& r : test::run_rest_case(left[at])) {
      EXPECT_EQ(r.wrong, "") << test::rest_columns() << '\n' << test::rest_line(r);
      ++shapes;
    }
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  EXPECT_GE(shapes, 2 * kPairs);
  RecordProperty("seed", std::to_string(today));
}

/// How far a box slides in a second on a slope that its friction holds it on: the farthest of many, which stand in
/// lanes side by side, some of them turned.
double slides(EngineKind engine, const char* cone, int condim, int noslip_iterations,
              LaneWidth lanes = LaneWidth::kAuto) {
  constexpr int kBoxes = 20, kSlidingSteps = 500;
  SceneOptions options;
  options.engine = engine;
  options.lanes = lanes;
  Scene scene(options);
  scene.add_entity(
      Mjcf{.file = "",
           .xml = format("<mujoco><option timestep='0.002' cone='{}' noslip_iterations='{}'/><worldbody>"
                         "<geom type='plane' size='5 5 1' euler='0 20 0'/><body><freejoint/><geom type='box' "
                         "size='0.1 0.08 0.05' mass='2' condim='{}' friction='0.6 0.01 0.001'/></body>"
                         "</worldbody></mujoco>",
                         cone, noslip_iterations, condim)});
  scene.build(kBoxes);
  constexpr double kDown = 20 * 3.14159265358979 / 180;
  std::vector<float> start;
  for (int e = 0; e < kBoxes; ++e) {
    const double turn = 0.3 * e, c = std::cos(kDown / 2), s = std::sin(kDown / 2);
    for (double x : {0.0499 * std::sin(kDown), 0.0, 0.0499 * std::cos(kDown)}) start.push_back(static_cast<float>(x));
    for (double x : {c * std::cos(turn / 2), s * std::sin(turn / 2), s * std::cos(turn / 2), c * std::sin(turn / 2)}) {
      start.push_back(static_cast<float>(x));
    }
  }
  scene.set_qpos(start);
  const auto down = [&](const std::vector<float>& q, std::size_t e) {
    return static_cast<double>(q[7 * e]) * std::cos(kDown) - static_cast<double>(q[7 * e + 2]) * std::sin(kDown);
  };
  std::vector<float> settled;
  for (int s = 0; s < kSlidingSteps; ++s) {
    scene.step();
    if (s == kSlidingSteps / 5) settled = scene.get_qpos();
  }
  const std::vector<float> q = scene.get_qpos();
  double farthest = 0;
  for (std::size_t e = 0; e < kBoxes; ++e) farthest = std::max(farthest, std::abs(down(q, e) - down(settled, e)));
  return farthest;
}

TEST(Rest, WithoutSlipABoxOnASlopeStaysWhereFrictionHoldsItAndCreepsWithSlip) {
  for (const char* cone : {"pyramidal", "elliptic"}) {
    for (const int condim : {3, 4, 6}) {
      SCOPED_TRACE(format("{} cones of condim {}", cone, condim));
      const double with = slides(EngineKind::kBatched, cone, condim, 0),
                   without = slides(EngineKind::kBatched, cone, condim, 5),
                   mujoco = slides(EngineKind::kMujoco, cone, condim, 5);
      EXPECT_GT(with, 1e-4);
      // Of pyramids with more than two tangents, each has a share of the normal force only, and some creep stays.
      if (condim == 3 || cone[0] == 'e') EXPECT_LT(without, 0.02 * with);
      EXPECT_NEAR(without, mujoco, 0.05 * mujoco + 2e-6);
      EXPECT_EQ(without, slides(EngineKind::kBatched, cone, condim, 5, LaneWidth::kScalar)) << "other bits alone";
    }
  }
}

}  // namespace
}  // namespace cohort::sim
