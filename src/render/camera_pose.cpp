#include "render/camera_pose.h"

#include <algorithm>

#include "render/kernels/placing.h"

namespace cohort::render {

Mat3 rotation_of(const std::array<double, 4>& quat) {
  Mat3 r;
  rotation3(quat.data(), r.data());
  return r;
}
Vec3 turn(const Mat3& r, const Vec3& v) {
  Vec3 out;
  turn3(r.data(), v.data(), out.data());
  return out;
}
Mat3 product(const Mat3& a, const Mat3& b) {
  Mat3 r;
  product3(a.data(), b.data(), r.data());
  return r;
}
double dot(const Vec3& a, const Vec3& b) {
  return dot3(a.data(), b.data());
}
Vec3 cross(const Vec3& a, const Vec3& b) {
  Vec3 out;
  cross3(a.data(), b.data(), out.data());
  return out;
}
Vec3 unit(const Vec3& a) {
  Vec3 out;
  unit3(a.data(), out.data());
  return out;
}
Vec3 plus(const Vec3& a, const Vec3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
Vec3 minus(const Vec3& a, const Vec3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

Mount mount_of(sim::VisualTracking tracking) {
  switch (tracking) {
    case sim::VisualTracking::kFixed:
      return Mount::kFixed;
    case sim::VisualTracking::kTrack:
      return Mount::kTrack;
    case sim::VisualTracking::kTrackCom:
      return Mount::kTrackCom;
    case sim::VisualTracking::kTargetBody:
      return Mount::kTargetBody;
    case sim::VisualTracking::kTargetBodyCom:
      return Mount::kTargetBodyCom;
  }
  return Mount::kFixed;
}

CameraRecord record_of(const sim::VisualCamera& camera) {
  CameraRecord r{};
  r.mount = mount_of(camera.tracking), r.link = camera.link, r.target = camera.target;
  std::copy(camera.pos.begin(), camera.pos.end(), r.pos);
  rotation3(camera.quat.data(), r.rot);
  std::copy(camera.pos0.begin(), camera.pos0.end(), r.pos0);
  std::copy(camera.pos_com0.begin(), camera.pos_com0.end(), r.pos_com0);
  std::copy(camera.mat0.begin(), camera.mat0.end(), r.mat0);
  return r;
}

EyeRecord eye_of(const sim::VisualModel& model, const CameraRecord& camera, const LinkPoses& poses) {
  std::vector<LinkRecord> links(model.links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i].parent = model.links[i].parent, links[i].mass = model.links[i].mass;
    std::copy_n(model.links[i].com.begin(), 3, links[i].com);
  }
  EyeRecord eye{};
  place_camera(links.data(), static_cast<int>(links.size()), camera, PosesOnHost(poses), eye);
  return eye;
}

sim::VisualCamera looking_at(const Vec3& pos, const Vec3& target) {
  sim::VisualCamera camera;
  camera.tracking = sim::VisualTracking::kTrack;
  camera.pos0 = pos;  // link 0 is the world, which stands at its origin
  axes_looking(minus(pos, target).data(), camera.mat0.data());
  return camera;
}

}  // namespace cohort::render
