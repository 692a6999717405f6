/// A picture before its pixels: instances placed, lights, and which tile may show what.
#pragma once
#include <span>
#include <vector>

#include "render/camera_pose.h"
#include "render/traced_scene.h"

namespace cohort::render {

/// Keeps its memory from picture to picture.
class Picture {
 public:
  /// scene: with what the first environment has of its own. environments: those that are in the picture, each where its poses say; camera and lights are placed by `lights`.
  /// A plane without end is the first one's. frame()'s outputs are left null.
  /// geoms: of each environment, where they look otherwise than the scene's.
  void place(const SceneRecord& scene, const CameraRecord& camera, const LensRecord& lens, const LinkPoses& lights,
             std::span<const LinkPoses> environments, std::span<const GeomRecord* const> geoms = {});
  FrameRecord& frame() { return frame_; }
  int tiles() const { return tiles_; }

 private:
  void bin(bool culling);
  void order_transparent(const SceneRecord& scene);

  FrameRecord frame_{};
  int tiles_ = 0;
  std::vector<InstanceRecord> instance_;
  std::vector<TileSpan> span_;
  std::vector<int> order_, tile_first_, tile_instance_, next_, transparent_;
  std::vector<double> distance_;
  LightRecord light_[kMostLights];
};

}  // namespace cohort::render
