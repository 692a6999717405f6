// Free runs: how fast the batched engine's state leaves MuJoCo's, beside how fast MuJoCo's own leaves itself when its
// state is rounded to single precision after every step, which is the least that a simulation in single precision does.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/philox.h"
#include "sim/host/scene.h"

namespace cohort::sim {
namespace {

constexpr int kEnvironments = 12;
/// Our steps round in every operation, not only at their end: a few times what the end alone does. In a chaotic system
/// both grow at the same rate, so that the ratio stays.
constexpr double kMultiple = 12;
/// Where nothing amplifies errors, the rounding of a step's own arithmetic, per step (relative to the largest
/// coordinate).
constexpr double kPerStep = 2e-7;

struct System {
  const char* name;
  std::string file, xml;
  double moves;  ///< least median distance that the run covers, so that the test has something to compare
};

std::vector<System> systems() {
  const std::string models = COHORT_SOURCE_DIR "/tests/sim/models/";
  return {
      {"double pendulum", "",
       "<mujoco><option timestep='0.002' integrator='RK4'/><worldbody><body pos='0 0 1' euler='0 120 0'><joint axis='0 "
       "1 "
       "0'/>"
       "<geom type='capsule' size='0.03 0.2' pos='0 0 -0.2'/><body pos='0 0 -0.4'><joint axis='0 1 0'/>"
       "<geom type='capsule' size='0.03 0.2' pos='0 0 -0.2'/></body></body></worldbody></mujoco>",
       0.5},
      {"tumbling body and a chain of balls", "",
       "<mujoco><option timestep='0.002' integrator='implicitfast' gravity='0 0 -1'/><worldbody><body><freejoint/>"
       "<geom type='box' size='0.1 0.2 0.3'/></body><body pos='1 0 0'><joint type='ball' damping='0.01'/>"
       "<geom type='capsule' size='0.05 0.2' pos='0 0 -0.2'/><body pos='0 0 -0.4'><joint type='ball' damping='0.01'/>"
       "<geom type='capsule' size='0.05 0.2' pos='0 0 -0.2'/></body></body></worldbody></mujoco>",
       0.5},
      {"spatial tendons, limits, friction loss, equality", models + "tendons.xml", "", 0.3},
      {"four-legged walker on a floor", models + "walker.xml", "", 0.3},
      {"biped on a floor", models + "biped.xml", "", 0.3},
      {"arm with servos", models + "arm_plain.xml", "", 0.1},
  };
}

class FreeRun {
 public:
  FreeRun(const System& system, EngineKind engine) : scene_(SceneOptions{.engine = engine, .seed = 5}) {
    scene_.add_entity(Mjcf{system.file, system.xml}, "model");
    scene_.build(kEnvironments);
    std::vector<float> velocity;
    for (int e = 0; e < kEnvironments; ++e) {
      const RandomStream random(9, RandomPurpose::kTest, static_cast<std::uint64_t>(e), 0);
      for (int d = 0; d < scene_.info().nv; ++d)
        velocity.push_back(0.5f * random.normal(static_cast<std::uint64_t>(d)));
    }
    scene_.set_qvel(velocity);
  }
  void step(int s) {
    scene_.set_random_ctrl(s / 20);
    scene_.step();
  }
  /// What a state in single precision loses.
  void round() {
    for (Field field : {Field::kQpos, Field::kQvel, Field::kAct}) {
      const ArrayView v = scene_.view(field);
      for (int e = 0; e < kEnvironments; ++e) {
        for (std::int64_t i = 0; i < v.shape[1]; ++i) {
          double& x = static_cast<double*>(v.data)[e * v.strides[0] + i * v.strides[1]];
          x = static_cast<double>(static_cast<float>(x));
        }
      }
    }
  }
  std::vector<double> positions() {
    const ArrayView v = scene_.view(Field::kQpos);
    std::vector<double> values;
    for (int e = 0; e < kEnvironments; ++e) {
      for (std::int64_t i = 0; i < v.shape[1]; ++i) {
        const std::int64_t at = e * v.strides[0] + i * v.strides[1];
        values.push_back(v.type == ElementType::kFloat64 ? static_cast<const double*>(v.data)[at]
                                                         : static_cast<double>(static_cast<const float*>(v.data)[at]));
      }
    }
    return values;
  }

 private:
  Scene scene_;
};

/// Median over the environments of the largest difference, relative to the largest coordinate where that is above 1.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  const std::size_t n = a.size() / kEnvironments;
  std::vector<double> each;
  for (std::size_t e = 0; e < kEnvironments; ++e) {
    double most = 0, scale = 1;
    for (std::size_t i = e * n; i < (e + 1) * n; ++i) {
      most = std::max(most, std::abs(a[i] - b[i]));
      scale = std::max(scale, std::abs(b[i]));
    }
    each.push_back(most / scale);
  }
  std::nth_element(each.begin(), each.begin() + kEnvironments / 2, each.end());
  return each[kEnvironments / 2];
}

class Growth : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Growth, LeavesMujocoNoFasterThanAFewTimesMujocosOwnRounding) {
  const System system = systems()[GetParam()];
  SCOPED_TRACE(system.name);
  FreeRun ours(system, EngineKind::kBatched), theirs(system, EngineKind::kMujoco), rounded(system, EngineKind::kMujoco);
  const std::vector<double> start = theirs.positions();
  for (int s = 1; s <= 1000; ++s) {
    ours.step(s);
    theirs.step(s);
    rounded.step(s);
    rounded.round();
    if (s != 1 && s != 10 && s != 100 && s != 300 && s != 1000) continue;
    const std::vector<double> truth = theirs.positions();
    const double error = distance(ours.positions(), truth), own = distance(rounded.positions(), truth);
    RecordProperty("step_" + std::to_string(s), std::to_string(error) + " beside " + std::to_string(own));
    EXPECT_LE(error, kMultiple * own + kPerStep * s) << "after " << s << " steps MuJoCo's own is " << own;
    if (s == 1000) {
      EXPECT_GE(distance(start, truth), system.moves) << "the system hardly moves";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, Growth, ::testing::Range(std::size_t{0}, systems().size()));

}  // namespace
}  // namespace cohort::sim
