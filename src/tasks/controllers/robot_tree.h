/// Kinematics and dynamics of a robot that stands in the world: where its sites are, Jacobians, mass matrix and bias
/// force, in double from positions and velocities of joints, whatever engine moves them. What MuJoCo's mj_jacSite,
/// mj_fullM and qfrc_bias are of the same model.
///
///   const RobotTree tree(scene.binary_model(), "base");
///   const int tool = tree.site("grip");
///   RobotTree::Workspace w(tree);
///   tree.place(qpos, w);                             // the whole model's qpos
///   tree.site_pose(w, tool), tree.jacobian(w, tool, jacobian);
///   tree.mass_matrix(w, mass), tree.bias(w, qvel, bias);
///
/// Formulas: Featherstone, "Rigid Body Dynamics Algorithms" (2008), recursive Newton-Euler (table 5.1) and composite
/// bodies (table 6.2), with all spatial vectors in the world's axes about the world's origin.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/controllers/vec3.h"

namespace cohort::tasks {

class RobotTree {
 public:
  /// The body `root` and all below it. mjb: MuJoCo's binary model. Throws Error for a body that is not there, a root
  /// that moves, or a ball or free joint.
  RobotTree(std::span<const std::uint8_t> mjb, const std::string& root);

  /// Joints, in the model's order: hinges and slides, one dof each.
  int dofs() const { return static_cast<int>(joints_.size()); }
  std::span<const int> qpos_addresses() const { return qpos_; }  ///< of the dofs, in the model
  std::span<const int> dof_addresses() const { return dof_; }
  std::span<const double> lower() const { return lower_; }  ///< limits of the joints; infinite where there is none
  std::span<const double> upper() const { return upper_; }
  /// Throws Error with the nearest name.
  int site(const std::string& name) const;
  int joint(const std::string& name) const;  ///< dof of the joint

  struct Twist {
    Vec3 angular{}, linear{};  ///< linear: of the point of the body that is at the world's origin
  };
  struct Inertia {
    double mass = 0;
    Vec3 first{};                          ///< mass times centre of mass
    std::array<double, 6> about_origin{};  ///< xx yy zz xy xz yz
  };
  struct Workspace {
    explicit Workspace(const RobotTree& tree);
    std::vector<Vec3> pos, anchor, axis;  ///< of bodies; of joints, in the world
    std::vector<Quat> quat;
    std::vector<Mat3> rot;
    std::vector<Twist> motion, velocity, acceleration, force;  ///< motion: of a joint's unit velocity
    std::vector<Inertia> inertia, composite;
  };
  struct SitePose {
    Vec3 pos{};
    Mat3 rot{};
  };

  /// Poses of all bodies; qpos: the model's whole.
  void place(std::span<const double> qpos, Workspace& w) const;
  SitePose site_pose(const Workspace& w, int site) const;
  /// (6, dofs) row-major: linear velocity of the site, then angular, in the world, per unit velocity of each dof.
  void jacobian(const Workspace& w, int site, std::span<double> out) const;
  /// (dofs, dofs), armature included.
  void mass_matrix(Workspace& w, std::span<double> out) const;
  /// (dofs): forces of gravity, centrifugal and Coriolis forces; qvel: the model's whole.
  void bias(Workspace& w, std::span<const double> qvel, std::span<double> out) const;

 private:
  struct Body {
    int parent = -1;  ///< among bodies_; -1: the world
    int first_joint = 0, joint_count = 0;
    Vec3 pos{}, ipos{}, diagonal{};
    Quat quat{}, iquat{};
    double mass = 0;
  };
  struct Joint {
    std::string name;
    int body = 0;
    bool slide = false;
    Vec3 pos{}, axis{};
    double qpos0 = 0, armature = 0;
    int parent = -1;  ///< the joint before it on the way to the world
  };
  struct Site {
    std::string name;
    int body = 0;
    Vec3 pos{};
    Quat quat{};
  };
  void place_inertia(Workspace& w) const;
  Vec3 base_pos_{};
  Quat base_quat_{1, 0, 0, 0};
  Vec3 gravity_{};
  std::vector<Body> bodies_;
  std::vector<Joint> joints_;
  std::vector<Site> sites_;
  std::vector<int> qpos_, dof_;
  std::vector<double> lower_, upper_;
};

}  // namespace cohort::tasks
