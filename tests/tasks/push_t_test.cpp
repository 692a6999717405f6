// Push-T against gym-pusht's own resets and steps (make_push_t_fixtures.py), and against closed forms.
#include "tasks/push_t/push_t.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace cohort::tasks {
namespace {
using Json = nlohmann::json;

// Both run Chipmunk's solver in float64, but built by different compilers, whose roundings contacts amplify.
constexpr double kPositionTolerance = 1e-6;  // px
constexpr double kAngleTolerance = 1e-8;     // rad
constexpr double kCoverageTolerance = 1e-7;
constexpr double kRounding = 1e-9;
// Chipmunk lets shapes overlap by 0.1 px, and what a fast agent overlaps is resolved over the next steps.
constexpr double kContactTolerance = 0.5;  // px

const Json& fixtures() {
  static const Json loaded = [] {
    const auto path = std::filesystem::path(COHORT_SOURCE_DIR) / "tests" / "tasks" / "push_t_fixtures.json";
    if (!std::filesystem::exists(path))
      throw Error("run tests/tasks/make_push_t_fixtures.py; it writes " + path.string());
    return parse_json<Json>(read_file(path));
  }();
  return loaded;
}

PushTState to_state(const Json& values) {
  PushTState state{};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = values.at(i).get<double>();
  return state;
}

void expect_observation(const PushTState& found, const Json& expected) {
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected.at(i).get<double>(), kPositionTolerance) << i;
  // An angle near 0 may be near 2 pi on the other side.
  EXPECT_NEAR(std::remainder(found[4] - expected.at(4).get<double>(), 2 * M_PI), 0, kAngleTolerance);
}

/// The block away from the agent, upright.
PushTSituation upright(Point2 agent) {
  return {agent, {}, {{256, 256}, 0}};
}

TEST(PushT, ResetsDrawGymPushtsStates) {
  for (const Json& reset : fixtures().at("resets")) {
    SCOPED_TRACE(json_text(reset.at("seed")));
    const auto seed = reset.at("seed").get<std::uint32_t>();
    const PushTState drawn = push_t_reset_state(seed), expected = to_state(reset.at("state"));
    EXPECT_EQ(drawn, expected);
    PushT world;
    expect_observation(world.reset(seed), reset.at("observation"));
  }
}

TEST(PushT, StepsFollowGymPusht) {
  ASSERT_FALSE(fixtures().at("episodes").empty());
  int number = 0;
  for (const Json& episode : fixtures().at("episodes")) {
    SCOPED_TRACE(::testing::Message() << "episode " << number++ << " from " << json_text(episode.at("start")));
    PushT world;
    const Json& start = episode.at("start");
    expect_observation(start.is_array() ? world.reset_to(to_state(start)) : world.reset(start.get<std::uint32_t>()),
                       episode.at("reset_observation"));
    int t = 0;
    for (const Json& step : episode.at("steps")) {
      const PushTStep result =
          world.step({step.at("action").at(0).get<double>(), step.at("action").at(1).get<double>()});
      expect_observation(result.observation, step.at("observation"));
      const PushTSituation now = world.situation();
      EXPECT_NEAR(now.agent_velocity.x, step.at("pose").at(2).get<double>(), kPositionTolerance);
      EXPECT_NEAR(now.agent_velocity.y, step.at("pose").at(3).get<double>(), kPositionTolerance);
      EXPECT_NEAR(now.block.angle, step.at("pose").at(6).get<double>(), kAngleTolerance);
      EXPECT_NEAR(result.coverage, step.at("coverage").get<double>(), kCoverageTolerance);
      EXPECT_NEAR(result.reward, step.at("reward").get<double>(), kCoverageTolerance / kPushTSuccessCoverage);
      EXPECT_EQ(result.success, step.at("terminated").get<bool>());
      if (::testing::Test::HasFailure()) FAIL() << "first difference in step " << t;
      ++t;
    }
    const auto keypoints = world.keypoints();
    for (std::size_t i = 0; i < keypoints.size(); ++i)
      EXPECT_NEAR(keypoints[i], episode.at("keypoints").at(i).get<double>(), kPositionTolerance) << "keypoint " << i;
  }
}

TEST(PushT, ResetToAStateEndsWhereGymPushtsManualSays) {
  PushT world;
  const PushTState state = world.reset_to({0, 10, 20, 30, 1});
  const PushTState printed = {0, 10, 57.866196, 50.686398, 1};  // float32
  for (std::size_t i = 0; i < state.size(); ++i) EXPECT_NEAR(state[i], printed[i], 1e-5) << i;
}

TEST(PushT, TheAgentFollowsItsTargetByTheRecursionOfItsController) {
  PushT world;
  world.place(upright({60, 60}));
  double p = 60, v = 0;
  for (int t = 0; t < 8; ++t) {
    const double target = t < 4 ? 140 : 90;
    world.step({target, 60});
    for (int i = 0; i < 10; ++i) {
      v += (100 * (target - p) - 20 * v) * 0.01;
      p += v * 0.01;
    }
    EXPECT_NEAR(world.situation().agent.x, p, kRounding) << t;
    EXPECT_NEAR(world.situation().agent_velocity.x, v, kRounding) << t;
    EXPECT_NEAR(world.situation().agent.y, 60, kRounding) << t;
  }
}

TEST(PushT, CoverageFollowsClosedForms) {
  EXPECT_NEAR(push_t_coverage(kPushTGoal), 1.0, kRounding);
  const auto shifted = [](double x, double y) {  // in the goal's frame
    return push_t_coverage({to_world(kPushTGoal, {x, y}), kPushTGoal.angle});
  };
  EXPECT_NEAR(shifted(10, 0), (110.0 * 30 + 20.0 * 90) / 6300, kRounding);
  EXPECT_NEAR(shifted(-10, 0), (110.0 * 30 + 20.0 * 90) / 6300, kRounding);
  // Along the stem the shifted bar meets the goal's stem too.
  EXPECT_NEAR(shifted(0, 10), (120.0 * 20 + 30.0 * 10 + 30.0 * 80) / 6300, kRounding);
  EXPECT_EQ(shifted(200, 0), 0.0);
  EXPECT_NEAR(push_t_coverage({kPushTGoal.origin, kPushTGoal.angle + 2 * M_PI}), 1.0, kRounding);
}

TEST(PushT, ABlockOnTheGoalIsASuccessWithFullReward) {
  PushT world;
  world.place({{60, 60}, {}, kPushTGoal});
  const PushTStep step = world.step({60, 60});
  EXPECT_NEAR(step.coverage, 1.0, kRounding);
  EXPECT_EQ(step.reward, 1.0);
  EXPECT_TRUE(step.success);
  world.place({{60, 60}, {}, {to_world(kPushTGoal, {10, 0}), kPushTGoal.angle}});
  const PushTStep near = world.step({60, 60});
  EXPECT_FALSE(near.success);
  EXPECT_NEAR(near.reward, 5100.0 / 6300 / 0.95, kRounding);
}

TEST(PushT, APushThroughTheCentreOfGravityDoesNotTurnTheBlock) {
  PushT world;
  world.place(upright({256, 230}));
  for (int t = 0; t < 20; ++t) world.step({256, 290});
  const PushTSituation now = world.situation();
  EXPECT_NEAR(now.agent.y, 290, 0.1);
  EXPECT_NEAR(now.block.origin.y, now.agent.y + kPushTAgentRadius, kContactTolerance);
  EXPECT_NEAR(now.block.origin.x, 256, kContactTolerance);
  EXPECT_NEAR(now.block.angle, 0, 0.01);
}

TEST(PushT, APushBesideTheCentreOfGravityTurnsTheBlockThatWay) {
  for (const double side : {-1.0, 1.0}) {
    PushT world;
    world.place(upright({256 + side * 45, 230}));
    for (int t = 0; t < 10; ++t) world.step({256 + side * 45, 270});
    EXPECT_GT(side * world.situation().block.angle, 0.05) << side;
  }
}

TEST(PushT, APushTurnsTheBlockByItsMomentOfInertia) {
  // A force along an edge's normal with lever r turns a body of mass 1 by r / I per px that it moves the centre of
  // gravity. I is twice the bar's moment about the origin of the T: 2 ((120² + 30²) / 12 + 15²).
  constexpr double kMoment = 2 * ((120.0 * 120 + 30 * 30) / 12 + 15 * 15), kLever = 30;
  constexpr double kShare = 0.1;  // the lever changes by 2 px while the block turns
  PushT world;
  world.place(upright({256 + kLever, 238}));
  for (int t = 0; t < 15; ++t) world.step({256 + kLever, 246});  // 3 px to the edge, 5 px further
  const PushTPose block = world.situation().block;
  const double moved = to_world(block, {0, 45}).y - (256 + 45);
  EXPECT_GT(moved, 3);
  EXPECT_NEAR(block.angle / moved, kLever / kMoment, kShare * kLever / kMoment);
}

TEST(PushT, TheBlockRestsWhenTheAgentIsGone) {
  PushT world;
  world.place(upright({256, 230}));
  for (int t = 0; t < 10; ++t) world.step({256, 270});
  for (int t = 0; t < 3; ++t) world.step({256, 200});
  const PushTPose before = world.situation().block;
  for (int t = 0; t < 10; ++t) world.step({256, 100});
  const PushTPose after = world.situation().block;
  EXPECT_GT(before.origin.y, 270);
  EXPECT_NEAR(after.origin.x, before.origin.x, kRounding);
  EXPECT_NEAR(after.origin.y, before.origin.y, kRounding);
  EXPECT_NEAR(after.angle, before.angle, kRounding);
}

TEST(PushT, PlaceGivesTheSituationThatItWasToldAndForgetsTheLast) {
  const PushTSituation wanted = {{100, 120}, {30, -40}, {{300, 310}, -2.5}};
  PushT used, fresh;
  for (int t = 0; t < 20; ++t) used.step({300, 300});
  used.place(wanted);
  fresh.place(wanted);
  const PushTSituation now = used.situation();
  EXPECT_NEAR(now.agent.x, 100, kRounding);
  EXPECT_NEAR(now.agent_velocity.y, -40, kRounding);
  EXPECT_NEAR(now.block.origin.x, 300, kRounding);
  EXPECT_NEAR(now.block.origin.y, 310, kRounding);
  EXPECT_EQ(now.block.angle, -2.5);
  for (int t = 0; t < 30; ++t) EXPECT_EQ(used.step({290, 330}).observation, fresh.step({290, 330}).observation) << t;
}

TEST(PushT, TheObservedAngleIsWrappedAsPythonDoes) {
  PushT world;
  world.place({{60, 60}, {}, {{256, 256}, -1}});
  EXPECT_NEAR(world.observation()[4], 2 * M_PI - 1, kRounding);
  world.place({{60, 60}, {}, {{256, 256}, 7}});
  EXPECT_NEAR(world.observation()[4], 7 - 2 * M_PI, kRounding);
}

TEST(PushT, WhatIsNotFiniteIsRefused) {
  PushT world;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(world.step({nan, 0}), Error);
  EXPECT_THROW(world.reset_to({0, 0, 0, 0, nan}), Error);
  EXPECT_THROW(world.place({{0, 0}, {}, {{0, std::numeric_limits<double>::infinity()}, 0}}), Error);
  EXPECT_TRUE(std::isfinite(world.step({0, 0}).observation[0])) << "the refused calls left a sound world";
}

}  // namespace
}  // namespace cohort::tasks
