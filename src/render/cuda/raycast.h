/// The renderer `raycast` on a CUDA device: see renderer.h.
#pragma once
#include <memory>

#include "render/renderer.h"

namespace cohort::render {

/// settings.device names a CUDA device. Throws Error where this build or this machine has none of that number, and for
/// lanes, which are a CPU's.
std::unique_ptr<Renderer> make_cuda_raycast_renderer(sim::Scene& scene, const RendererSettings& settings);

}  // namespace cohort::render
