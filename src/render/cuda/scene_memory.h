/// A scene in a device's memory: one piece, its arrays one behind the other.
#pragma once
#include "render/traced_scene.h"
#include "sim/backends/cuda/memory.h"

namespace cohort::render::cuda {

/// Copies what the scene's record leads to; `record` gets pointers into the returned memory.
sim::cuda::DeviceMemory upload_scene(const TracedScene& scene, int device, void* stream, SceneRecord& record);

}  // namespace cohort::render::cuda
