// Kinematics and dynamics of the controllers beside MuJoCo's, and inverse kinematics.
#include <cmath>

#include <gtest/gtest.h>

#include "core/philox.h"
#include "sim/compile.h"
#include "sim/mujoco/handle.h"
#include "tasks/controllers/differential_ik.h"
#include "tasks/controllers/operational_space.h"
#include "tasks/suite/arm_model.h"

namespace cohort::tasks {
namespace {

std::vector<std::uint8_t> compiled(const std::string& xml) {
  const sim::EntityDeclaration model{"model", sim::Mjcf{.file = "", .xml = xml}};
  return sim::compile_scene(std::span(&model, 1), {}, {}).mjb;
}

// Two hinges on one body, a slide, a welded body, anchors off the origin, a turned base, a branch.
constexpr const char* kOddTree = R"(
<mujoco><compiler angle="radian"/><option gravity="1 -2 -9"/>
 <worldbody>
  <body name="stand" pos="0.1 0.2 0.3" quat="0.9 0.1 -0.2 0.3">
   <geom size="0.1" contype="0" conaffinity="0"/>
   <body name="root" pos="0.2 0 0.1" quat="0.8 0.3 0.1 0.2">
    <joint name="a" axis="0.3 1 0.2" pos="0.05 0.02 -0.03" armature="0.02"/>
    <joint name="b" axis="1 0 0.4" pos="-0.02 0.1 0" ref="0.3"/>
    <geom type="box" size="0.1 0.05 0.2" pos="0.02 0.1 0.1" euler="0.3 0.2 0.5" contype="0" conaffinity="0"/>
    <body pos="0 0.1 0.3" euler="0.4 0.5 0.6">
     <geom type="capsule" size="0.03 0.1" contype="0" conaffinity="0"/>
     <body name="c" pos="0.1 0 0.2">
      <joint name="c" type="slide" axis="0.5 0.5 1" ref="0.1"/>
      <geom type="box" size="0.1 0.1 0.02" pos="0 0.1 0" contype="0" conaffinity="0"/>
      <site name="tip" pos="0.1 0.2 0.05" euler="0.2 0.1 0.7"/>
     </body>
    </body>
    <body name="d" pos="-0.1 -0.2 0.2"><joint name="d" axis="0 0 1"/>
     <geom size="0.05" pos="0.2 0 0" contype="0" conaffinity="0"/></body>
   </body>
  </body>
  <body pos="2 0 0"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/></body>
 </worldbody>
</mujoco>)";

void expect_as_mujoco(const std::string& xml, const std::string& root, const std::string& site, int draws) {
  namespace mj = sim::mj;
  const std::vector<std::uint8_t> mjb = compiled(xml);
  const mj::ModelPtr model = mj::load(mjb);
  const mj::DataPtr data(mj::mj_makeData(model.get()));
  const mjModel& m = *model;
  const RobotTree tree(mjb, root);
  RobotTree::Workspace w(tree);
  const auto n = static_cast<std::size_t>(tree.dofs()), nv = static_cast<std::size_t>(m.nv);
  int site_id = -1;
  for (int s = 0; s < m.nsite; ++s)
    if (site == m.names + m.name_siteadr[s]) site_id = s;
  ASSERT_GE(site_id, 0);
  for (int draw = 0; draw < draws; ++draw) {
    const RandomStream random(5, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(draw));
    std::uint64_t next = 0;
    for (int j = 0; j < m.njnt; ++j)
      if (m.jnt_type[j] == mjJNT_HINGE || m.jnt_type[j] == mjJNT_SLIDE)
        data->qpos[m.jnt_qposadr[j]] = 2.0 * static_cast<double>(random.uniform(next++)) - 1.0;
    for (std::size_t i = 0; i < nv; ++i) data->qvel[i] = static_cast<double>(random.normal(next++));
    mj::mj_forward(&m, data.get());
    tree.place({data->qpos, static_cast<std::size_t>(m.nq)}, w);
    constexpr double kClose = 1e-11;  // doubles; the same formulas in another order
    const RobotTree::SitePose pose = tree.site_pose(w, tree.site(site));
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(pose.pos[i], data->site_xpos[3 * site_id + static_cast<int>(i)], kClose);
    for (std::size_t i = 0; i < 9; ++i)
      EXPECT_NEAR(pose.rot[i], data->site_xmat[9 * site_id + static_cast<int>(i)], kClose);
    std::vector<double> jacobian(6 * n), mass(n * n), bias(n), linear(3 * nv), angular(3 * nv), full(nv * nv);
    tree.jacobian(w, tree.site(site), jacobian);
    tree.mass_matrix(w, mass);
    tree.bias(w, {data->qvel, nv}, bias);
    mj::mj_jacSite(&m, data.get(), linear.data(), angular.data(), site_id);
    mj::mj_fullM(&m, data.get(), full.data());
    for (std::size_t j = 0; j < n; ++j) {
      const auto dof = static_cast<std::size_t>(tree.dof_addresses()[j]);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(jacobian[i * n + j], linear[i * nv + dof], kClose);
        EXPECT_NEAR(jacobian[(3 + i) * n + j], angular[i * nv + dof], kClose);
      }
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(mass[i * n + j], full[static_cast<std::size_t>(tree.dof_addresses()[i]) * nv + dof], kClose);
      EXPECT_NEAR(bias[j], data->qfrc_bias[dof], 1e-9);
    }
  }
}

TEST(RobotTree, PosesJacobianMassMatrixAndBiasAreMujocosOfTheSuitesArm) {
  expect_as_mujoco(arm_mjcf({.name = "arm", .bodies = cube_mjcf("cube", "red", 0.02)}), "base", "grip", 10);
}

TEST(RobotTree, AndOfATreeWithEveryOddity) {
  expect_as_mujoco(kOddTree, "root", "tip", 10);
}

TEST(RobotTree, WhatItCannotDoIsRefusedByName) {
  const std::vector<std::uint8_t> mjb = compiled(kOddTree);
  EXPECT_THROW(RobotTree(mjb, "rot"), Error);
  EXPECT_THROW(RobotTree(mjb, "d"), Error);  // borne by what moves
  const RobotTree tree(mjb, "root");
  EXPECT_THROW(tree.site("tpi"), Error);
}

TEST(DifferentialIk, TheSiteMovesAsAsked) {
  const std::vector<std::uint8_t> mjb = compiled(arm_mjcf({.name = "arm", .bodies = ""}));
  const RobotTree tree(mjb, "base");
  RobotTree::Workspace w(tree);
  const int grip = tree.site("grip");
  const auto n = static_cast<std::size_t>(tree.dofs());
  std::vector<double> qpos(n), jacobian(6 * n);
  const std::array<double, 7> rest = arm_posture(0.5, 0.2);
  std::copy(rest.begin(), rest.end(), qpos.begin());
  tree.place(qpos, w);
  const RobotTree::SitePose before = tree.site_pose(w, grip);
  EXPECT_NEAR(before.pos[0], 0.5, 1e-9);
  EXPECT_NEAR(before.pos[2], 0.2, 1e-9);
  EXPECT_NEAR(before.rot[8], -1, 1e-9) << "the hand points down";
  for (std::size_t axis = 0; axis < 6; ++axis) {
    std::array<double, 6> error{};
    error[axis] = axis < 3 ? 0.02 : 0.1;
    std::array<double, 7> change{}, posture{};
    std::copy(rest.begin(), rest.end(), qpos.begin());
    tree.place(qpos, w);
    tree.jacobian(w, grip, jacobian);
    differential_ik({.damping = 0.01, .posture = 0.1, .most_turn = 1}, jacobian, tree.dofs(), 7, error, posture,
                    change);
    for (std::size_t i = 0; i < 7; ++i) qpos[i] += change[i];
    tree.place(qpos, w);
    const RobotTree::SitePose after = tree.site_pose(w, grip);
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
