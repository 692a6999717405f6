/// Where the bodies and sites of a scene are, in double from qpos alone, whatever engine moves them.
///
///   const Frames frames(scene);
///   Frames::Poses poses = frames.poses();
///   frames.place(qpos, poses);
///   const Vec3& p = poses.pos[frames.body("plate_1_main")];
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/vec3.h"
#include "sim/host/kinematics.h"
#include "sim/host/scene.h"

namespace cohort::tasks::libero {

class Frames {
 public:
  /// The scene must outlive this.
  explicit Frames(const sim::Scene& scene);

  /// Throw Error with the nearest name.
  std::size_t body(const std::string& name) const;
  std::size_t site(const std::string& name) const;
  std::size_t joint(const std::string& name) const;

  /// Of all bodies, in the world.
  struct Poses {
    std::vector<Vec3> pos;
    std::vector<Quat> quat;
  };
  Poses poses() const { return {std::vector<Vec3>(bodies_.size()), std::vector<Quat>(bodies_.size())}; }
  void place(std::span<const double> qpos, Poses& poses) const;

  struct Pose {
    Vec3 pos{};
    Mat3 rot{};
  };
  Pose site_pose(const Poses& poses, std::size_t site) const;

  enum class Kind { kFree, kBall, kSlide, kHinge };
  struct Joint {
    std::string name;
    Kind kind = Kind::kHinge;
    std::size_t body = 0, qpos = 0, dof = 0;
    Vec3 axis{};               ///< in the body
    double low = 0, high = 0;  ///< range
  };
  const Joint& joint_at(std::size_t i) const { return joints_[i]; }
  std::size_t joints() const { return joints_.size(); }
  std::size_t bodies() const { return bodies_.size(); }
  std::size_t parent(std::size_t body) const { return bodies_[body].parent; }

  /// A box that can touch; others of a body's geoms are not kept.
  struct Box {
    std::size_t body = 0;
    Vec3 pos{}, half{};
    Quat quat{1, 0, 0, 0};
  };
  std::span<const Box> boxes() const { return boxes_; }
  /// In the world; of a slide or hinge.
  Vec3 joint_axis(const Poses& poses, std::size_t joint) const;

 private:
  struct Body {
    std::string name;
    std::size_t parent = 0;
  };
  struct SiteFrame {
    std::string name;
    std::size_t body = 0;
    Vec3 pos{};
    Quat quat{1, 0, 0, 0};
  };
  const sim::Kinematics& kinematics_;
  std::vector<Body> bodies_;
  std::vector<Joint> joints_;
  std::vector<SiteFrame> sites_;
  std::vector<Box> boxes_;
};

}  // namespace cohort::tasks::libero
