/// The renderer `mujoco`: see renderer.h.
#pragma once
#include <memory>

#include "render/renderer.h"

namespace cohort::render {

/// Throws Error where there is neither EGL nor OSMesa, naming package and variable, and for a compiled model, which
/// does not hold what MuJoCo draws.
std::unique_ptr<Renderer> make_mujoco_renderer(sim::Scene& scene, const RendererSettings& settings);

}  // namespace cohort::render
