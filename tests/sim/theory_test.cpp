// The batched engine against closed formulas.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "sim/host/scene.h"

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

TEST(Theory, APyramidHoldsLessBetweenItsEdgesThanAlongThem) {
  // The same sled, free to slide in both directions, on a slope that falls along `heading` (rad).
  const auto speed = [](double angle, double heading) {
    SceneOptions o;
    o.cone = "pyramidal";
    o.gravity = {9.81 * std::sin(angle) * std::cos(heading), 9.81 * std::sin(angle) * std::sin(heading),
                 -9.81 * std::cos(angle)};
    Scene scene(o);
    build(scene,
          "<mujoco><option impratio='100'/><worldbody><geom type='plane' size='1 1 1' friction='0.5'/><body pos='0 0 "
          "0.1'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/>"
          "<joint type='slide' axis='0 0 1'/><geom size='0.1' friction='0.5'/></body></worldbody></mujoco>");
    for (int i = 0; i < 500; ++i) scene.step();
    const std::vector<float> v = scene.get_dofs_velocity();
    return std::hypot(v[0], v[1]);
  };
  // Along an edge |f| <= mu n; halfway between two, f_x + f_y <= mu n.
  const double along = std::atan(0.5), between = std::atan(0.5 / std::sqrt(2.0)), half = std::atan(1.0);
  EXPECT_LT(speed(along - 0.05, 0), 0.01);
  EXPECT_NEAR(speed(along + 0.1, 0), 9.81 * (std::sin(along + 0.1) - 0.5 * std::cos(along + 0.1)), 0.05);
  EXPECT_LT(speed(between - 0.05, half), 0.01);
  EXPECT_NEAR(speed(between + 0.1, half),
              9.81 * (std::sin(between + 0.1) - 0.5 / std::sqrt(2.0) * std::cos(between + 0.1)), 0.05);
}

TEST(Theory, ADoublePendulumAcceleratesAsLagrangesEquationsSay) {
  // Points of 1.5 and 0.7 kg on rods of 0.8 and 0.6 m.
  constexpr double kUpper = 1.5, kLower = 0.7, kFirst = 0.8, kSecond = 0.6, kG = 9.81;
  Scene scene;
  build(scene,
        format("<mujoco><option gravity='0 0 -{}'/><worldbody><body><joint axis='0 1 0'/><geom size='0.001' pos='0 0 "
               "-{}' mass='{}'/><body pos='0 0 -{}'><joint axis='0 1 0'/><geom size='0.001' pos='0 0 -{}' "
               "mass='{}'/></body></body></worldbody></mujoco>",
               kG, kFirst, kUpper, kFirst, kSecond, kLower),
        64);
  std::vector<float> q, v;
  for (int e = 0; e < 64; ++e) {
    for (int i = 0; i < 2; ++i) {
      q.push_back(3 * std::sin(1.3f * static_cast<float>(2 * e + i)));
      v.push_back(4 * std::cos(0.7f * static_cast<float>(2 * e + i)));
    }
  }
  scene.set_qpos(q);
  scene.set_qvel(v);
  const ArrayView acc = scene.view(Field::kQacc);
  for (std::size_t e = 0; e < 64; ++e) {
    const double a = q[2 * e], b = q[2 * e + 1], va = v[2 * e], vb = v[2 * e + 1];
    const double mixed = kLower * kFirst * kSecond;
    const double m22 = kLower * kSecond * kSecond, m12 = m22 + mixed * std::cos(b),
                 m11 = (kUpper + kLower) * kFirst * kFirst + m22 + 2 * mixed * std::cos(b);
    const double below = kLower * kG * kSecond * std::sin(a + b);
    const double f1 = mixed * std::sin(b) * (2 * va * vb + vb * vb) - (kUpper + kLower) * kG * kFirst * std::sin(a) -
                      below,
                 f2 = -mixed * std::sin(b) * va * va - below;
    const double det = m11 * m22 - m12 * m12;
    const double truth[] = {(m22 * f1 - m12 * f2) / det, (m11 * f2 - m12 * f1) / det};
    for (std::int64_t i = 0; i < 2; ++i) {
      const float ours =
          static_cast<float*>(acc.data)[static_cast<std::int64_t>(e) * acc.strides[0] + i * acc.strides[1]];
      // Single precision; the spheres' own inertia is 4e-7 of the pendulum's.
      EXPECT_NEAR(ours, truth[i], 2e-5 * (10 + std::abs(truth[i]))) << e;
    }
  }
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

TEST(Theory, MomentaOfAFloatingChainDriftAsItsIntegratorsOrderSays) {
  // A free body with a ball joint and a hinge on it, whose motor works: inner forces change neither momentum.
  struct Drift {
    double linear, angular;  ///< kg m/s and kg m^2/s, largest in a second
  };
  const auto drift = [](const char* integrator, double timestep) {
    SceneOptions o;
    o.timestep = timestep;
    o.integrator = integrator;
    o.gravity = {0, 0, 0};
    Scene scene(o);
    build(scene,
          "<mujoco><worldbody><body name='trunk'><freejoint/><geom type='box' size='0.1 0.2 0.05' mass='2'/>"
          "<body pos='0.1 0.2 0'><joint type='ball'/><geom type='capsule' size='0.03 0.2' pos='0.1 0 0.2' mass='1'/>"
          "<body pos='0.1 0 0.4'><joint name='elbow' axis='0 1 0'/><geom type='capsule' size='0.03 0.2' pos='0 0 0.2' "
          "mass='0.5'/></body></body></body></worldbody><actuator><motor joint='elbow'/></actuator><sensor>"
          "<subtreelinvel name='p' body='trunk'/><subtreeangmom name='L' body='trunk'/></sensor></mujoco>");
    scene.set_qvel(std::vector<float>{0.5f, -0.3f, 0.2f, 1, -2, 0.5f, 2, 1, -1, 3});
    scene.set_ctrl(std::vector<float>{0.1f});
    const std::vector<float> p = scene.get_sensor("p"), L = scene.get_sensor("L");
    Drift most{0, 0};
    for (int i = 0; i < static_cast<int>(std::lround(1 / timestep)); ++i) {
      scene.step();
      const std::vector<float> now_p = scene.get_sensor("p"), now_L = scene.get_sensor("L");
      for (std::size_t k = 0; k < 3; ++k) {
        most.linear = std::max(most.linear, 3.5 * std::abs(static_cast<double>(now_p[k]) - p[k]));
        most.angular = std::max(most.angular, std::abs(static_cast<double>(now_L[k]) - L[k]));
      }
    }
    return most;
  };
  // Rounding of 250 steps.
  const Drift fourth = drift("RK4", 0.004);
  EXPECT_LT(fourth.linear, 2e-5);
  EXPECT_LT(fourth.angular, 2e-5);
  // First order: half the timestep, half the drift.
  for (const char* integrator : {"Euler", "implicitfast"}) {
    SCOPED_TRACE(integrator);
    const Drift whole = drift(integrator, 0.004), half = drift(integrator, 0.002);
    EXPECT_LT(whole.linear, 0.1);
    EXPECT_NEAR(half.linear / whole.linear, 0.5, 0.05);
    EXPECT_NEAR(half.angular / whole.angular, 0.5, 0.05);
  }
}

TEST(Theory, ABallReboundsAsItsDampingRatioSays) {
  // A contact is a spring and damper: with a constant impedance the relative velocity after it is
  // exp(-zeta pi / sqrt(1 - zeta^2)) of the one before, up to where it leaves, which the integration of the half wave
  // answers below.
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
