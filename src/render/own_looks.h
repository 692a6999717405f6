/// A scene's records with what environments have of their own (sim/host/looks.h).
#pragma once
#include <vector>

#include "render/camera_pose.h"
#include "render/traced_scene.h"
#include "sim/host/looks.h"

namespace cohort::render {

/// Keeps its memory from picture to picture.
class OwnLooks {
 public:
  /// The scene as the environment looks; what the record points at is this one's until the next call, or the scene's.
  const SceneRecord& of(const TracedScene& scene, const sim::VisualModel& model, const sim::Looks& looks, int env);

 private:
  SceneRecord record_{};
  std::vector<GeomRecord> geoms_;
  std::vector<LightSource> lights_;
};

/// A model's geom as the environment has it: place, orientation, size and colour.
sim::VisualGeom own_geom(const sim::VisualGeom& geom, const sim::Looks& looks, int env);
/// The model's camera `index` as the environment has it.
sim::VisualCamera own_camera(const sim::VisualCamera& camera, const sim::Looks& looks, int index, int env);
/// The model's light `index` likewise.
sim::VisualLight own_light(const sim::VisualLight& light, const sim::Looks& looks, int index, int env);

}  // namespace cohort::render
