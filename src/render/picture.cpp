#include "render/picture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "sim/index.h"

namespace cohort::render {

using sim::at;

namespace {

template <std::size_t N>
void put(float* to, const std::array<double, N>& from) {
  for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<float>(from[i]);
}
Vec3 column(const Mat3& m, std::size_t k) {
  return {m[k], m[3 + k], m[6 + k]};
}

}  // namespace

void Picture::place(const sim::VisualModel& model, const TracedScene& scene, const RendererSettings& settings,
                    const PictureView& view, const LinkPoses& lights, std::span<const LinkPoses> environments) {
  FrameRecord& f = frame_;
  f = {};
  f.width = view.width, f.height = view.height;
  f.columns = (view.width + kTile - 1) / kTile;
  rows_ = (view.height + kTile - 1) / kTile;
  tiles_ = f.columns * rows_;
  f.orthographic = view.orthographic;
  put(f.right, column(view.camera.axes, 0));
  put(f.up, column(view.camera.axes, 1));
  const Vec3 back = column(view.camera.axes, 2);
  put(f.forward, Vec3{-back[0], -back[1], -back[2]});
  f.left = static_cast<float>(view.left), f.bottom = static_cast<float>(view.bottom);
  f.top = static_cast<float>(view.top);
  f.step_x = static_cast<float>((view.right - view.left) / view.width);
  f.step_y = static_cast<float>((view.top - view.bottom) / view.height);
  f.nearest = static_cast<float>(view.near), f.farthest = static_cast<float>(view.far);
  f.quads = model.quads;
  f.mirror = scene.mirror();
  place_lights(model, view, lights, settings.shadows);
  f.shadows = std::any_of(light_.begin(), light_.end(), [](const LightRecord& l) { return l.shadow != 0; });
  f.light = light_.data(), f.lights = static_cast<int>(light_.size());
  f.global_ambient = light_.empty() ? 0.3f : 0.0f;

  const std::vector<TracedGeom>& geoms = scene.geoms();
  instance_.clear(), span_.clear(), geom_of_.clear();
  for (std::size_t e = 0; e < environments.size(); ++e) {
    for (std::size_t i = 0; i < geoms.size(); ++i) {
      if (e > 0 && geoms[i].endless) continue;
      InstanceRecord& r = instance_.emplace_back(geoms[i].record);
      geom_of_.push_back(i);
      place_instance(geoms[i], view, environments[e], r);
      if (settings.culling) {
        span_.push_back(span_of(geoms[i], view, r));
      } else {
        span_.push_back({0, f.columns - 1, 0, rows_ - 1});
        r.nearest = -std::numeric_limits<float>::max(), r.radius = -1;
      }
    }
  }
  f.instance = instance_.data(), f.instances = static_cast<int>(instance_.size());
  // A mirror that is seen from behind is none.
  if (f.mirror >= 0) {
    const InstanceRecord& r = instance_[at(f.mirror)];
    const bool box = r.shape == static_cast<int>(sim::VisualShape::kBox);
    const float height = -(r.pos[0] * r.rot[2] + r.pos[1] * r.rot[5] + r.pos[2] * r.rot[8]) - (box ? r.size[2] : 0);
    if (height < 0) f.mirror = -1;
  }
  f.sky = scene.sky();
  f.sky_reach = 0.70f * f.farthest;
  if (f.sky != nullptr && scene.haze_plane() >= 0) {
    const InstanceRecord& plane = instance_[at(scene.haze_plane())];
    const double ratio = static_cast<double>(model.haze);
    for (int k = 0; k < 3; ++k) f.haze_normal[k] = plane.rot[3 * k + 2];
    f.haze_height =
        -(plane.pos[0] * plane.rot[2] + plane.pos[1] * plane.rot[5] + plane.pos[2] * plane.rot[8]) / f.sky_reach;
    f.haze = f.haze_height > 1e-6f && ratio > 0 && ratio < 1;
    // The height at which haze is densest (`haze` in render_context.c).
    const double alpha = std::atan2(1, ratio), beta = 0.75 * std::numbers::pi - alpha;
    f.haze_ratio = model.haze;
    f.haze_turn = static_cast<float>(std::sqrt(0.5) * ratio * std::sin(alpha) / std::sin(beta));
    std::copy_n(model.haze_rgba.begin(), 3, f.haze_rgb);
  }
  bin(settings.culling);
  order_transparent(scene);
}

void Picture::place_instance(const TracedGeom& geom, const PictureView& view, const LinkPoses& poses,
                             InstanceRecord& r) const {
  const Mat3& link = poses.rot[at(geom.link)];
  const Mat3 rot = product(link, geom.rot);
  Vec3 pos = minus(plus(poses.pos[at(geom.link)], turn(link, geom.pos)), view.camera.pos);
  // A plane without end goes with the camera, by whole cells of its texture (mjv_updateScene).
  for (std::size_t k = 0; k < 2; ++k) {
    if (geom.step[k] <= 0) continue;
    const Vec3 axis = column(rot, k);
    const double along = geom.step[k] * std::nearbyint(-dot(pos, axis) / geom.step[k]);
    for (std::size_t i = 0; i < 3; ++i) pos[i] += along * axis[i];
  }
  put(r.rot, rot);
  put(r.pos, pos);
  if (r.shape == static_cast<int>(sim::VisualShape::kPlane)) {
    r.behind = -dot(pos, column(rot, 2)) < 0;
    if (r.behind) r.transparent = 1, r.rgba[3] *= 0.3f;
  }
  r.radius = -1;
  if (geom.endless) return;
  const Vec3 middle{(geom.low[0] + geom.high[0]) / 2, (geom.low[1] + geom.high[1]) / 2,
                    (geom.low[2] + geom.high[2]) / 2};
  const Vec3 half = minus(geom.high, middle);
  r.radius = static_cast<float>(std::sqrt(dot(half, half)) * 1.0001 + 1e-6);
  put(r.middle, plus(pos, turn(rot, middle)));
}

Picture::Span Picture::span_of(const TracedGeom& geom, const PictureView& view, InstanceRecord& r) const {
  const FrameRecord& f = frame_;
  const Span whole{0, f.columns - 1, 0, rows_ - 1}, nothing{0, -1, 0, -1};
  r.nearest = -std::numeric_limits<float>::max();
  if (geom.endless) return whole;
  double least = std::numeric_limits<double>::max(), most = -least;
  double low_x = least, high_x = most, low_y = least, high_y = most;
  bool crosses = false;
  const Vec3 right = column(view.camera.axes, 0), up = column(view.camera.axes, 1), back = column(view.camera.axes, 2);
  for (int i = 0; i < 8; ++i) {
    const Vec3 corner{i & 1 ? geom.high[0] : geom.low[0], i & 2 ? geom.high[1] : geom.low[1],
                      i & 4 ? geom.high[2] : geom.low[2]};
    Vec3 p;
    for (std::size_t k = 0; k < 3; ++k) {
      p[k] = static_cast<double>(r.pos[k]) + static_cast<double>(r.rot[3 * k]) * corner[0] +
             static_cast<double>(r.rot[3 * k + 1]) * corner[1] + static_cast<double>(r.rot[3 * k + 2]) * corner[2];
    }
    const double depth = -dot(p, back);
    least = std::min(least, depth), most = std::max(most, depth);
    if (depth <= 0.5 * view.near && !view.orthographic) {
      crosses = true;
      continue;
    }
    const double scale = view.orthographic ? 1 : 1 / depth;
    const double x = dot(p, right) * scale, y = dot(p, up) * scale;
    low_x = std::min(low_x, x), high_x = std::max(high_x, x);
    low_y = std::min(low_y, y), high_y = std::max(high_y, y);
  }
  // Lengths in float carry an error of a few millionths.
  const double slack = 1e-5 * (std::abs(least) + std::abs(most)) + 1e-6;
  r.nearest = static_cast<float>(least - slack);
  if (most + slack < view.near || least - slack > view.far) return nothing;
  if (crosses) return whole;
  const auto tile = [](double pixel, int tiles) {
    return static_cast<int>(std::clamp(std::floor(pixel / kTile), -1.0, static_cast<double>(tiles)));
  };
  const double step_x = static_cast<double>(f.step_x), step_y = static_cast<double>(f.step_y);
  Span s{tile((low_x - view.left) / step_x - 1, f.columns), tile((high_x - view.left) / step_x + 1, f.columns),
         tile((view.top - high_y) / step_y - 1, rows_), tile((view.top - low_y) / step_y + 1, rows_)};
  s.first_x = std::max(s.first_x, 0), s.first_y = std::max(s.first_y, 0);
  s.last_x = std::min(s.last_x, f.columns - 1), s.last_y = std::min(s.last_y, rows_ - 1);
  return s;
}

void Picture::place_lights(const sim::VisualModel& model, const PictureView& view, const LinkPoses& poses,
                           bool shadows) {
  light_.clear();
  const Vec3 back = column(view.camera.axes, 2);
  if (model.headlight) {
    LightRecord l{};
    l.directional = 1;
    put(l.dir, Vec3{-back[0], -back[1], -back[2]});
    std::copy_n(model.headlight_ambient.begin(), 3, l.ambient);
    std::copy_n(model.headlight_diffuse.begin(), 3, l.diffuse);
    std::copy_n(model.headlight_specular.begin(), 3, l.specular);
    light_.push_back(l);
  }
  for (const sim::VisualLight& light : model.lights) {
    if (!light.active || light.kind == sim::VisualLight::Kind::kImage || light_.size() == kMostLights) continue;
    const LightPose pose = pose_of(model, light, poses);
    LightRecord l{};
    l.directional = light.kind == sim::VisualLight::Kind::kDirectional;
    l.shadow = shadows && light.casts_shadow;
    put(l.pos, minus(pose.pos, view.camera.pos));
    put(l.dir, pose.dir);
    std::copy_n(light.attenuation.begin(), 3, l.attenuation);
    const bool cone = light.kind == sim::VisualLight::Kind::kSpot && light.cutoff <= 90;
    l.cos_cutoff = cone ? static_cast<float>(std::cos(static_cast<double>(light.cutoff) * std::numbers::pi / 180)) : -2;
    l.exponent = light.exponent;
    std::copy_n(light.ambient.begin(), 3, l.ambient);
    std::copy_n(light.diffuse.begin(), 3, l.diffuse);
    std::copy_n(light.specular.begin(), 3, l.specular);
    light_.push_back(l);
  }
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
  const auto each_tile = [&](const Span& s, auto what) {
    for (int y = s.first_y; y <= s.last_y; ++y) {
      for (int x = s.first_x; x <= s.last_x; ++x) what(at(y) * at(frame_.columns) + at(x));
    }
  };
  for (const Span& s : span_) each_tile(s, [&](std::size_t tile) { ++tile_first_[tile + 1]; });
  for (std::size_t i = 1; i < tile_first_.size(); ++i) tile_first_[i] += tile_first_[i - 1];
  tile_instance_.resize(at(tile_first_.back()));
  next_.assign(tile_first_.begin(), tile_first_.end() - 1);
  for (const int i : order_) each_tile(span_[at(i)], [&](std::size_t tile) { tile_instance_[at(next_[tile]++)] = i; });
  frame_.tile_first = tile_first_.data(), frame_.tile_instance = tile_instance_.data();
}

void Picture::order_transparent(const TracedScene& scene) {
  transparent_.clear();
  distance_.resize(instance_.size());
  for (std::size_t i = 0; i < instance_.size(); ++i) {
    const InstanceRecord& r = instance_[i];
    if (!r.transparent) continue;
    const double x = static_cast<double>(r.pos[0]), y = static_cast<double>(r.pos[1]),
                 z = static_cast<double>(r.pos[2]);
    const bool plane = r.shape == static_cast<int>(sim::VisualShape::kPlane);
    distance_[i] = plane ? 1e10 : std::sqrt(x * x + y * y + z * z) - scene.geoms()[geom_of_[i]].radius;
    transparent_.push_back(static_cast<int>(i));
  }
  std::stable_sort(transparent_.begin(), transparent_.end(),
                   [&](int a, int b) { return distance_[at(a)] < distance_[at(b)]; });
  frame_.transparent = transparent_.data(), frame_.transparents = static_cast<int>(transparent_.size());
}

}  // namespace cohort::render
