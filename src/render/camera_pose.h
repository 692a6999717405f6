/// Where cameras and lights stand, given their links' poses: MuJoCo's mj_camlight (engine_core_smooth.c).
#pragma once
#include <array>
#include <vector>

#include "sim/visual_model.h"

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

/// Centre of mass of a link and all that hangs on it.
Vec3 subtree_com(const sim::VisualModel& model, const LinkPoses& poses, int link);

struct CameraPose {
  Vec3 pos{0, 0, 0};
  Mat3 axes{1, 0, 0, 0, 1, 0, 0, 0, 1};  ///< columns: right, up, back
};
CameraPose pose_of(const sim::VisualModel& model, const sim::VisualCamera& camera, const LinkPoses& poses);

struct LightPose {
  Vec3 pos{0, 0, 0}, dir{0, 0, -1};
};
LightPose pose_of(const sim::VisualModel& model, const sim::VisualLight& light, const LinkPoses& poses);

/// A camera in the world that looks at a point; its up is the world's z as far as that goes.
sim::VisualCamera looking_at(const Vec3& pos, const Vec3& target);

}  // namespace cohort::render
