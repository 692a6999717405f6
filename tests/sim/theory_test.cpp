// The batched engine against closed formulas.
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "sim/scene.h"

namespace cohort::sim {
namespace {

Scene& build(Scene& scene, const std::string& xml, int n = 1) {
  scene.add_entity(Mjcf{.file = "", .xml = xml});
  scene.build(n);
  return scene;
}

TEST(Theory, AProjectileFliesAParabola) {
  SceneOptions o;
  o.timestep = 0.001;
  Scene scene(o);
  build(scene, "<mujoco><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>");
  scene.set_qvel(std::vector<float>{3, 0, 5, 0, 0, 2});
  for (int i = 0; i < 1000; ++i) scene.step();
  const std::vector<float> x = scene.get_dofs_position();
  EXPECT_NEAR(x[0], 3, 1e-4);
  // Semi-implicit Euler lags the parabola by g h t / 2.
  EXPECT_NEAR(x[2], 5 - 0.5 * 9.81 - 0.5 * 9.81 * 0.001, 1e-4);
  EXPECT_NEAR(x[5], 2, 1e-4);
}

TEST(Theory, AContactCarriesTheWeight) {
  for (const char* cone : {"pyramidal", "elliptic"}) {
    SceneOptions o;
    o.cone = cone;
    Scene scene(o);
    build(scene,
          "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 0.0999'><joint name='z' type='slide' "
          "axis='0 0 1'/>"
          "<geom size='0.1' mass='2'/></body></worldbody></mujoco>");
    for (int i = 0; i < 2000; ++i) scene.step();
    // At rest the solver's stiffness holds m g: depth follows from aref = -K imp d and the regularization.
    EXPECT_NEAR(scene.get_dofs_velocity()[0], 0, 1e-5);
    const ArrayView acc = scene.view(Field::kQacc);
    EXPECT_NEAR(static_cast<float*>(acc.data)[0], 0, 1e-3) << cone;  // the contact's force is exactly the weight
  }
}

TEST(Theory, FrictionHoldsBelowTheConesAngleAndSlipsAboveIt) {
  // A box-like sled (slide joints, no rotation) on a floor; gravity tilted by the angle.
  const auto speed = [](double angle) {
    SceneOptions o;
    o.cone = "elliptic";
    o.gravity = {9.81 * std::sin(angle), 0, -9.81 * std::cos(angle)};
    Scene scene(o);
    build(scene,
          "<mujoco><option impratio='100'/><worldbody><geom type='plane' size='1 1 1' friction='0.5'/><body pos='0 0 "
          "0.1'><joint type='slide' axis='1 0 0'/>"
          "<joint type='slide' axis='0 0 1'/><geom size='0.1' friction='0.5'/></body></worldbody></mujoco>");
    for (int i = 0; i < 500; ++i) scene.step();
    return scene.get_dofs_velocity()[0];
  };
  const double limit = std::atan(0.5);
  EXPECT_LT(std::abs(speed(limit - 0.05)), 0.01);
  // Above, the acceleration is g (sin - mu cos), over one second.
  EXPECT_NEAR(speed(limit + 0.1), 9.81 * (std::sin(limit + 0.1) - 0.5 * std::cos(limit + 0.1)), 0.05);
}

TEST(Theory, RungeKuttaKeepsThePendulumsEnergyAndItsPeriod) {
  SceneOptions o;
  o.timestep = 0.005;
  o.integrator = "RK4";
  Scene scene(o);
  build(scene,
        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='0.001' pos='0 0 -1' "
        "mass='1'/></body></worldbody></mujoco>");
  scene.set_qpos(std::vector<float>{0.1f});
  int crossings = 0;
  float before = 0.1f;
  double first = 0, last = 0;
  for (int i = 0; i < 4000; ++i) {
    scene.step();
    const float q = scene.get_dofs_position()[0];
    if (before > 0 && q <= 0) {
      const double t = (i + before / (before - q)) * 0.005;
      if (crossings++ == 0) first = t;
      last = t;
    }
    before = q;
  }
  // T = 2 pi sqrt(l / g) (1 + theta^2 / 16 + ...)
  const double period = 2 * M_PI * std::sqrt(1 / 9.81) * (1 + 0.1 * 0.1 / 16);
  EXPECT_NEAR((last - first) / (crossings - 1), period, 1e-4);
  const float q = scene.get_dofs_position()[0], v = scene.get_dofs_velocity()[0];
  EXPECT_NEAR(0.5 * v * v + 9.81 * (1 - std::cos(q)), 9.81 * (1 - std::cos(0.1)), 1e-4);
}

TEST(Theory, MomentumOfFreeBodiesThatTouchIsConserved) {
  SceneOptions o;
  o.gravity = {0, 0, 0};
  Scene scene(o);
  build(scene,
        "<mujoco><worldbody><body><freejoint/><geom size='0.1' mass='1'/></body><body pos='0.5 0.03 0'><freejoint/>"
        "<geom size='0.1' mass='2'/></body></worldbody></mujoco>");
  std::vector<float> v(12, 0);
  v[0] = 2;
  scene.set_qvel(v);
  for (int i = 0; i < 500; ++i) scene.step();
  const std::vector<float> after = scene.get_dofs_velocity();
  EXPECT_GT(std::abs(after[6]), 0.5f) << "they never met";
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(after[static_cast<std::size_t>(k)] + 2 * after[static_cast<std::size_t>(6 + k)], k == 0 ? 2 : 0, 2e-5);
  }
}

TEST(Theory, ABallReboundsAsItsDampingRatioSays) {
  // A contact is a spring and damper: with a constant impedance the relative velocity after it is exp(-zeta pi / sqrt(1
  // - zeta^2)) of the one before, up to where it leaves, which the integration of the half wave answers below.
  const auto rebound = [](double zeta) {
    SceneOptions o;
    o.timestep = 1e-4;
    o.gravity = {0, 0, 0};
    Scene scene(o);
    build(scene, format("<mujoco><worldbody><geom type='plane' size='1 1 1' solref='0.02 {0}' solimp='0.9 0.9 0.01'/>"
                        "<body pos='0 0 0.2'><joint type='slide' axis='0 0 1'/><geom size='0.1' solref='0.02 {0}' "
                        "solimp='0.9 0.9 0.01' condim='1'/></body></worldbody></mujoco>",
                        zeta));
    scene.set_qvel(std::vector<float>{-1});
    for (int i = 0; i < 6000; ++i) scene.step();
    return static_cast<double>(scene.get_dofs_velocity()[0]);
  };
  // x'' = imp * (-b x' - k x / d) in MuJoCo's terms: constraint space accelerates with aref while the row is pressed,
  // and the free body gets the share imp of it. Integrated here on its own.
  const auto truth = [](double zeta) {
    const double imp = 0.9, time = 0.02, b = 2 / (imp * time), k = 1 / (imp * imp * time * time * zeta * zeta);
    double x = 0, v = -1;
    const double h = 1e-6;
    while (true) {
      const double a = imp * (-b * v - k * imp * x);
      if (a < 0) return v;  // it would pull
      v += h * a;
      x += h * v;
    }
  };
  for (double zeta : {0.1, 0.3, 0.6}) EXPECT_NEAR(rebound(zeta), truth(zeta), 0.02) << zeta;
  EXPECT_GT(rebound(0.1), 0.6);
}

TEST(Theory, AGearMultipliesForceAndDividesMotion) {
  // Two hinges with unit inertia, one coupled to the other at a ratio of three by an equality; a motor with a gear of
  // two.
  SceneOptions o;
  o.timestep = 0.0005;
  o.gravity = {0, 0, 0};
  Scene scene(o);
  build(scene,
        "<mujoco><worldbody><body><joint name='fast' axis='0 0 1'/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
        "</body><body><joint name='slow' axis='0 0 1'/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body>"
        "</worldbody><equality><joint joint1='fast' joint2='slow' polycoef='0 3 0 0 0' solref='0.002 1'/></equality>"
        "<actuator><motor joint='fast' gear='2'/></actuator></mujoco>");
  scene.set_ctrl(std::vector<float>{0.5f});
  for (int i = 0; i < 2000; ++i) scene.step();
  // Torque 1 at the fast one: (1 + 1 / 9) a = 1.
  const std::vector<float> v = scene.get_dofs_velocity();
  EXPECT_NEAR(v[0], 0.9, 2e-3);
  EXPECT_NEAR(v[1] * 3, v[0], 1e-3);
}

TEST(Theory, EnergyDriftsLeastWithTheHigherOrder) {
  // A double pendulum without losses: greatest change of its energy in two seconds.
  const auto drift = [](const char* integrator, double timestep) {
    SceneOptions o;
    o.timestep = timestep;
    o.integrator = integrator;
    Scene scene(o);
    build(scene,
          "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='0.001' pos='0 0 -1' mass='1'/><body pos='0 0 -1'>"
          "<joint axis='0 1 0'/><geom size='0.001' pos='0 0 -1' mass='1'/></body></body></worldbody></mujoco>");
    scene.set_qpos(std::vector<float>{1.0f, 0.5f});
    const auto energy = [&] {
      const std::vector<float> q = scene.get_dofs_position(), v = scene.get_dofs_velocity();
      const double a = q[0], b = q[0] + q[1], va = v[0], vb = v[0] + v[1];
      const double vx = va * std::cos(a) + vb * std::cos(b), vz = va * std::sin(a) + vb * std::sin(b);
      return 0.5 * va * va + 0.5 * (vx * vx + vz * vz) - 9.81 * (2 * std::cos(a) + std::cos(b));
    };
    const double before = energy();
    double most = 0;
    for (int i = 0; i < static_cast<int>(2 / timestep); ++i) {
      scene.step();
      most = std::max(most, std::abs(energy() - before));
    }
    return most;
  };
  const double euler = drift("Euler", 0.005), fast = drift("implicitfast", 0.005), fourth = drift("RK4", 0.005);
  EXPECT_LT(fourth, 0.01 * euler);
  EXPECT_LT(euler, 1.0);
  EXPECT_LT(fast, 1.0);
  // First order: half the timestep, half the drift.
  EXPECT_NEAR(drift("Euler", 0.0025) / euler, 0.5, 0.15);
}

TEST(Theory, AWeldCarriesTheWeightThatItsForceSensorReads) {
  SceneOptions o;
  Scene scene(o);
  build(scene,
        "<mujoco><worldbody><body pos='0 0 1'><joint type='slide' axis='1 0 0'/><geom size='0.1' mass='1'/>"
        "<body pos='0 0 -0.2'><site name='cell'/><geom size='0.05' mass='3'/></body></body></worldbody>"
        "<sensor><force name='load' site='cell'/><accelerometer name='imu' site='cell'/></sensor></mujoco>");
  const std::vector<float> load = scene.get_sensor("load"), imu = scene.get_sensor("imu");
  EXPECT_NEAR(load[2], 3 * 9.81, 1e-4);
  EXPECT_NEAR(imu[2], 9.81, 1e-5);
}

}  // namespace
}  // namespace cohort::sim
