// The batched engine on a CUDA device against the scalar CPU engine. The kernels are one source, without contraction,
// and use operations only that IEEE 754 rounds in one way: nothing but the same bits is right. In sim_host_cuda_test
// the device is made of the host's memory (host_cuda/cuda_runtime.h): the same source but for nvcc and what it makes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/message_of.h"
#include "sim/backends/cuda/engine.h"
#include "sim/backends/cuda/runner.h"
#include "sim/engine_plan.h"
#include "sim/host/compile.h"
#if defined(COHORT_GPU_TEAM)
#include "sim/host_cuda/host_cuda.h"
#endif
#include "sim/host/model.h"
#include "sim/host/scene.h"
#include "sim/models.h"

namespace cohort::sim {
namespace {

/// Boxes and capsules on each other: the narrow phases in double that a device computes too.
const char* const kCrates = R"(<mujoco model="crates"><option timestep="0.004"/><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.12"><freejoint/><geom type="box" size="0.2 0.15 0.1"/></body>
  <body pos="0.03 0.05 0.36"><freejoint/><geom type="box" size="0.15 0.2 0.1"/></body>
  <body pos="0.02 0 0.6"><freejoint/><geom type="capsule" size="0.05 0.15" euler="85 10 0"/></body>
  <body pos="-0.05 0.02 0.75"><freejoint/><geom type="box" size="0.06 0.06 0.06" euler="30 20 10"/></body>
  </worldbody></mujoco>)";

Mjcf model_of(const std::string& name) {
  if (name == "crates") return Mjcf{.file = "", .xml = kCrates};
  return Mjcf{kModels + name};
}

/// For equal bits of any model a CPU has to have the row space that the device takes by itself.
SceneOptions options_on(bool gpu, const std::string& model = "") {
  SceneOptions o;
  o.seed = 3;
  o.lanes = LaneWidth::kScalar;
  if (gpu) {
    o.device = {DeviceKind::kCuda, 0};
  } else if (!model.empty()) {
    const EntityDeclaration e{"model", model_of(model)};
    o.row_space = choose_row_space(import_model(compile_scene(std::span(&e, 1), {}, {}).mjb), -1, DeviceKind::kCuda);
  }
  return o;
}

/// One field of environments [0, n), row by row.
std::vector<float> values_of(Scene& scene, Field field, int n) {
  std::vector<float> all;
  const ArrayView v = scene.host_view(field);
  for (int e = 0; e < n; ++e) {
    for (std::int64_t i = 0; i < v.shape[1]; ++i) {
      all.push_back(static_cast<const float*>(v.data)[e * v.strides[0] + i * v.strides[1]]);
    }
  }
  return all;
}
std::int32_t status_of(Scene& scene, int env) {
  return static_cast<const std::int32_t*>(scene.host_view(Field::kStatus).data)[env];
}

std::vector<float> states(Scene& scene, int n) {
  std::vector<float> all;
  for (Field f : {Field::kQpos, Field::kQvel, Field::kAct, Field::kWarmstart, Field::kTime}) {
    const std::vector<float> some = values_of(scene, f, n);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class SimOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::available()) GTEST_SKIP() << "this build has no CUDA kernels";
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

class BitsOnGpu : public SimOnGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(BitsOnGpu, AreTheScalarEnginesForEveryBatchSize) {
#if defined(COHORT_GPU_TEAM)
  // The engine without teams is compared at more sizes.
  constexpr int kMost = 40, kSteps = 50, kSizes[] = {kMost};
#elif defined(COHORT_HOST_CUDA)
  // Three blocks, on a device of two workspaces.
  constexpr int kMost = 70, kSteps = 100, kSizes[] = {7, kMost};
#else
  constexpr int kMost = 100, kSteps = 200, kSizes[] = {1, 7, 32, 33, kMost};
#endif
  Scene truth(options_on(false, GetParam()));
  truth.add_entity(model_of(GetParam()));
  truth.build(kMost);
  for (int s = 0; s < kSteps; ++s) {
    truth.set_random_ctrl(s);
    truth.step();
  }
  float moved = 0;
  for (float v : values_of(truth, Field::kQvel, kMost)) {
    ASSERT_TRUE(std::isfinite(v));
    moved = std::max(moved, std::abs(v));
  }
  ASSERT_GT(moved, 0.0f) << "nothing moves: the comparison would say nothing";
  for (int n : kSizes) {
    Scene scene(options_on(true, GetParam()));
    scene.add_entity(model_of(GetParam()));
    scene.build(n);
    for (int s = 0; s < kSteps; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    EXPECT_TRUE(same_bits(states(scene, n), states(truth, n))) << n << " environments";
  }
}

TEST_P(BitsOnGpu, OfDerivedFieldsAreTheScalarEngines) {
  std::vector<float> result[2];
  for (bool gpu : {false, true}) {
    Scene scene(options_on(gpu, GetParam()));
    scene.add_entity(model_of(GetParam()));
    scene.build(5);
    for (int s = 0; s < 60; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    for (Field f : {Field::kQacc, Field::kLinkPos, Field::kLinkQuat, Field::kSensors}) {
      const std::vector<float> some = values_of(scene, f, 5);
      result[gpu ? 1 : 0].insert(result[gpu ? 1 : 0].end(), some.begin(), some.end());
    }
  }
  EXPECT_GT(result[0].size(), 0u);
  EXPECT_TRUE(same_bits(result[0], result[1]));
}

TEST_P(BitsOnGpu, OfWhatAStepLeavesAreTheScalarEngines) {
  const std::vector<Field> left = {Field::kLinkPos,        Field::kLinkQuat,     Field::kLinkCom,
                                   Field::kLinkInertia,    Field::kLinkVelocity, Field::kQfrcActuator,
                                   Field::kQfrcConstraint, Field::kLinkTwist,    Field::kGeomForce};
  std::vector<float> result[2];
  for (bool gpu : {false, true}) {
    SceneOptions options = options_on(gpu, GetParam());
    options.step_leaves = left;
    options.leave_present = GetParam() == std::string("walker.xml");
    if (GetParam() == std::string("walker.xml") || GetParam() == std::string("crates"))
      options.step_leaves.push_back(Field::kLinkForce);
    Scene scene(options);
    scene.add_entity(model_of(GetParam()));
    scene.build(5);
    for (int s = 0; s < 60; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    for (Field f : options.step_leaves) {
      const ArrayView v = scene.engine().host_view(f, Access::kRead);
      for (int e = 0; e < 5; ++e) {
        for (std::int64_t i = 0; i < v.shape[1]; ++i) {
          result[gpu ? 1 : 0].push_back(static_cast<const float*>(v.data)[e * v.strides[0] + i * v.strides[1]]);
        }
      }
    }
  }
  EXPECT_GT(result[0].size(), 0u);
  EXPECT_TRUE(same_bits(result[0], result[1]));
}

INSTANTIATE_TEST_SUITE_P(Models, BitsOnGpu,
                         ::testing::Values("walker.xml", "pile.xml", "arm.xml", "arm_plain.xml", "tendons.xml",
                                           "crates", "mixed.xml", "terrain.xml", "crowd.xml", "rubble.xml", "hills.xml",
                                           "grip.xml", "troop.xml", "trio.xml", "biped.xml"));

TEST_F(SimOnGpu, ALargeTreeHasTheScalarEnginesBitsForEveryRowSpaceThatIsGiven) {
  for (const int rows : {0, 24, 64}) {
    std::vector<float> result[2];
    for (const bool gpu : {false, true}) {
      SceneOptions o = options_on(gpu);
      o.row_space = rows;
      Scene scene(o);
      scene.add_entity(model_of("biped.xml"));
      scene.build(7);
      for (int s = 0; s < 60; ++s) {
        scene.set_random_ctrl(s);
        scene.step();
      }
      result[gpu ? 1 : 0] = states(scene, 7);
    }
    EXPECT_TRUE(same_bits(result[1], result[0])) << rows << " rows";
  }
}

#if defined(COHORT_GPU_TEAM)
TEST_F(SimOnGpu, TeamsOfThreadsSolveMostOfWhatIsSolvedInAccelerations) {
  const long long before = host_cuda::solved_by_teams();
  Scene scene(options_on(true));
  scene.add_entity(model_of("pile.xml"));
  scene.build(40);
  long long solved = 0;
  for (int s = 0; s < 60; ++s) {
    scene.step();
    const ArrayView used = scene.host_view(Field::kSolverIterations);
    for (int e = 0; e < 40; ++e) solved += static_cast<const std::int32_t*>(used.data)[e * used.strides[0]] > 0;
  }
  ASSERT_GT(solved, 0);
  EXPECT_GT(2 * (host_cuda::solved_by_teams() - before), solved);
}
#endif

TEST_F(SimOnGpu, ManyStepsInOneLaunchAreAsManyLaunches) {
  std::vector<float> result[2];
  for (int way = 0; way < 2; ++way) {
    Scene scene(options_on(true));
    scene.add_entity(model_of("walker.xml"));
    scene.build(70);
    scene.set_random_ctrl(0);
    Engine& engine = scene.engine();
    if (way == 0) {
      for (int s = 0; s < 60; ++s) engine.step(1);
    } else {
      engine.step(60);
    }
    engine.wait();
    result[way] = states(scene, 70);
  }
  ASSERT_GT(result[0].back(), 0.2f) << "time stands still";
  EXPECT_TRUE(same_bits(result[1], result[0]));
}

TEST_F(SimOnGpu, ABrokenEnvironmentKeepsItsStateAndLeavesItsNeighboursBitsAlone) {
  const auto run = [](float poison) {
    Scene scene(options_on(true));
    scene.add_entity(model_of("walker.xml"));
    scene.build(40);
    for (int s = 0; s < 100; ++s) {
      scene.set_random_ctrl(s);
      if (s == 50 && poison != 0) {
        scene.set_qvel(std::vector<float>(static_cast<std::size_t>(scene.info().nv), poison), {5});
      }
      scene.step();
    }
    EXPECT_EQ(status_of(scene, 5), poison != 0 ? kStatusBadState : kStatusOk);
    EXPECT_EQ(status_of(scene, 6), kStatusOk);
    if (poison != 0) {
      // Half of the hundred steps of 0.004 s.
      EXPECT_NEAR(values_of(scene, Field::kTime, 6)[5], 0.2f, 1e-3f);
      EXPECT_NEAR(values_of(scene, Field::kTime, 6)[4], 0.4f, 1e-3f);
      scene.reset({5});
      EXPECT_EQ(status_of(scene, 5), kStatusOk);
    }
    std::vector<float> others;
    for (Field f : {Field::kQpos, Field::kQvel}) {
      const std::vector<float> all = values_of(scene, f, 40);
      const std::size_t one = all.size() / 40;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i / one != 5) others.push_back(all[i]);
      }
    }
    return others;
  };
  const std::vector<float> truth = run(0);
  for (float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    EXPECT_TRUE(same_bits(run(poison), truth)) << poison;
  }
}

TEST_F(SimOnGpu, ParametersOfTheEnvironmentsGiveTheScalarEnginesBits) {
  std::vector<float> result[3];
  for (int way = 0; way < 3; ++way) {
    Scene scene(options_on(way > 0));
    scene.add_entity(model_of("walker.xml"));
    scene.build(40);
    if (way < 2) {
      scene.randomize_parameter(Parameter::kLinkMass, 0.8, 1.2);
      scene.randomize_parameter(Parameter::kGeomFriction, 0.5, 1.5);
      scene.randomize_parameter(Parameter::kDofDamping, 0.5, 1.5);
      scene.randomize_parameter(Parameter::kActuatorGain, 0.9, 1.1);
      for (const Parameter p :
           {Parameter::kLinkCom, Parameter::kLinkInertia, Parameter::kGravity, Parameter::kDofFrictionloss,
            Parameter::kJointStiffness, Parameter::kJointRange, Parameter::kActuatorForceRange}) {
        scene.randomize_parameter(p, 0.9, 1.1);
      }
    }
    for (int s = 0; s < 100; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    result[way] = states(scene, 40);
  }
  EXPECT_TRUE(same_bits(result[1], result[0]));
  EXPECT_FALSE(same_bits(result[2], result[0])) << "the parameters have no effect";
}

TEST_F(SimOnGpu, GeomsOfTheEnvironmentsOwnGiveTheScalarEnginesBits) {
  std::vector<float> result[3];
  for (int way = 0; way < 3; ++way) {
    Scene scene(options_on(way > 0));
    scene.add_entity(model_of("pile.xml"));
    scene.build(20);
    if (way < 2) {
      std::vector<std::int32_t> sizes;
      for (std::size_t g = 0; g < scene.info().geoms.size(); ++g)
        for (int i = 0; i < size_count(scene.info().geoms[g].type); ++i)
          sizes.push_back(3 * static_cast<std::int32_t>(g) + i);
      scene.randomize_parameter(Parameter::kGeomSize, 0.8, 1.2, {}, 0, Indices(sizes));
      std::vector<float> pos;
      for (int e = 0; e < scene.n_envs(); ++e)
        for (const float x : scene.engine().model_values(Parameter::kGeomPos))
          pos.push_back(x + 0.002f * static_cast<float>(e % 5));
      scene.set_parameter(Parameter::kGeomPos, pos);
    }
    for (int s = 0; s < 60; ++s) scene.step();
    result[way] = states(scene, 20);
  }
  EXPECT_TRUE(same_bits(result[1], result[0]));
  EXPECT_FALSE(same_bits(result[2], result[0])) << "the geoms have no effect";
}

TEST_F(SimOnGpu, ASavedStateContinuesWithTheSameBits) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_gpu_{}.state", static_cast<int>(getpid()));
  std::vector<float> result[2];
  for (int way = 0; way < 2; ++way) {
    Scene scene(options_on(true));
    scene.add_entity(model_of("pile.xml"));
    scene.build(33);
    if (way == 1) scene.load_state(path);
    for (int s = way == 0 ? 0 : 50; s < 100; ++s) {
      if (way == 0 && s == 50) scene.save_state(path);
      scene.step();
    }
    result[way] = states(scene, 33);
  }
  std::filesystem::remove(path);
  EXPECT_TRUE(same_bits(result[1], result[0]));
}

TEST_F(SimOnGpu, AViewIsMemoryOfTheDeviceOnTheEnginesStream) {
  Scene scene(options_on(true));
  scene.add_entity(model_of("walker.xml"));
  scene.build(5);
  const ArrayView v = scene.view(Field::kQpos);
  EXPECT_EQ(v.device.kind, DeviceKind::kCuda);
  EXPECT_NE(v.stream, nullptr);
  EXPECT_EQ(v.shape[0], 5);
  // What the host writes reaches that memory, also after its pointer was given away.
  std::vector<float> q;
  for (double x : scene.info().qpos0) q.push_back(static_cast<float>(x) + 0.25f);
  scene.set_qpos(q, {3});
  const ArrayView again = scene.view(Field::kQpos);
  EXPECT_EQ(again.data, v.data);
  std::vector<float> row(static_cast<std::size_t>(v.strides[1]));
  const char* why = cuda::download(0, v.stream, row.data(), again.data, row.size() * sizeof(float));
  ASSERT_EQ(why, nullptr) << why;
  EXPECT_EQ(row[3], q[0]);
  EXPECT_EQ(row[2], static_cast<float>(scene.info().qpos0[0]));
}

TEST_F(SimOnGpu, WhatDoesNotFitIsRefusedWithTheNumbersAndWhatIsNotComputedByItsName) {
  SceneOptions o = options_on(true);
  Scene many(o);
  many.add_entity(model_of("walker.xml"));
  const std::string memory = message_of([&] { many.build(2000000000); });
  EXPECT_NE(memory.find("2000000000"), std::string::npos) << memory;
  EXPECT_NE(memory.find("enough for"), std::string::npos) << memory;
  o.device.index = 99;
  Scene nowhere(o);
  nowhere.add_entity(model_of("walker.xml"));
  EXPECT_NE(message_of([&] { nowhere.build(4); }).find("cuda:99"), std::string::npos);
}

}  // namespace
}  // namespace cohort::sim
