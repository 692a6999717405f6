/// A model as the ray caster wants it: what does not change from picture to picture.
#pragma once
#include <memory>
#include <vector>

#include "render/kernels/scene_records.h"
#include "render/renderer.h"
#include "render/traced_mesh.h"
#include "render/traced_texture.h"

namespace cohort::render {

/// red, green, blue, alpha.
void set_colour(InstanceRecord& r, const float* rgba);
LightSource light_record(const sim::VisualLight& light);

class TracedScene {
 public:
  TracedScene(const sim::VisualModel& model, const RendererSettings& settings);
  TracedScene(const TracedScene&) = delete;
  TracedScene& operator=(const TracedScene&) = delete;

  /// Valid as long as this.
  const SceneRecord& record() const { return record_; }
  /// Of each of its geoms, the place in VisualModel::geoms.
  const std::vector<int>& sources() const { return sources_; }
  /// Gives the record of a geom of the model that is in the scene another place, orientation and size: what `geom` has.
  void place(const sim::VisualModel& model, const sim::VisualGeom& geom, GeomRecord& record) const;
  /// Of each of its lights, the place in VisualModel::lights.
  const std::vector<int>& light_sources() const { return light_sources_; }
  /// What its pointers lead to. Of meshes that nothing shows there is none, and their records are empty.
  const std::vector<TracedTexture>& textures() const { return textures_; }
  const std::vector<TextureRecord>& texture_records() const { return texture_records_; }
  const std::vector<std::unique_ptr<TracedMesh>>& meshes() const { return meshes_; }
  const std::vector<MeshRecord>& mesh_records() const { return mesh_records_; }

 private:
  void add_links_and_lights(const sim::VisualModel& model);
  void add(const sim::VisualModel& model, const sim::VisualGeom& geom, const RendererSettings& settings);
  void set_texture(const sim::VisualModel& model, const sim::VisualGeom& geom, InstanceRecord& r) const;
  const MeshRecord* mesh_of(const sim::VisualModel& model, const sim::VisualGeom& geom, bool tree);

  SceneRecord record_{};
  std::vector<GeomRecord> geoms_;
  std::vector<int> sources_;
  std::vector<int> ended_;
  std::vector<LinkRecord> links_;
  std::vector<LightSource> lights_;
  std::vector<int> light_sources_;
  std::vector<TracedTexture> textures_;
  std::vector<TextureRecord> texture_records_;
  std::vector<std::unique_ptr<TracedMesh>> meshes_;  ///< the model's, then its height fields
  std::vector<MeshRecord> mesh_records_;
};

}  // namespace cohort::render
