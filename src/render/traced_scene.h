/// A model as the ray caster wants it: what does not change from picture to picture.
#pragma once
#include <memory>
#include <vector>

#include "render/camera_pose.h"
#include "render/mesh_tree.h"
#include "render/renderer.h"
#include "render/traced_texture.h"

namespace cohort::render {

/// A geom or site that is drawn. Its record lacks what the link's pose gives.
struct TracedGeom {
  InstanceRecord record{};
  int link = 0;
  Vec3 pos{0, 0, 0};  ///< in the link's frame
  Mat3 rot{1, 0, 0, 0, 1, 0, 0, 0, 1};
  Vec3 low{0, 0, 0}, high{0, 0, 0};  ///< its box, in its own frame; of a plane without end meaningless
  bool endless = false;
  double radius = 0;        ///< of a ball around its own origin, as MuJoCo sorts transparent geoms by it
  double step[2] = {0, 0};  ///< of a plane without end: it is moved by multiples of this, m
};

class TracedScene {
 public:
  TracedScene(const sim::VisualModel& model, const RendererSettings& settings);
  TracedScene(const TracedScene&) = delete;
  TracedScene& operator=(const TracedScene&) = delete;

  const std::vector<TracedGeom>& geoms() const { return geoms_; }
  /// The first sky of the model; null: none.
  const TextureRecord* sky() const { return sky_; }
  /// The geom that mirrors, -1: none; and the first plane without end, above which there is haze.
  int mirror() const { return mirror_; }
  int haze_plane() const { return haze_plane_; }

 private:
  void add(const sim::VisualModel& model, const sim::VisualGeom& geom, const RendererSettings& settings);
  void set_texture(const sim::VisualModel& model, const sim::VisualGeom& geom, InstanceRecord& r) const;
  const MeshRecord* mesh_of(const sim::VisualModel& model, const sim::VisualGeom& geom, bool tree);

  std::vector<TracedGeom> geoms_;
  std::vector<TracedTexture> textures_;
  std::vector<TextureRecord> texture_records_;
  std::vector<std::unique_ptr<TracedMesh>> meshes_, fields_;  ///< null until something shows them
  std::vector<MeshRecord> mesh_records_, field_records_;
  const TextureRecord* sky_ = nullptr;
  int mirror_ = -1, haze_plane_ = -1;
};

}  // namespace cohort::render
