#include "tasks/push_t/convex_area.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace cohort::tasks {
namespace {

constexpr double kAreaRounding = 1e-12;  // areas of order one

std::array<Point2, 4> square(double x, double y, double angle) {
  std::array<Point2, 4> corners;
  for (std::size_t i = 0; i < 4; ++i) {
    const double a = angle + M_PI / 4 + M_PI / 2 * static_cast<double>(i), r = std::sqrt(0.5);
    corners[i] = {x + r * std::cos(a), y + r * std::sin(a)};
  }
  return corners;
}

TEST(ConvexArea, SharedAreaFollowsClosedForms) {
  const auto unit = square(0, 0, 0);
  EXPECT_NEAR(convex_intersection_area(unit, unit), 1.0, kAreaRounding);
  EXPECT_NEAR(convex_intersection_area(unit, square(0.25, 0.5, 0)), 0.75 * 0.5, kAreaRounding);
  // A square and itself turned by 45 degrees share a regular octagon.
  EXPECT_NEAR(convex_intersection_area(unit, square(0, 0, M_PI / 4)), 2 * (std::sqrt(2.0) - 1), kAreaRounding);
  EXPECT_NEAR(convex_intersection_area(unit, square(3, 0, 0)), 0.0, kAreaRounding);
  EXPECT_NEAR(convex_intersection_area(unit, square(1, 0, 0)), 0.0, kAreaRounding) << "they share an edge only";
}

TEST(ConvexArea, OrientationAndOrderDoNotMatter) {
  const auto a = square(0, 0, 0.3), b = square(0.2, -0.3, 1.0);
  auto reversed = b;
  std::reverse(reversed.begin(), reversed.end());
  const double area = convex_intersection_area(a, b);
  EXPECT_GT(area, 0.3);
  EXPECT_NEAR(convex_intersection_area(b, a), area, kAreaRounding);
  EXPECT_NEAR(convex_intersection_area(a, reversed), area, kAreaRounding);
  EXPECT_NEAR(convex_intersection_area(reversed, a), area, kAreaRounding);
  EXPECT_LT(signed_area(reversed), 0);
}

}  // namespace
}  // namespace cohort::tasks
