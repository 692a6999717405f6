// Inverse kinematics of the suite's arm.
#include "tasks/controllers/differential_ik.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/philox.h"
#include "sim/host/compile.h"
#include "sim/host/kinematics.h"
#include "tasks/controllers/operational_space.h"
#include "tasks/suite/arm_model.h"

namespace cohort::tasks {
namespace {

std::vector<std::uint8_t> compiled(const std::string& xml) {
  const sim::EntityDeclaration model{"model", sim::Mjcf{.file = "", .xml = xml}};
  return sim::compile_scene(std::span(&model, 1), {}, {}).mjb;
}

TEST(DifferentialIk, TheSiteMovesAsAsked) {
  const std::vector<std::uint8_t> mjb = compiled(arm_mjcf({.name = "arm", .bodies = ""}));
  const sim::Kinematics kinematics(mjb);
  const int grip = kinematics.site("grip");
  constexpr std::array<int, 7> kDofs{0, 1, 2, 3, 4, 5, 6};
  std::vector<double> qpos(9), jacobian(6 * 7);
  const std::array<double, 7> rest = arm_posture(0.5, 0.2);
  std::copy(rest.begin(), rest.end(), qpos.begin());
  const sim::Kinematics::Pose before = kinematics.at(qpos).site_pose(grip);
  EXPECT_NEAR(before.pos[0], 0.5, 1e-9);
  EXPECT_NEAR(before.pos[2], 0.2, 1e-9);
  EXPECT_NEAR(before.rot[8], -1, 1e-9) << "the hand points down";
  for (std::size_t axis = 0; axis < 6; ++axis) {
    std::array<double, 6> error{};
    error[axis] = axis < 3 ? 0.02 : 0.1;
    std::array<double, 7> change{}, posture{};
    std::copy(rest.begin(), rest.end(), qpos.begin());
    kinematics.at(qpos).site_jacobian(grip, kDofs, jacobian);
    differential_ik({.damping = 0.01, .posture = 0.1, .most_turn = 1}, jacobian, 7, 7, error, posture, change);
    for (std::size_t i = 0; i < 7; ++i) qpos[i] += change[i];
    const sim::Kinematics::Pose after = kinematics.at(qpos).site_pose(grip);
    const Vec3 moved = after.pos - before.pos, turned = rotation_vector(after.rot * transpose(before.rot));
    const double left[6] = {moved[0], moved[1], moved[2], turned[0], turned[1], turned[2]};
    // One step of the linear map: what is left is of second order in its size.
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(left[i], error[i], i < 3 ? 0.002 : 0.01) << axis << " " << i;
  }
}

TEST(DifferentialIk, NoStepIsLargerThanAsked) {
  const std::array<double, 42> jacobian{};  // no joint moves anything
  const std::array<double, 6> error{1, 1, 1, 0, 0, 0};
  std::array<double, 7> change{}, posture{9, 0, 0, 0, 0, 0, -3};
  differential_ik({.damping = 0.01, .posture = 1, .most_turn = 0.3}, jacobian, 7, 7, error, posture, change);
  EXPECT_DOUBLE_EQ(change[0], 0.3);
  EXPECT_DOUBLE_EQ(change[6], -0.1);
}

TEST(DifferentialIk, InverseTimesMatrixIsOne) {
  std::array<double, 36> a, inverse;
  const RandomStream random(1, RandomPurpose::kTest, 1, 0);
  for (std::size_t i = 0; i < 36; ++i) inverse[i] = a[i] = static_cast<double>(random.normal(i));
  ASSERT_TRUE(invert(inverse, 6));
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 6; ++k) sum += a[i * 6 + k] * inverse[k * 6 + j];
      EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-12);
    }
  }
  std::array<double, 4> singular{1, 2, 2, 4};
  EXPECT_FALSE(invert(singular, 2));
}

}  // namespace
}  // namespace cohort::tasks
