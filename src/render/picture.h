/// A picture before its pixels: instances placed, lights, and which tile may show what.
#pragma once
#include <span>
#include <vector>

#include "render/camera_pose.h"
#include "render/traced_scene.h"

namespace cohort::render {

/// What of a camera and its frustum a picture needs.
struct PictureView {
  CameraPose camera;
  double left = 0, right = 0, bottom = 0, top = 0, near = 0.01, far = 100;
  bool orthographic = false;
  int width = 0, height = 0;
};

/// Keeps its memory from picture to picture.
class Picture {
 public:
  /// environments: those that are in the picture, each where its poses say; lights are placed by `lights`. A plane
  /// without end is the first one's. frame()'s outputs are left null.
  void place(const sim::VisualModel& model, const TracedScene& scene, const RendererSettings& settings,
             const PictureView& view, const LinkPoses& lights, std::span<const LinkPoses> environments);
  FrameRecord& frame() { return frame_; }
  int tiles() const { return tiles_; }

 private:
  struct Span {
    int first_x, last_x, first_y, last_y;  ///< tiles; first > last: not seen
  };
  void place_instance(const TracedGeom& geom, const PictureView& view, const LinkPoses& poses, InstanceRecord& r) const;
  /// Tiles that the instance may touch, and its least depth.
  Span span_of(const TracedGeom& geom, const PictureView& view, InstanceRecord& r) const;
  void place_lights(const sim::VisualModel& model, const PictureView& view, const LinkPoses& poses, bool shadows);
  void bin(bool culling);
  void order_transparent(const TracedScene& scene);

  FrameRecord frame_{};
  int tiles_ = 0, rows_ = 0;
  std::vector<InstanceRecord> instance_;
  std::vector<std::size_t> geom_of_;  ///< of each instance, in the scene
  std::vector<Span> span_;
  std::vector<int> order_, tile_first_, tile_instance_, next_, transparent_;
  std::vector<double> distance_;
  std::vector<LightRecord> light_;
};

}  // namespace cohort::render
