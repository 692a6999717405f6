/// What the page knows of a scene: links, geoms with their meshes, textures and colours, lights and cameras, as the ray
/// caster draws them (render/traced_scene.h). One home for the page of a file and that of a server.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "render/renderer.h"
#include "sim/host/scene.h"

namespace cohort::view {

struct SceneDocumentSettings {
  std::size_t max_triangles = 200'000;      ///< of all meshes together; more are thinned
  std::size_t max_texture_bytes = 3 << 20;  ///< likewise of all textures, by halving the largest
};

/// Bytes of a BinaryDocument (format "cohort scene 1"). Environments stand where Scene::environment_offset() says, or,
/// where the scene has no spacing, on a grid that keeps them apart. Throws Error for a compiled model that holds no
/// pictures.
std::string scene_document(sim::Scene& scene, std::span<const std::int32_t> envs,
                           const SceneDocumentSettings& settings = {});

/// Which geoms and sites it has: all of them, drawn by nobody's choice but the page's.
render::RendererSettings document_geoms();

/// Links that something moves: those whose poses a PoseTrack keeps.
std::vector<std::int32_t> moving_links(const sim::ModelInfo& info);

}  // namespace cohort::view
