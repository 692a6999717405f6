#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

#if defined(COHORT_HOST_CUDA)
INSTANTIATE_TEST_SUITE_P(Device, SceneApi, ::testing::Values(EngineKind::kBatched),
                         [](const auto& each) { return to_string(each.param); });
#else
INSTANTIATE_TEST_SUITE_P(Engines, SceneApi, ::testing::Values(EngineKind::kBatched, EngineKind::kMujoco),
                         [](const auto& each) { return to_string(each.param); });
#endif

}  // namespace
}  // namespace cohort::sim
