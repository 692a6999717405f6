// Kinematics beside MuJoCo's mj_forward, mj_jac and mj_fullM.
#include "sim/host/kinematics.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "oracle.h"
#include "random_model.h"
#include "random_state.h"
#include "sim/host/scene.h"
#include "xml_tree.h"

namespace cohort::sim {
namespace {

/// The same formulas, in doubles, in another order.
constexpr double kClose = 1e-9;

std::vector<double> columns(const std::vector<double>& linear, const std::vector<double>& angular,
                            std::span<const int> dofs, std::size_t nv) {
  std::vector<double> rows;
  for (const std::vector<double>* part : {&linear, &angular})
    for (std::size_t i = 0; i < 3; ++i)
      for (const int dof : dofs) rows.push_back((*part)[i * nv + static_cast<std::size_t>(dof)]);
  return rows;
}

TEST(Kinematics, PosesJacobiansInertiaAndBiasAreMujocosOfRandomModels) {
  int models = 0, sites = 0, biases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::vector<std::uint8_t> mjb;
    try {
      mjb = test::compile_xml(test::to_xml(test::random_model(seed)));
    } catch (const Error&) {
      continue;
    }
    const mj::ModelPtr model = mj::load(mjb);
    const mjModel& m = *model;
    if (m.nv == 0 || m.nmocap > 0) continue;
    SCOPED_TRACE(seed);
    ++models;
    const mj::DataPtr data(mj_makeData(&m));
    mjData& d = *data;
    const Kinematics kinematics(mjb);
    const bool tendons_weigh =
        std::any_of(m.tendon_armature, m.tendon_armature + m.ntendon, [](mjtNum a) { return a > 0; });
    biases += tendons_weigh ? 0 : 1;
    const auto nv = static_cast<std::size_t>(m.nv);
    std::vector<int> all(nv), some;  // in falling order, every other one
    std::iota(all.begin(), all.end(), 0);
    for (int i = m.nv - 1; i >= 0; i -= 2) some.push_back(i);
    for (int state = 0; state < 3; ++state) {
      test::random_state(m, seed, state, d);
      mj_forward(&m, &d);
      const std::vector<double> qpos(d.qpos, d.qpos + m.nq), qvel(d.qvel, d.qvel + m.nv);
      Kinematics::Posture posture = kinematics.at(qpos);
      std::vector<double> linear(3 * nv), angular(3 * nv), full(nv * nv);
      for (const std::vector<int>& dofs : {all, some}) {
        const std::size_t n = dofs.size();
        std::vector<double> jacobian(6 * n, 9), mass(n * n, 9), bias(n, 9), expected_mass, expected_bias;
        for (int b = 0; b < m.nbody; ++b) {
          const Kinematics::Pose pose = posture.link_pose(b);
          test::expect_near(test::take(pose.pos.data(), 3), test::take(d.xpos + 3 * b, 3), kClose,
                            "position of a link");
          test::expect_near(test::take(pose.quat.data(), 4), test::take(d.xquat + 4 * b, 4), kClose,
                            "quaternion of a link");
          test::expect_near(test::take(pose.rot.data(), 9), test::take(d.xmat + 9 * b, 9), kClose,
                            "rotation of a link");
          posture.link_jacobian(b, dofs, jacobian);
          mj_jacBody(&m, &d, linear.data(), angular.data(), b);
          test::expect_near(jacobian, columns(linear, angular, dofs, nv), kClose, "Jacobian of a link");
        }
        for (int s = 0; s < m.nsite; ++s, ++sites) {
          const Kinematics::Pose pose = posture.site_pose(s);
          test::expect_near(test::take(pose.pos.data(), 3), test::take(d.site_xpos + 3 * s, 3), kClose,
                            "position of a site");
          test::expect_near(test::take(pose.rot.data(), 9), test::take(d.site_xmat + 9 * s, 9), kClose,
                            "rotation of a site");
          posture.site_jacobian(s, dofs, jacobian);
          mj_jacSite(&m, &d, linear.data(), angular.data(), s);
          test::expect_near(jacobian, columns(linear, angular, dofs, nv), kClose, "Jacobian of a site");
        }
        posture.mass_matrix(dofs, mass);
        posture.bias(qvel, dofs, bias);
        mj_fullM(&m, &d, full.data());
        for (const int i : dofs) {
          expected_bias.push_back(d.qfrc_bias[i]);
          for (const int j : dofs)
            expected_mass.push_back(full[static_cast<std::size_t>(i) * nv + static_cast<std::size_t>(j)]);
        }
        test::expect_near(mass, expected_mass, kClose, "inertia");
        if (!tendons_weigh) test::expect_near(bias, expected_bias, kClose, "bias");
      }
    }
  }
  EXPECT_GT(models, 30);
  EXPECT_GT(sites, 100);
  EXPECT_GT(biases, 20);
}

/// Of a scene's link, in the scene's state; single precision through chains of up to eight joints.
TEST(Kinematics, AScenesJacobiansAreMujocosOnBothEngines) {
  constexpr double kSingle = 5e-6;
  int models = 0;
  for (const EngineKind kind : {EngineKind::kBatched, EngineKind::kMujoco}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const std::string xml = test::to_xml(
          test::random_model(seed, {.searched = false, .equalities = false, .tendons = false, .fluid = false}));
      SceneOptions options;
      options.engine = kind;
      Scene scene(options);
      scene.add_entity(Mjcf{.file = "", .xml = xml}, "model");
      try {
        scene.build(3);
      } catch (const Error&) {
        continue;
      }
      const mj::ModelPtr model = mj::load(scene.binary_model());
      const mjModel& m = *model;
      if (m.nv == 0 || m.nmocap > 0) continue;
      SCOPED_TRACE(seed);
      ++models;
      const mj::DataPtr data(mj_makeData(&m));
      mjData& d = *data;
      const auto nv = static_cast<std::size_t>(m.nv), nbody = static_cast<std::size_t>(m.nbody);
      for (int env = 0; env < 3; ++env) {
        test::random_state(m, seed, env, d);
        scene.set_qpos(std::vector<float>(d.qpos, d.qpos + m.nq), {env});
      }
      const std::vector<float> jacobians = scene.get_links_jacobian({}, {2, 0});
      ASSERT_EQ(jacobians.size(), 2 * nbody * 6 * nv);
      std::vector<int> all(nv);
      std::iota(all.begin(), all.end(), 0);
      for (std::size_t row = 0; row < 2; ++row) {
        test::random_state(m, seed, row == 0 ? 2 : 0, d);
        mj_forward(&m, &d);
        std::vector<double> linear(3 * nv), angular(3 * nv);
        for (std::size_t b = 0; b < nbody; ++b) {
          mj_jacBody(&m, &d, linear.data(), angular.data(), static_cast<int>(b));
          const float* from = jacobians.data() + (row * nbody + b) * 6 * nv;
          test::expect_near(test::take(from, static_cast<mjtSize>(6 * nv)), columns(linear, angular, all, nv), kSingle,
                            "Jacobian of a link");
        }
      }
    }
  }
  EXPECT_GT(models, 12);
}

constexpr const char* kTwoHinges = R"(<mujoco><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom size="0.1"/>
    <body name="b" pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size="0.1"/><site name="tip" pos="1 0 0"/></body>
  </body></worldbody></mujoco>)";

TEST(Kinematics, ThreadsAskAtOnceAndGetWhatOneGets) {
  const Kinematics kinematics(test::compile_xml(kTwoHinges));
  const int tip = kinematics.site("tip");
  const auto height = [&](double a, double b) { return kinematics.at(std::array{a, b}).site_pose(tip).pos[2]; };
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 2000; ++k) {
        const double a = 0.001 * k + static_cast<double>(t), b = 0.002 * k;
        if (std::abs(height(a, b) + std::sin(a) + std::sin(a + b)) > 1e-12) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

TEST(Kinematics, ASiteThatIsNotThereIsRefusedWithTheNearestName) {
  const Kinematics kinematics(test::compile_xml(kTwoHinges));
  const std::string message = message_of([&] { kinematics.site("tpi"); });
  EXPECT_NE(message.find("no site `tpi`"), std::string::npos) << message;
  EXPECT_NE(message.find("is `tip` meant?"), std::string::npos) << message;
}

}  // namespace
}  // namespace cohort::sim
