/// Poses, Jacobians, inertia and bias forces of a model at coordinates that the caller gives, in double, whichever engine
/// simulates it: for controllers, inverse kinematics and what is judged between steps. MuJoCo's own functions compute
/// them (mj_kinematics, mj_jac, mj_makeM, mj_rne) with the model's parameters, not those that environments have of their
/// own. Mocap bodies stand where the model has them.
///
///   const sim::Kinematics& kinematics = scene.kinematics();
///   const int grip = kinematics.site("grip");
///   sim::Kinematics::Posture posture = kinematics.at(qpos);        // (nq)
///   posture.site_pose(grip).pos;
///   posture.site_jacobian(grip, dofs, jacobian);                   // (6, dofs)
///   posture.mass_matrix(dofs, mass), posture.bias(qvel, dofs, bias);
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cohort::sim {

class Kinematics {
  struct Impl;

 public:
  /// mjb: MuJoCo's binary model (Scene::binary_model). Throws Error where it is none.
  explicit Kinematics(std::span<const std::uint8_t> mjb);
  ~Kinematics();

  /// Index of the named site; throws Error with the nearest name. Links are numbered as in ModelInfo.
  int site(const std::string& name) const;

  /// Where a site stands on its link: with the link's pose (Field::kLinkPos, kLinkQuat, kLinkTwist) its own follows,
  /// without MuJoCo and in any environment.
  struct SiteFrame {
    int link = 0;
    std::array<double, 3> pos{};   ///< m, in the link's frame
    std::array<double, 4> quat{};  ///< w x y z, likewise
  };
  SiteFrame site_frame(int site) const;

  struct Pose {
    std::array<double, 3> pos{};   ///< m, in the world
    std::array<double, 4> quat{};  ///< w x y z
    std::array<double, 9> rot{};   ///< row-major, to the world
  };

  /// The model at some coordinates. It holds memory of the Kinematics until its end and is one thread's.
  class Posture {
   public:
    Posture(Posture&& other) noexcept : impl_(other.impl_), data_(other.data_) { other.data_ = nullptr; }
    Posture& operator=(Posture&&) = delete;
    ~Posture();
    Pose link_pose(int link) const;
    Pose site_pose(int site) const;
    /// Of a hinge or slide, in the world: its unit direction.
    std::array<double, 3> joint_axis(int joint) const;
    /// (6, dofs) row-major: linear velocity (m/s) of the link's or site's origin, then angular (rad/s), in the world, for
    /// a unit velocity of each of these dofs.
    void link_jacobian(int link, std::span<const int> dofs, std::span<double> out) const;
    void site_jacobian(int site, std::span<const int> dofs, std::span<double> out) const;
    /// (dofs, dofs), armature included.
    void mass_matrix(std::span<const int> dofs, std::span<double> out);
    /// (dofs): gravity, centrifugal and Coriolis forces (N, N m), those of an armature of tendons aside; qvel: (nv).
    void bias(std::span<const double> qvel, std::span<const int> dofs, std::span<double> out);

   private:
    friend class Kinematics;
    Posture(const Impl& impl, void* data) : impl_(&impl), data_(data) {}
    void point_jacobian(const double* point, int link, std::span<const int> dofs, std::span<double> out) const;
    const Impl* impl_;
    void* data_;  ///< mjData
  };
  /// Any number of threads may hold postures at once; memory is taken for as many as there ever were at once, and kept.
  Posture at(std::span<const double> qpos) const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::sim
