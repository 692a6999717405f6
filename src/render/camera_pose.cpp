#include "render/camera_pose.h"

#include <cmath>

#include "sim/index.h"

namespace cohort::render {

using sim::at;

Mat3 rotation_of(const std::array<double, 4>& quat) {
  double n = 0;
  for (const double q : quat) n += q * q;
  const double s = n > 0 ? 2 / n : 0;
  const double w = quat[0], x = quat[1], y = quat[2], z = quat[3];
  return {1 - s * (y * y + z * z), s * (x * y - w * z),     s * (x * z + w * y),
          s * (x * y + w * z),     1 - s * (x * x + z * z), s * (y * z - w * x),
          s * (x * z - w * y),     s * (y * z + w * x),     1 - s * (x * x + y * y)};
}
Vec3 turn(const Mat3& r, const Vec3& v) {
  return {r[0] * v[0] + r[1] * v[1] + r[2] * v[2], r[3] * v[0] + r[4] * v[1] + r[5] * v[2],
          r[6] * v[0] + r[7] * v[1] + r[8] * v[2]};
}
Mat3 product(const Mat3& a, const Mat3& b) {
  Mat3 r{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      r[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
    }
  }
  return r;
}
double dot(const Vec3& a, const Vec3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vec3 unit(const Vec3& a) {
  const double n = std::sqrt(dot(a, a));
  return n > 1e-15 ? Vec3{a[0] / n, a[1] / n, a[2] / n} : Vec3{0, 0, 1};
}
Vec3 plus(const Vec3& a, const Vec3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
Vec3 minus(const Vec3& a, const Vec3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

Vec3 subtree_com(const sim::VisualModel& model, const LinkPoses& poses, int link) {
  std::vector<bool> below(model.links.size(), false);
  below[at(link)] = true;
  double mass = 0;
  Vec3 sum{0, 0, 0};
  for (std::size_t i = at(link); i < model.links.size(); ++i) {
    // A link stands behind its parent.
    if (i > at(link)) below[i] = i != 0 && below[at(model.links[i].parent)];
    if (!below[i]) continue;
    const Vec3 com = plus(poses.pos[i], turn(poses.rot[i], model.links[i].com));
    mass += model.links[i].mass;
    for (std::size_t k = 0; k < 3; ++k) sum[k] += model.links[i].mass * com[k];
  }
  if (mass <= 1e-15) return poses.pos[at(link)];
  return {sum[0] / mass, sum[1] / mass, sum[2] / mass};
}

namespace {

Vec3 target_of(const sim::VisualModel& model, sim::VisualTracking tracking, int target, const LinkPoses& poses) {
  return tracking == sim::VisualTracking::kTargetBody ? poses.pos[at(target)] : subtree_com(model, poses, target);
}

/// Columns right, up, back.
Mat3 axes_looking(const Vec3& back) {
  const Vec3 z = unit(back);
  Vec3 x = cross({0, 0, 1}, z);
  x = dot(x, x) > 1e-18 ? unit(x) : Vec3{1, 0, 0};
  const Vec3 y = unit(cross(z, x));
  return {x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]};
}

bool targets(sim::VisualTracking tracking) {
  return tracking == sim::VisualTracking::kTargetBody || tracking == sim::VisualTracking::kTargetBodyCom;
}

}  // namespace

CameraPose pose_of(const sim::VisualModel& model, const sim::VisualCamera& camera, const LinkPoses& poses) {
  const std::size_t link = at(camera.link);
  CameraPose pose;
  if (camera.tracking == sim::VisualTracking::kTrack || camera.tracking == sim::VisualTracking::kTrackCom) {
    const bool com = camera.tracking == sim::VisualTracking::kTrackCom;
    pose.axes = camera.mat0;
    pose.pos = com ? plus(subtree_com(model, poses, camera.link), camera.pos_com0) : plus(poses.pos[link], camera.pos0);
    return pose;
  }
  pose.pos = plus(poses.pos[link], turn(poses.rot[link], camera.pos));
  pose.axes = product(poses.rot[link], rotation_of(camera.quat));
  if (targets(camera.tracking) && camera.target >= 0) {
    pose.axes = axes_looking(minus(pose.pos, target_of(model, camera.tracking, camera.target, poses)));
  }
  return pose;
}

LightPose pose_of(const sim::VisualModel& model, const sim::VisualLight& light, const LinkPoses& poses) {
  const std::size_t link = at(light.link);
  if (light.tracking == sim::VisualTracking::kTrack) return {plus(poses.pos[link], light.pos0), unit(light.dir0)};
  if (light.tracking == sim::VisualTracking::kTrackCom) {
    return {plus(subtree_com(model, poses, light.link), light.pos_com0), unit(light.dir0)};
  }
  LightPose pose{plus(poses.pos[link], turn(poses.rot[link], light.pos)), unit(turn(poses.rot[link], light.dir))};
  if (targets(light.tracking) && light.target >= 0) {
    pose.dir = unit(minus(target_of(model, light.tracking, light.target, poses), pose.pos));
  }
  return pose;
}

sim::VisualCamera looking_at(const Vec3& pos, const Vec3& target) {
  sim::VisualCamera camera;
  camera.tracking = sim::VisualTracking::kTrack;
  camera.pos0 = pos;  // link 0 is the world, which stands at its origin
  camera.mat0 = axes_looking(minus(pos, target));
  return camera;
}

}  // namespace cohort::render
