// What a machine without a CUDA device says when a renderer is to draw on one.
#include <gtest/gtest.h>

#include "core/message_of.h"
#include "scenes.h"
#include "sim/backends/cuda/runner.h"

namespace cohort::render {
namespace {

TEST(RaycastWithoutGpu, SaysThatThereIsNone) {
  if (sim::cuda::available() && sim::cuda::device_count() > 0) GTEST_SKIP() << "there is a CUDA device";
  const auto scene = test::built_scene(test::model_file("shapes.xml"));
  const std::string why = message_of([&] { make_renderer(*scene, {.device = DeviceId{DeviceKind::kCuda, 0}}); });
  EXPECT_NE(why.find("the renderer raycast cannot draw on cuda:0"), std::string::npos) << why;
}

}  // namespace
}  // namespace cohort::render
