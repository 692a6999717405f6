#include "tasks/push_t/push_t_expert.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tasks/push_t/push_t_path.h"

namespace cohort::tasks {
namespace {

constexpr double kDistanceRounding = 1e-9;

TEST(PushTPath, DistancesToTheTFollowClosedForms) {
  const PushTPose upright;
  EXPECT_NEAR(distance_to_t(upright, {0, -10}), 10, kDistanceRounding);
  EXPECT_NEAR(distance_to_t(upright, {63, 34}), 5, kDistanceRounding) << "from a corner of the bar: 3, 4, 5";
  EXPECT_NEAR(distance_to_t(upright, {25, 60}), 10, kDistanceRounding) << "beside the stem";
  EXPECT_NEAR(distance_to_t(upright, {25, 37}), 7, kDistanceRounding) << "in the corner between bar and stem";
  EXPECT_LT(distance_to_t(upright, {0, 15}), 0);
  EXPECT_LT(distance_to_t(upright, {0, 100}), 0);
  const PushTPose turned = {{100, 200}, 1.2};
  EXPECT_NEAR(distance_to_t(turned, to_world(turned, {63, 34})), 5, kDistanceRounding);
}

TEST(PushTPath, TheWayAroundTheBlockTouchesItNowhere) {
  const PushTPose block = {{256, 200}, 0.4};
  const Point2 from = to_world(block, {0, -40}), to = to_world(block, {0, 150});
  const auto path = path_around_t(block, from, to);
  ASSERT_GE(path.size(), 3u);
  EXPECT_EQ(path.back().x, to.x);
  EXPECT_EQ(path.back().y, to.y);
  EXPECT_LT(std::hypot(path.front().x - from.x, path.front().y - from.y), 12);
  double length = 0;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const Point2 a = path[i], b = path[i + 1];
    length += std::hypot(b.x - a.x, b.y - a.y);
    for (double t = 0; t <= 1; t += 0.1)
      EXPECT_GT(distance_to_t(block, {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)}), kPushTAgentRadius) << i;
  }
  EXPECT_GT(length, 190) << "the straight way leads through the block";
  EXPECT_LT(length, 450);
}

TEST(PushTPath, APlaceFarOutsideTheWorldHasNoWay) {
  const PushTPose block = {{256, 200}, 0};
  EXPECT_TRUE(path_around_t(block, {60, 60}, {-200, -200}).empty());
}

TEST(PushTExpert, TheErrorIsTheDistanceOfAShiftedBlock) {
  EXPECT_NEAR(push_t_error(kPushTGoal), 0, kDistanceRounding);
  EXPECT_NEAR(push_t_error({{259, 260}, kPushTGoal.angle}), 5, kDistanceRounding);
  EXPECT_GT(push_t_error({kPushTGoal.origin, kPushTGoal.angle + 3.14}), 100);
}

TEST(PushTExpert, SettingsThatPlanNothingAreRefused) {
  EXPECT_THROW(PushTExpert(PushTExpertSettings{.spacing = 0}), Error);
  EXPECT_THROW(PushTExpert(PushTExpertSettings{.depth = 0}), Error);
  EXPECT_THROW(PushTExpert(PushTExpertSettings{.clearance = 6, .longest_push = 5}), Error);
}

TEST(PushTExpert, ABlockAShortPushFromTheGoalIsSolved) {
  // Behind the goal along the stem: a push against the middle of the bar, or a few more, solve it.
  PushT world;
  world.place({to_world(kPushTGoal, {0, -110}), {}, {to_world(kPushTGoal, {0, -40}), kPushTGoal.angle}});
  PushTExpert expert(PushTExpertSettings{.depth = 1});
  bool success = false;
  int steps = 0;
  for (; steps < 150 && !success; ++steps) success = world.step(expert.act(world.situation())).success;
  EXPECT_TRUE(success) << "coverage " << world.coverage() << ", error " << push_t_error(world.situation().block);
}

}  // namespace
}  // namespace cohort::tasks
