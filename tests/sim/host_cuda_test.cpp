// The batched engine on devices that are made of the host's memory (host_cuda/cuda_runtime.h): what a machine with one
// GPU, or none, cannot show. gpu_test.cpp and the tests of the scene's interface run on them as well.
#include "sim/host_cuda/host_cuda.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "sim/backends/cuda/engine.h"
#include "sim/backends/cuda/runner.h"
#include "sim/engine_plan.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/host/scene.h"
#include "sim/host_cuda/cuda_runtime.h"
#include "sim/models.h"

namespace cohort::sim {
namespace {

std::unique_ptr<Scene> scene_on(int device, const std::string& model = "walker.xml") {
  SceneOptions o;
  o.seed = 3;
  o.device = {DeviceKind::kCuda, device};
  auto scene = std::make_unique<Scene>(o);
  scene->add_entity(Mjcf{kModels + model});
  return scene;
}

std::vector<float> state_of(Scene& scene) {
  std::vector<float> all;
  for (Field f : {Field::kQpos, Field::kQvel, Field::kTime}) {
    const ArrayView v = scene.host_view(f);
    for (std::int64_t e = 0; e < v.shape[0]; ++e) {
      for (std::int64_t i = 0; i < v.shape[1]; ++i) {
        all.push_back(static_cast<const float*>(v.data)[e * v.strides[0] + i * v.strides[1]]);
      }
    }
  }
  return all;
}

void steps(Scene& scene, int from, int to) {
  for (int s = from; s < to; ++s) {
    scene.set_random_ctrl(s);
    scene.step();
  }
}

/// What is held of a device.
std::vector<int> held(int device) {
  const host_cuda::Counts c = host_cuda::counts(device);
  return {c.allocations, c.streams, c.graphs};
}

TEST(SimOnDevices, ASceneTakesItsDeviceOnlyLeavesTheCallersAndGivesAllBack) {
  int current = -1;
  cudaGetDevice(&current);
  ASSERT_EQ(current, 0);
  const std::vector<int> before[] = {held(0), held(1)};
  const int launches = host_cuda::counts(0).launches;
  {
    const auto scene = scene_on(1);
    scene->build(40);
    steps(*scene, 0, 10);
    scene->reset({3, 3, 39});
    scene->forward();
    state_of(*scene);
    scene->view(Field::kQpos);
    scene->randomize_parameter(Parameter::kLinkMass, 0.8, 1.2);
    scene->engine().step(2);
    scene->engine().wait();
    EXPECT_GT(held(1)[0], before[1][0]);
    EXPECT_EQ(held(1)[1], before[1][1] + 1);
    EXPECT_EQ(held(0)[0], before[0][0]);
    cudaGetDevice(&current);
    EXPECT_EQ(current, 0);
  }
  EXPECT_EQ(held(1), before[1]);
  EXPECT_EQ(host_cuda::counts(0).launches, launches);
  EXPECT_GE(host_cuda::counts(1).launches, 14);
  EXPECT_EQ(host_cuda::counts(0).default_stream, 0);
}

TEST(SimOnDevices, ScenesOnTwoDevicesTakeTurnsWithTheSameBits) {
  const auto alone = scene_on(0);
  alone->build(33);
  steps(*alone, 0, 20);
  const std::vector<float> truth = state_of(*alone);
  const auto first = scene_on(0), second = scene_on(1);
  first->build(33);
  second->build(33);
  for (int s = 0; s < 20; ++s) {
    steps(*first, s, s + 1);
    steps(*second, s, s + 1);
  }
  EXPECT_TRUE(same_bits(state_of(*first), truth));
  EXPECT_TRUE(same_bits(state_of(*second), truth));
}

TEST(SimOnDevices, AnyAllocationThatFailsIsAnErrorThatNamesTheDeviceAndNothingIsKept) {
  const std::vector<int> before = held(1);
  int failures = 0;
  for (bool built = false; !built; ++failures) {
    const auto scene = scene_on(1, "mixed.xml");
    host_cuda::fail_allocation_after(failures);
    std::string why;
    try {
      scene->build(40);
      built = true;
    } catch (const std::exception& e) {
      why = e.what();
    }
    host_cuda::fail_allocation_after(-1);
    if (built) {
      steps(*scene, 0, 2);
      EXPECT_FLOAT_EQ(state_of(*scene).back(), 2 * static_cast<float>(scene->info().timestep));
      break;
    }
    ASSERT_LT(failures, 100);
    EXPECT_NE(why.find("cuda:1"), std::string::npos) << why;
    EXPECT_NE(why.find("out of memory"), std::string::npos) << why;
  }
  EXPECT_GT(failures, 10);
  EXPECT_EQ(held(1), before);
}

TEST(SimOnDevices, AnAllocationThatFailsLaterLeavesTheSceneAsItWas) {
  const auto truth = scene_on(1), scene = scene_on(1);
  for (Scene* s : {truth.get(), scene.get()}) {
    s->build(40);
    steps(*s, 0, 10);
  }
  host_cuda::fail_allocation_after(0);
  EXPECT_NE(message_of([&] { state_of(*scene); }).find("cuda:1"), std::string::npos);
  host_cuda::fail_allocation_after(-1);
  EXPECT_TRUE(same_bits(state_of(*scene), state_of(*truth)));
  for (Scene* s : {truth.get(), scene.get()}) steps(*s, 10, 20);
  EXPECT_TRUE(same_bits(state_of(*scene), state_of(*truth)));
}

TEST(SimOnDevices, RandomControlsAreTheHosts) {
  std::vector<float> drawn[2];
  for (const bool device : {false, true}) {
    SceneOptions o;
    o.seed = 0x123456789abcdefull;
    o.first_environment = (std::int64_t{1} << 32) - 20;
    if (device) o.device = {DeviceKind::kCuda, 1};
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + std::string("tendons.xml")});
    scene.build(37);
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{7}, (std::int64_t{1} << 32) + 5}) {
      // What the host wrote before must not come back.
      scene.set_ctrl(std::vector<float>(static_cast<std::size_t>(scene.info().nu), 0.25f));
      scene.set_random_ctrl(step);
      const std::vector<float> some = scene.get_ctrl();
      drawn[device ? 1 : 0].insert(drawn[device ? 1 : 0].end(), some.begin(), some.end());
    }
  }
  ASSERT_GT(drawn[0].size(), 100u);
  EXPECT_TRUE(same_bits(drawn[1], drawn[0]));
}

TEST(SimOnDevices, FewEnvironmentsHaveMoreOfAMultiprocessorsSharedMemory) {
  const EntityDeclaration e{"model", Mjcf{kModels + std::string("biped.xml")}};
  const Model model = import_model(compile_scene(std::span(&e, 1), {}, {}).mjb);
  const ModelView view = planned_view(model, -1, 0, {}, DeviceKind::kCuda);
  const int hessian = view.nv * (view.nv + 1) / 2;
  // One multiprocessor, 16 warps of which at once: with more blocks none gets less.
  cuda::WorkspaceNeed need[4];
  for (const auto& [i, blocks] : {std::pair{0, 1}, {1, 2}, {2, 16}, {3, 100}}) {
    ASSERT_EQ(cuda::workspace_need(1, view, blocks, need[i]), nullptr);
    EXPECT_LE(need[i].block.hot_per_lane * 128, 96 << 10);
    EXPECT_GT(need[i].block.carveout, 0);
    EXPECT_LE(need[i].block.carveout, 100);
  }
  EXPECT_GT(need[0].block.hot_per_lane, hessian) << "a block alone: the Hessian and more";
  EXPECT_GT(need[1].block.hot_per_lane, hessian);
  EXPECT_LT(need[2].block.hot_per_lane, hessian);
  EXPECT_GT(need[2].block.hot_per_lane, 0);
  EXPECT_EQ(need[3].block.hot_per_lane, need[2].block.hot_per_lane);
  // For measuring: fewer than fit, never more.
  setenv("COHORT_GPU_HOT", "40", 1);
  setenv("COHORT_GPU_CARVEOUT", "70", 1);
  cuda::WorkspaceNeed measured[2];
  const char* const why[] = {cuda::workspace_need(1, view, 1, measured[0]),
                             (setenv("COHORT_GPU_HOT", "100000", 1), cuda::workspace_need(1, view, 1, measured[1]))};
  unsetenv("COHORT_GPU_HOT");
  unsetenv("COHORT_GPU_CARVEOUT");
  EXPECT_EQ(why[0], nullptr);
  EXPECT_EQ(why[1], nullptr);
  EXPECT_LE(measured[0].block.hot_per_lane, 40);
  EXPECT_EQ(measured[0].block.carveout, 70);
  EXPECT_EQ(measured[1].block.hot_per_lane, need[0].block.hot_per_lane);
}

TEST(SimOnDevices, WhatBrokeOnTheDeviceIsReportedByTheNextWait) {
  const auto scene = scene_on(1);
  scene->build(5);
  scene->step();
  host_cuda::fail_next_wait();
  const std::string why = message_of([&] { scene->engine().wait(); });
  EXPECT_NE(why.find("cuda:1"), std::string::npos) << why;
  EXPECT_NE(why.find("illegal memory access"), std::string::npos) << why;
}

TEST(SimOnDevices, ACallersOwnCaptureOfAStepReplays) {
  const auto truth = scene_on(1), scene = scene_on(1);
  for (Scene* s : {truth.get(), scene.get()}) {
    s->build(33);
    steps(*s, 0, 5);
  }
  for (int s = 0; s < 3; ++s) truth->engine().step(2);
  // The caller's side of CUDA: his device is the engine's meanwhile.
  Engine& engine = scene->engine();
  const auto stream = static_cast<cudaStream_t>(engine.stream());
  cudaSetDevice(1);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  engine.step(2);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&ready, graph, 0), cudaSuccess);
  for (int s = 0; s < 3; ++s) ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(ready);
  cudaSetDevice(0);
  EXPECT_TRUE(same_bits(state_of(*scene), state_of(*truth)));
}

TEST(SimOnDevices, ACallThatWaitsDuringACaptureIsAnErrorAndTheEngineGoesOn) {
  const auto scene = scene_on(1);
  scene->build(33);
  scene->set_ctrl(std::vector<float>(static_cast<std::size_t>(scene->info().nu), 0.1f));  // not on the device yet
  Engine& engine = scene->engine();
  const auto stream = static_cast<cudaStream_t>(engine.stream());
  cudaSetDevice(1);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const std::string why = message_of([&] { engine.step(1); });
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  cudaSetDevice(0);
  EXPECT_NE(why.find("cuda:1"), std::string::npos) << why;
  EXPECT_NE(why.find("captur"), std::string::npos) << why;
  scene->step();
  EXPECT_GT(state_of(*scene).back(), 0.0f);
}

}  // namespace
}  // namespace cohort::sim
