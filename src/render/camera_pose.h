/// Where cameras stand, given their links' poses; the vectors of whoever places one. The formulas are those of
/// kernels/placing.h.
#pragma once
#include <array>
#include <vector>

#include "render/kernels/scene_records.h"
#include "sim/host/visual_model.h"

namespace cohort::render {

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<double, 9>;  ///< row-major

/// Poses of an environment's links, as the engine has them.
struct LinkPoses {
  std::vector<Vec3> pos;
  std::vector<Mat3> rot;
};

Mat3 rotation_of(const std::array<double, 4>& quat);
Vec3 turn(const Mat3& r, const Vec3& v);
Mat3 product(const Mat3& a, const Mat3& b);
double dot(const Vec3& a, const Vec3& b);
Vec3 cross(const Vec3& a, const Vec3& b);
/// Of length 1; (0, 0, 1) for one without a length.
Vec3 unit(const Vec3& a);
Vec3 plus(const Vec3& a, const Vec3& b);
Vec3 minus(const Vec3& a, const Vec3& b);

/// As kernels/placing.h takes poses.
class PosesOnHost {
 public:
  explicit PosesOnHost(const LinkPoses& poses) : poses_(poses) {}
  void pos(int link, double* out) const { put(poses_.pos[static_cast<std::size_t>(link)], out); }
  void rot(int link, double* out) const { put(poses_.rot[static_cast<std::size_t>(link)], out); }

 private:
  template <std::size_t N>
  static void put(const std::array<double, N>& from, double* out) {
    for (std::size_t i = 0; i < N; ++i) out[i] = from[i];
  }
  const LinkPoses& poses_;
};

Mount mount_of(sim::VisualTracking tracking);
CameraRecord record_of(const sim::VisualCamera& camera);
EyeRecord eye_of(const sim::VisualModel& model, const CameraRecord& camera, const LinkPoses& poses);

/// A camera in the world that looks at a point; its up is the world's z as far as that goes.
sim::VisualCamera looking_at(const Vec3& pos, const Vec3& target);

}  // namespace cohort::render
