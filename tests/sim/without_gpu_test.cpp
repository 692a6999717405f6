// What a machine without a CUDA device says when one is asked for.
#include <gtest/gtest.h>

#include "core/message_of.h"
#include "sim/backends/cuda/runner.h"
#include "sim/host/scene.h"
#include "sim/models.h"

namespace cohort::sim {
namespace {

TEST(SimWithoutGpu, SaysThatThereIsNone) {
  if (cuda::available() && cuda::device_count() > 0) GTEST_SKIP() << "there is a CUDA device";
  SceneOptions o;
  o.device = {DeviceKind::kCuda, 0};
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + std::string("walker.xml")});
  EXPECT_NE(message_of([&] { scene.build(4); }).find("cuda:0"), std::string::npos);
}

}  // namespace
}  // namespace cohort::sim
