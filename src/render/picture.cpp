#include "render/picture.h"

#include <algorithm>

#include "render/kernels/placing.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;

void Picture::place(const SceneRecord& s, const CameraRecord& camera, const LensRecord& lens, const LinkPoses& lights,
                    std::span<const LinkPoses> environments, std::span<const GeomRecord* const> geoms) {
  FrameRecord& f = frame_;
  EyeRecord eye;
  place_frame(s, camera, lens, PosesOnHost(lights), light_, eye, f);
  tiles_ = f.columns * ((lens.height + kTile - 1) / kTile);
  const std::size_t count = at(s.geoms) + (environments.size() - 1) * at(s.endeds);
  instance_.resize(count), span_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const InstanceSource from = source_of(s, static_cast<int>(i));
    const PosesOnHost poses(environments[at(from.environment)]);
    span_[i] = place_and_span(s, (geoms.empty() ? s.geom : geoms[at(from.environment)])[from.geom], lens, eye, f, poses,
                              instance_[i]);
  }
  f.instance = instance_.data(), f.instances = static_cast<int>(count);
  finish_frame(s, instance_.data(), f);
  bin(s.culling != 0);
  order_transparent(s);
}

void Picture::bin(bool culling) {
  const int n = static_cast<int>(instance_.size());
  order_.resize(instance_.size());
  for (int i = 0; i < n; ++i) order_[at(i)] = i;
  if (culling) {
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      const float da = instance_[at(a)].nearest, db = instance_[at(b)].nearest;
      return da < db || (da == db && a < b);
    });
  }
  tile_first_.assign(at(tiles_) + 1, 0);
  const auto each_tile = [&](const TileSpan& s, auto what) {
    for (int y = s.first_y; y <= s.last_y; ++y) {
      for (int x = s.first_x; x <= s.last_x; ++x) what(at(y) * at(frame_.columns) + at(x));
    }
  };
  for (const TileSpan& s : span_) each_tile(s, [&](std::size_t tile) { ++tile_first_[tile + 1]; });
  for (std::size_t i = 1; i < tile_first_.size(); ++i) tile_first_[i] += tile_first_[i - 1];
  tile_instance_.resize(at(tile_first_.back()));
  next_.assign(tile_first_.begin(), tile_first_.end() - 1);
  for (const int i : order_) each_tile(span_[at(i)], [&](std::size_t tile) { tile_instance_[at(next_[tile]++)] = i; });
  frame_.tile_first = tile_first_.data(), frame_.tile_instance = tile_instance_.data();
}

void Picture::order_transparent(const SceneRecord& scene) {
  transparent_.clear();
  distance_.resize(instance_.size());
  for (std::size_t i = 0; i < instance_.size(); ++i) {
    if (!instance_[i].transparent) continue;
    const int geom = source_of(scene, static_cast<int>(i)).geom;
    distance_[i] = blending_distance(instance_[i], scene.geom[geom].radius);
    transparent_.push_back(static_cast<int>(i));
  }
  std::stable_sort(transparent_.begin(), transparent_.end(),
                   [&](int a, int b) { return distance_[at(a)] < distance_[at(b)]; });
  frame_.transparent = transparent_.data(), frame_.transparents = static_cast<int>(transparent_.size());
}

}  // namespace cohort::render
