/// The renderer `raycast`: see renderer.h.
#pragma once
#include <memory>

#include "render/renderer.h"

namespace cohort::render {

/// Throws Error where this processor does not run the lanes that are asked for.
std::unique_ptr<Renderer> make_raycast_renderer(sim::Scene& scene, const RendererSettings& settings);

}  // namespace cohort::render
