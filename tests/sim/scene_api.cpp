#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

INSTANTIATE_TEST_SUITE_P(Engines, SceneApi, ::testing::Values(EngineKind::kBatched, EngineKind::kMujoco),
                         [](const auto& each) { return to_string(each.param); });

}  // namespace
}  // namespace cohort::sim
