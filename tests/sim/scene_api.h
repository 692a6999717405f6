/// Tests of what a user of the scene's interface does, run on both engines; in sim_host_cuda_test, where
/// COHORT_HOST_CUDA is defined, on the batched engine's second device.
#pragma once
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/format.h"
#include "sim/host/scene.h"

namespace cohort::sim {

class SceneApi : public ::testing::TestWithParam<EngineKind> {
 protected:
  static SceneOptions options() {
    SceneOptions o;
    o.engine = GetParam();
    o.seed = 11;
#if defined(COHORT_HOST_CUDA)
    o.device = {DeviceKind::kCuda, 1};
#endif
    return o;
  }
  static std::filesystem::path file(const std::string& ending) {
    return std::filesystem::temp_directory_path() / format("cohort_api_{}.{}", getpid(), ending);
  }
};

}  // namespace cohort::sim
