#include "tasks/two_link_arm.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "support/fresh_folder.h"

namespace cohort::tasks {
namespace {

constexpr int kColumns = 12;

// Torques from the closed form of a planar two-link arm (uniform capsules; Craig, Introduction to Robotics, ch. 6),
// with the inertia of a capsule about its centre. MuJoCo measures angles about +y from the hanging pose.
void closed_form_torque(const double* row, double* torque) {
  const double m1 = 1.0, m2 = 0.6, l1 = 0.5, l2 = 0.4, g = 9.81;
  const auto capsule_inertia = [](double mass, double length, double radius) {
    const double cylinder = M_PI * radius * radius * length, sphere = 4.0 / 3.0 * M_PI * radius * radius * radius;
    const double mc = mass * cylinder / (cylinder + sphere), ms = mass - mc;
    const double h = length / 2;
    return mc * (length * length / 12 + radius * radius / 4) + ms * (0.4 * radius * radius + h * h + 0.75 * h * radius);
  };
  const double i1 = capsule_inertia(m1, l1, 0.03), i2 = capsule_inertia(m2, l2, 0.025);
  const double c1 = l1 / 2, c2 = l2 / 2;
  const double q1 = row[0], q2 = row[1], v1 = row[2], v2 = row[3], a1 = row[4], a2 = row[5];
  const double coupling = m2 * l1 * c2 * std::cos(q2), coriolis = m2 * l1 * c2 * std::sin(q2);
  const double m11 = i1 + i2 + m1 * c1 * c1 + m2 * (l1 * l1 + c2 * c2) + 2 * coupling;
  const double m12 = i2 + m2 * c2 * c2 + coupling, m22 = i2 + m2 * c2 * c2;
  torque[0] = m11 * a1 + m12 * a2 - coriolis * (2 * v1 * v2 + v2 * v2) +
              g * ((m1 * c1 + m2 * l1) * std::sin(q1) + m2 * c2 * std::sin(q1 + q2)) + 0.4 * v1;
  torque[1] = m12 * a1 + m22 * a2 + coriolis * v1 * v1 + g * m2 * c2 * std::sin(q1 + q2) + 0.15 * v2;
}

TEST(TwoLinkArm, TorquesFollowTheClosedFormOfTheDynamics) {
  const auto table = simulate_two_link_arm({.rows = 400, .seed = 3, .noise = 0.0});
  for (int row = 0; row < 400; ++row) {
    const double* values = table.data() + row * kColumns;
    double torque[2];
    closed_form_torque(values, torque);
    EXPECT_NEAR(torque[0], values[10], 1e-5) << "row " << row;
    EXPECT_NEAR(torque[1], values[11], 1e-5) << "row " << row;
  }
}

TEST(TwoLinkArm, EqualSeedsGiveEqualBitsAndOthersDoNot) {
  const auto a = simulate_two_link_arm({.rows = 50, .seed = 1});
  const auto b = simulate_two_link_arm({.rows = 50, .seed = 1});
  const auto c = simulate_two_link_arm({.rows = 50, .seed = 2});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(TwoLinkArm, TheMotionStaysBoundedAndVaried) {
  const auto table = simulate_two_link_arm({.rows = 5000});
  double largest = 0, spread = 0;
  for (int row = 0; row < 5000; ++row) {
    largest = std::max(largest, std::abs(table[static_cast<std::size_t>(row * kColumns + 3)]));
    spread = std::max(spread, std::abs(table[static_cast<std::size_t>(row * kColumns)]));
  }
  EXPECT_LT(largest, 60.0);  // rad/s
  EXPECT_GT(spread, 0.5);    // rad
}

TEST(TwoLinkArm, TheCsvHasAHeaderAndEveryRow) {
  const auto path = test::fresh_folder("arm") / "arm.csv";
  write_two_link_arm_csv(path, {.rows = 20});
  const std::string text = read_file(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_EQ(text.substr(0, 15), "shoulder_angle,");
  EXPECT_THROW(simulate_two_link_arm({.rows = 0}), Error);
}

}  // namespace
}  // namespace cohort::tasks
