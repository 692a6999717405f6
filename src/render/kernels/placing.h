/// Puts a scene into a picture: camera, lights and instances by the links' poses, and which tiles an instance may
/// touch. The same source for a CPU and a GPU's threads.
///
/// Poses: a type with pos(link, out3) and rot(link, out9), an environment's.
#pragma once
#include "render/kernels/pose.h"
#include "render/kernels/scene_records.h"
#include "sim/host/visual_shape.h"

namespace cohort::render {

inline constexpr float kNearestOfAll = -3.402823466e38f;  ///< an instance that no hit hides

/// Centre of mass of a link and all that hangs on it.
template <class Poses>
COHORT_DEVICE void subtree_com(const LinkRecord* links, int count, const Poses& poses, int link, double* out) {
  double mass = 0, sum[3] = {0, 0, 0};
  for (int i = link; i < count; ++i) {
    // A link stands behind its parent.
    int root_of = i;
    while (root_of > link) root_of = links[root_of].parent;
    if (root_of != link) continue;
    double pos[3], rot[9], com[3];
    poses.pos(i, pos), poses.rot(i, rot);
    turn3(rot, links[i].com, com);
    mass += links[i].mass;
    for (int k = 0; k < 3; ++k) sum[k] += links[i].mass * (pos[k] + com[k]);
  }
  if (mass <= 1e-15) return poses.pos(link, out);
  for (int k = 0; k < 3; ++k) out[k] = sum[k] / mass;
}

template <class Poses>
COHORT_DEVICE void target_of(const LinkRecord* links, int count, Mount mount, int target, const Poses& poses,
                             double* out) {
  if (mount == Mount::kTargetBody) return poses.pos(target, out);
  subtree_com(links, count, poses, target, out);
}

COHORT_LANE bool has_target(Mount mount, int target) {
  return (mount == Mount::kTargetBody || mount == Mount::kTargetBodyCom) && target >= 0;
}

/// Columns right, up, back of a camera that looks against `back`; its up is the world's z as far as that goes.
COHORT_DEVICE inline void axes_looking(const double* back, double* axes) {
  const double up[3] = {0, 0, 1};
  double x[3], y[3], z[3], v[3];
  unit3(back, z);
  cross3(up, z, v);
  if (dot3(v, v) > 1e-18) {
    unit3(v, x);
  } else {
    x[0] = 1, x[1] = 0, x[2] = 0;
  }
  cross3(z, x, v);
  unit3(v, y);
  for (int i = 0; i < 3; ++i) axes[3 * i] = x[i], axes[3 * i + 1] = y[i], axes[3 * i + 2] = z[i];
}

/// MuJoCo's mj_camlight (engine_core_smooth.c).
template <class Poses>
COHORT_DEVICE void place_camera(const LinkRecord* links, int count, const CameraRecord& c, const Poses& poses,
                                EyeRecord& eye) {
  double at[3], rot[9], v[3];
  if (c.mount == Mount::kTrack || c.mount == Mount::kTrackCom) {
    const bool com = c.mount == Mount::kTrackCom;
    if (com) {
      subtree_com(links, count, poses, c.link, at);
    } else {
      poses.pos(c.link, at);
    }
    for (int k = 0; k < 3; ++k) eye.pos[k] = at[k] + (com ? c.pos_com0[k] : c.pos0[k]);
    for (int k = 0; k < 9; ++k) eye.axes[k] = c.mat0[k];
    return;
  }
  poses.pos(c.link, at), poses.rot(c.link, rot);
  turn3(rot, c.pos, v);
  for (int k = 0; k < 3; ++k) eye.pos[k] = at[k] + v[k];
  product3(rot, c.rot, eye.axes);
  if (!has_target(c.mount, c.target)) return;
  target_of(links, count, c.mount, c.target, poses, at);
  for (int k = 0; k < 3; ++k) v[k] = eye.pos[k] - at[k];
  axes_looking(v, eye.axes);
}

/// Likewise.
template <class Poses>
COHORT_DEVICE void place_light(const SceneRecord& s, const LightSource& l, const Poses& poses, double* pos,
                               double* dir) {
  double at[3], rot[9], v[3];
  if (l.mount == Mount::kTrack || l.mount == Mount::kTrackCom) {
    const bool com = l.mount == Mount::kTrackCom;
    if (com) {
      subtree_com(s.link, s.links, poses, l.link, at);
    } else {
      poses.pos(l.link, at);
    }
    for (int k = 0; k < 3; ++k) pos[k] = at[k] + (com ? l.pos_com0[k] : l.pos0[k]);
    return unit3(l.dir0, dir);
  }
  poses.pos(l.link, at), poses.rot(l.link, rot);
  turn3(rot, l.pos, v);
  for (int k = 0; k < 3; ++k) pos[k] = at[k] + v[k];
  turn3(rot, l.dir, v);
  unit3(v, dir);
  if (!has_target(l.mount, l.target)) return;
  target_of(s.link, s.links, l.mount, l.target, poses, at);
  for (int k = 0; k < 3; ++k) v[k] = at[k] - pos[k];
  unit3(v, dir);
}

/// Camera, frustum and lights of a picture; lights: memory for kMostLights. Outputs, instances and their lists are left
/// null.
template <class Poses>
COHORT_DEVICE void place_frame(const SceneRecord& s, const CameraRecord& camera, const LensRecord& lens,
                               const Poses& poses, LightRecord* lights, EyeRecord& eye, FrameRecord& f) {
  f = FrameRecord{};
  place_camera(s.link, s.links, camera, poses, eye);
  f.width = lens.width, f.height = lens.height;
  f.columns = (lens.width + kTile - 1) / kTile;
  f.orthographic = lens.orthographic;
  double right[3], up[3], back[3];
  column3(eye.axes, 0, right), column3(eye.axes, 1, up), column3(eye.axes, 2, back);
  const double forward[3] = {-back[0], -back[1], -back[2]};
  put3(right, f.right), put3(up, f.up), put3(forward, f.forward);
  f.left = static_cast<float>(lens.left), f.bottom = static_cast<float>(lens.bottom);
  f.top = static_cast<float>(lens.top);
  f.step_x = static_cast<float>((lens.right - lens.left) / lens.width);
  f.step_y = static_cast<float>((lens.top - lens.bottom) / lens.height);
  f.nearest = static_cast<float>(lens.near), f.farthest = static_cast<float>(lens.far);
  f.quads = s.quads;
  f.mirror = s.mirror;
  if (s.headlight) {
    lights[f.lights] = s.headlight_record;
    put3(forward, lights[f.lights++].dir);
  }
  for (int i = 0; i < s.lights; ++i) {
    LightRecord& l = lights[f.lights++];
    l = s.light[i].record;
    double pos[3], dir[3];
    place_light(s, s.light[i], poses, pos, dir);
    for (int k = 0; k < 3; ++k) pos[k] -= eye.pos[k];
    put3(pos, l.pos), put3(dir, l.dir);
    if (!s.shadows) l.shadow = 0;
    if (l.shadow) f.shadows = 1;
  }
  f.light = lights;
  f.global_ambient = f.lights == 0 ? 0.3f : 0.0f;
  f.sky = s.sky;
  f.sky_reach = 0.70f * f.farthest;
}

template <class Poses>
COHORT_DEVICE void place_instance(const GeomRecord& g, const EyeRecord& eye, const Poses& poses, InstanceRecord& r) {
  double link[9], rot[9], at[3], v[3], pos[3];
  r = g.record;
  poses.rot(g.link, link), poses.pos(g.link, at);
  product3(link, g.rot, rot);
  turn3(link, g.pos, v);
  for (int k = 0; k < 3; ++k) pos[k] = at[k] + v[k] - eye.pos[k];
  // A plane without end goes with the camera, by whole cells of its texture (mjv_updateScene).
  for (int k = 0; k < 2; ++k) {
    if (g.step[k] <= 0) continue;
    column3(rot, k, v);
    const double along = g.step[k] * nearest_whole(-dot3(pos, v) / g.step[k]);
    for (int i = 0; i < 3; ++i) pos[i] += along * v[i];
  }
  for (int i = 0; i < 9; ++i) r.rot[i] = static_cast<float>(rot[i]);
  put3(pos, r.pos);
  if (r.shape == static_cast<int>(sim::VisualShape::kPlane)) {
    column3(rot, 2, v);
    r.behind = -dot3(pos, v) < 0;
    if (r.behind) r.transparent = 1, r.rgba[3] *= 0.3f;
  }
  r.radius = -1;
  if (g.endless) return;
  double middle[3], half[3];
  for (int k = 0; k < 3; ++k) middle[k] = (g.low[k] + g.high[k]) / 2, half[k] = g.high[k] - middle[k];
  r.radius = static_cast<float>(root(dot3(half, half)) * 1.0001 + 1e-6);
  turn3(rot, middle, v);
  for (int k = 0; k < 3; ++k) v[k] = pos[k] + v[k];
  put3(v, r.middle);
}

/// The tile in which a pixel lies, at most one beyond an edge.
COHORT_LANE int tile_of(double pixel, int tiles) {
  const double tile = floor_of(pixel / kTile);
  return static_cast<int>(tile < -1.0 ? -1.0 : tiles < tile ? tiles : tile);
}

/// Tiles that a placed instance may touch, and its least depth.
COHORT_DEVICE inline TileSpan span_of(const GeomRecord& g, const LensRecord& lens, const EyeRecord& eye,
                                      const FrameRecord& f, InstanceRecord& r) {
  const int rows = (f.height + kTile - 1) / kTile;
  const TileSpan whole{0, f.columns - 1, 0, rows - 1}, nothing{0, -1, 0, -1};
  r.nearest = kNearestOfAll;
  if (g.endless) return whole;
  constexpr double kMost = 1.7976931348623157e308;
  double least = kMost, most = -kMost, low_x = kMost, high_x = -kMost, low_y = kMost, high_y = -kMost;
  bool crosses = false;
  double right[3], up[3], back[3];
  column3(eye.axes, 0, right), column3(eye.axes, 1, up), column3(eye.axes, 2, back);
  for (int i = 0; i < 8; ++i) {
    const double corner[3] = {i & 1 ? g.high[0] : g.low[0], i & 2 ? g.high[1] : g.low[1], i & 4 ? g.high[2] : g.low[2]};
    double p[3];
    for (int k = 0; k < 3; ++k) {
      p[k] = static_cast<double>(r.pos[k]) + static_cast<double>(r.rot[3 * k]) * corner[0] +
             static_cast<double>(r.rot[3 * k + 1]) * corner[1] + static_cast<double>(r.rot[3 * k + 2]) * corner[2];
    }
    const double depth = -dot3(p, back);
    least = lesser(least, depth), most = greater(most, depth);
    if (depth <= 0.5 * lens.near && !lens.orthographic) {
      crosses = true;
      continue;
    }
    const double scale = lens.orthographic ? 1 : 1 / depth;
    const double x = dot3(p, right) * scale, y = dot3(p, up) * scale;
    low_x = lesser(low_x, x), high_x = greater(high_x, x);
    low_y = lesser(low_y, y), high_y = greater(high_y, y);
  }
  // Lengths in float carry an error of a few millionths.
  const double slack = 1e-5 * (magnitude(least) + magnitude(most)) + 1e-6;
  r.nearest = static_cast<float>(least - slack);
  if (most + slack < lens.near || least - slack > lens.far) return nothing;
  if (crosses) return whole;
  const double step_x = static_cast<double>(f.step_x), step_y = static_cast<double>(f.step_y);
  TileSpan s{tile_of((low_x - lens.left) / step_x - 1, f.columns),
             tile_of((high_x - lens.left) / step_x + 1, f.columns), tile_of((lens.top - high_y) / step_y - 1, rows),
             tile_of((lens.top - low_y) / step_y + 1, rows)};
  if (s.first_x < 0) s.first_x = 0;
  if (s.first_y < 0) s.first_y = 0;
  if (s.last_x > f.columns - 1) s.last_x = f.columns - 1;
  if (s.last_y > rows - 1) s.last_y = rows - 1;
  return s;
}

/// Instance and tiles of a geom in a picture, culled or not as the scene says.
template <class Poses>
COHORT_DEVICE TileSpan place_and_span(const SceneRecord& s, const GeomRecord& g, const LensRecord& lens,
                                      const EyeRecord& eye, const FrameRecord& f, const Poses& poses,
                                      InstanceRecord& r) {
  place_instance(g, eye, poses, r);
  if (s.culling) return span_of(g, lens, eye, f, r);
  r.nearest = kNearestOfAll, r.radius = -1;
  return {0, f.columns - 1, 0, (f.height + kTile - 1) / kTile - 1};
}

/// Mirror and haze, once the instances are placed; those of a picture's first environment stand first.
COHORT_DEVICE inline void finish_frame(const SceneRecord& s, const InstanceRecord* instance, FrameRecord& f) {
  // A mirror that is seen from behind is none.
  if (f.mirror >= 0) {
    const InstanceRecord& r = instance[f.mirror];
    const bool box = r.shape == static_cast<int>(sim::VisualShape::kBox);
    const float height = -(r.pos[0] * r.rot[2] + r.pos[1] * r.rot[5] + r.pos[2] * r.rot[8]) - (box ? r.size[2] : 0);
    if (height < 0) f.mirror = -1;
  }
  if (f.sky == nullptr || s.haze_plane < 0) return;
  const InstanceRecord& plane = instance[s.haze_plane];
  for (int k = 0; k < 3; ++k) f.haze_normal[k] = plane.rot[3 * k + 2], f.haze_rgb[k] = s.haze_rgb[k];
  f.haze_height =
      -(plane.pos[0] * plane.rot[2] + plane.pos[1] * plane.rot[5] + plane.pos[2] * plane.rot[8]) / f.sky_reach;
  f.haze = f.haze_height > 1e-6f && s.haze;
  f.haze_ratio = s.haze_ratio, f.haze_turn = s.haze_turn;
}

/// Transparent instances are blended in the order of this, then of their numbers, as MuJoCo sorts them.
COHORT_DEVICE inline double blending_distance(const InstanceRecord& r, double radius) {
  if (r.shape == static_cast<int>(sim::VisualShape::kPlane)) return 1e10;
  const double x = static_cast<double>(r.pos[0]), y = static_cast<double>(r.pos[1]), z = static_cast<double>(r.pos[2]);
  const double distance = root(x * x + y * y + z * z) - radius;
  return distance == distance ? distance : 1e10;  // an environment that broke has no place
}

/// Of the i-th instance of a picture of `environments` environments: which geom, and of which of them.
struct InstanceSource {
  int geom, environment;
};
COHORT_LANE InstanceSource source_of(const SceneRecord& s, int i) {
  if (i < s.geoms) return {i, 0};
  return {s.ended[(i - s.geoms) % s.endeds], 1 + (i - s.geoms) / s.endeds};
}

}  // namespace cohort::render
