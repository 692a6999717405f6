#include "tasks/push_t_expert.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tasks/push_t_path.h"
#include "tasks/push_t_rollout.h"

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

TEST(PushTRollout, ScoresDoNotDependOnTheNumberOfThreads) {
  const auto random = [](std::uint32_t seed) { return make_push_t_random(5, seed); };
  const PushTScore one = score_push_t(10, 6, random, 1, 40), three = score_push_t(10, 6, random, 3, 40);
  ASSERT_EQ(one.episodes.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(one.episodes[i].seed, 10 + i);
    EXPECT_EQ(one.episodes[i].largest_reward, three.episodes[i].largest_reward);
    EXPECT_EQ(one.episodes[i].steps, three.episodes[i].steps);
  }
  EXPECT_EQ(one.mean_largest_reward, three.mean_largest_reward);
}

TEST(PushTRollout, EpisodesPlayedTogetherAreThoseThatArePlayedAlone) {
  const auto follow = [](const PushT& world) {
    const PushTSituation now = world.situation();
    const Point2 cog = to_world(now.block, {0, 45}), goal = to_world(kPushTGoal, {0, 45});
    return PushTAction{cog.x + 0.5 * (cog.x - goal.x), cog.y + 0.5 * (cog.y - goal.y)};
  };
  constexpr std::int64_t kCount = 5, kSteps = 60;
  const PushTScore alone = score_push_t(
      20, kCount, [&](std::uint32_t) -> PushTPolicy { return [&](const PushT& w, std::int64_t) { return follow(w); }; },
      1, kSteps);
  std::size_t calls = 0;
  const PushTScore together = score_push_t_together(
      20, kCount,
      [&](std::span<const std::uint64_t> episodes, std::span<const PushT* const> worlds) {
        ++calls;
        std::vector<PushTAction> actions;
        for (std::size_t i = 0; i < episodes.size(); ++i) actions.push_back(follow(*worlds[i]));
        return actions;
      },
      kSteps);
  EXPECT_LE(calls, static_cast<std::size_t>(kSteps));
  for (std::size_t i = 0; i < static_cast<std::size_t>(kCount); ++i) {
    EXPECT_EQ(together.episodes[i].seed, alone.episodes[i].seed);
    EXPECT_EQ(together.episodes[i].steps, alone.episodes[i].steps);
    EXPECT_EQ(together.episodes[i].largest_coverage, alone.episodes[i].largest_coverage);
    EXPECT_EQ(together.episodes[i].success, alone.episodes[i].success);
  }
  EXPECT_EQ(together.mean_largest_coverage, alone.mean_largest_coverage);
  EXPECT_GT(alone.mean_largest_coverage, 0) << "the policy must move something";
}

TEST(PushTRollout, ThePoliciesErrorsAndBadCountsAreThrown) {
  const PushTPolicyMaker broken = [](std::uint32_t) -> PushTPolicy {
    return [](const PushT&, std::int64_t) -> PushTAction { throw Error("broken policy"); };
  };
  EXPECT_THROW(score_push_t(0, 3, broken, 2), Error);
  EXPECT_THROW(score_push_t(0, 0, broken, 2), Error);
  EXPECT_THROW(score_push_t(4294967295u, 2, broken, 2), Error);
}

}  // namespace
}  // namespace cohort::tasks
