// The ray caster on devices that are made of the host's memory: what a machine with one GPU, or none, cannot show.
// cuda_test.cpp runs on them as well.
#include "sim/host_cuda/host_cuda.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "scenes.h"
#include "sim/host_cuda/cuda_runtime.h"

namespace cohort::render {
namespace {

/// What is held of a device.
std::vector<int> held(int device) {
  const host_cuda::Counts c = host_cuda::counts(device);
  return {c.allocations, c.streams, c.graphs};
}

TEST(RaycastOnDevices, TakesItsDeviceOnlyLeavesTheCallersAndGivesAllBack) {
  const auto scene = test::built_scene(test::model_file("mapped.xml"), 3);
  const std::vector<int> before[] = {held(0), held(1)};
  const int launches = host_cuda::counts(0).launches;
  {
    const auto renderer = make_renderer(*scene, {.device = DeviceId{DeviceKind::kCuda, 1}});
    const std::vector<std::int32_t> envs{0, 1, 2};
    renderer->render(0, envs, 20, 20);
    renderer->render_in_place(0, envs, 30, 30, {.depth = true});
    EXPECT_GT(held(1)[0], before[1][0]);
    EXPECT_EQ(held(0), before[0]);
    int current = -1;
    cudaGetDevice(&current);
    EXPECT_EQ(current, 0);
  }
  EXPECT_EQ(held(1), before[1]);
  EXPECT_EQ(host_cuda::counts(0).launches, launches);
  EXPECT_EQ(host_cuda::counts(0).default_stream, 0);
}

TEST(RaycastOnDevices, ASceneOfAnotherDeviceIsDrawnFromACopyOfItsPoses) {
  sim::SceneOptions options;
  options.device = {DeviceKind::kCuda, 0};
  sim::Scene scene(options);
  scene.add_entity(sim::Mjcf{test::model_file("shapes.xml")});
  scene.build(3);
  for (int i = 0; i < 30; ++i) scene.step();
  const std::vector<std::int32_t> envs{2, 0};
  const auto there = make_renderer(scene, {.device = DeviceId{DeviceKind::kCuda, 1}}), here = make_renderer(scene);
  EXPECT_NE(there->stream(), here->stream());
  EXPECT_EQ(there->render(0, envs, 60, 40).rgb, here->render(0, envs, 60, 40).rgb);
}

TEST(RaycastOnDevices, AnyAllocationThatFailsIsAnErrorThatNamesTheDeviceAndNothingIsKept) {
  const auto scene = test::built_scene(test::model_file("shapes.xml"), 2);
  const std::vector<std::int32_t> envs{0, 1};
  const std::vector<int> before = held(1);
  int failures = 0;
  for (bool drawn = false; !drawn; ++failures) {
    ASSERT_LT(failures, 50);
    host_cuda::fail_allocation_after(failures);
    const std::string why = message_of([&] {
      const auto renderer = make_renderer(*scene, {.device = DeviceId{DeviceKind::kCuda, 1}});
      renderer->render(0, envs, 20, 20, {.rgb = true, .depth = true});
    });
    host_cuda::fail_allocation_after(-1);
    EXPECT_EQ(held(1), before);
    drawn = why.empty();
    if (drawn) continue;
    EXPECT_NE(why.find("cuda:1"), std::string::npos) << why;
    EXPECT_NE(why.find("out of memory"), std::string::npos) << why;
  }
  EXPECT_GT(failures, 4);
}

TEST(RaycastOnDevices, ARendererGoesOnAfterAnAllocationThatFailed) {
  const auto scene = test::built_scene(test::model_file("shapes.xml"), 2);
  const auto renderer = make_renderer(*scene, {.device = DeviceId{DeviceKind::kCuda, 1}});
  const std::vector<std::int32_t> envs{0, 1};
  const Frames truth = renderer->render(0, envs, 24, 24);
  host_cuda::fail_allocation_after(0);
  EXPECT_NE(message_of([&] { renderer->render(0, envs, 200, 200); }).find("out of memory"), std::string::npos);
  host_cuda::fail_allocation_after(-1);
  EXPECT_EQ(renderer->render(0, envs, 24, 24).rgb, truth.rgb);
}

}  // namespace
}  // namespace cohort::render
