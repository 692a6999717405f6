/// Names, addresses and default states of a compiled model: what a user needs to address an environment, whichever
/// engine runs it. Plain data; made from MuJoCo's model once and saved with ours.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/host/entity.h"

namespace cohort::sim {

enum class JointType : int { kFree = 0, kBall = 1, kSlide = 2, kHinge = 3 };
inline constexpr int kJointQpos[4] = {7, 4, 1, 1};
inline constexpr int kJointDofs[4] = {6, 3, 1, 1};

struct LinkInfo {
  std::string name;
  int parent = -1;
  int first_dof = -1, dof_count = 0;
  int mocap = -1;   ///< index among the mocap bodies
  double mass = 0;  ///< kg
};
struct JointInfo {
  std::string name;
  JointType type = JointType::kHinge;
  int link = 0, qpos = 0, dof = 0;
  bool limited = false;
  std::array<double, 2> range{0, 0};
  std::array<double, 3> axis{0, 0, 1}, pos{0, 0, 0};  ///< in the link's frame
  std::array<double, 2> force_range{
      -std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::infinity()};  ///< N, N m; of all its actuators together
};
struct ActuatorInfo {
  /// What control_dofs_* may use this actuator for.
  enum class Kind : int { kOther, kMotor, kPosition, kVelocity };
  std::string name;
  Kind kind = Kind::kOther;
  int ctrl = 0, ctrl_count = 1;
  int dof = -1;  ///< the dof it drives, when it drives exactly one through a joint
  double gear = 1;
  bool limited = false;  ///< has a control range
  std::array<double, 2> range{0, 0};
  std::vector<int> moves;  ///< the dofs of its joint, or of its tendon's joints
  bool restoring = false;  ///< its force depends on where those dofs are, or on how fast: a motor's does not
  std::array<double, 2> force_range{-std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::infinity()};  ///< N, N m; before the gear
  bool servo = false;          ///< its force follows its length, as that of a position servo does, whatever it pulls at
  double hold = 0;             ///< of a servo: the control with which its force becomes zero in qpos0 at rest
  bool holds_at_once = false;  ///< likewise: from the first step; false where an activation has to get there from zero
};
struct SensorInfo {
  std::string name;
  std::string type;
  int address = 0, size = 1;
};
struct GeomInfo {
  std::string name;
  std::string type;
  int link = 0;
};
/// How many numbers of GeomInfo::type's size count, which may be others in each environment; 0: of planes, meshes and
/// height fields none may.
int size_count(const std::string& shape);
/// A frame on a link.
struct SiteInfo {
  std::string name;
  int link = 0;
  std::array<double, 3> pos{0, 0, 0};      ///< m, in the link's frame
  std::array<double, 4> quat{1, 0, 0, 0};  ///< w x y z, likewise
};
struct KeyframeInfo {
  std::string name;
  double time = 0;
  std::vector<double> qpos, qvel, act, ctrl, mocap_pos, mocap_quat;
  std::vector<double> hold;              ///< (actuators) as ActuatorInfo::hold, in this state
  std::vector<std::uint8_t> hold_later;  ///< (actuators) 1: not ActuatorInfo::holds_at_once, in this state
};

/// How many there are, also of what nobody addresses.
struct PartCounts {
  std::int64_t sites = 0, tendons = 0, equalities = 0, pairs = 0, exclusions = 0, meshes = 0, height_fields = 0,
               cameras = 0;
};

/// An entity of the scene that the model was compiled from.
struct EntityInfo {
  std::string name;
  std::vector<int> links, geoms;
};

struct ModelInfo {
  std::string name;
  int nq = 0, nv = 0, nu = 0, na = 0, nmocap = 0, nsensordata = 0;
  double timestep = 0.002;  ///< s
  std::string integrator, solver, cone;
  bool libccd = false;          ///< the file asks for libccd's search between convex shapes, and some pair is searched
  std::vector<LinkInfo> links;  ///< link 0 is the world
  std::vector<JointInfo> joints;
  std::vector<ActuatorInfo> actuators;
  std::vector<SensorInfo> sensors;
  std::vector<GeomInfo> geoms;
  std::vector<SiteInfo> sites;
  std::vector<KeyframeInfo> keyframes;
  /// Names of cameras and lights, "" of those without one; none of a model that was compiled elsewhere.
  std::vector<std::string> camera_names, light_names;
  PartCounts parts;                    ///< for who looks at the model
  std::vector<EntityInfo> entities;    ///< of a model that a scene saved
  std::vector<CameraOptions> cameras;  ///< likewise
  std::vector<double> qpos0;
  std::vector<double> mocap_pos0, mocap_quat0;
  std::uint64_t content = 0;  ///< a number of MuJoCo's whole compiled model: options, inertias, shapes, gains, ...

  /// Index of the named thing; throws Error with the nearest name.
  int link(const std::string& wanted) const;
  int joint(const std::string& wanted) const;
  int actuator(const std::string& wanted) const;
  int sensor(const std::string& wanted) const;
  int geom(const std::string& wanted) const;
  int site(const std::string& wanted) const;
  /// Also by its index, "0", where no keyframe has that name: files leave names out.
  int keyframe(const std::string& wanted) const;
  /// "keyframe `home`", or "keyframe 2" of one without a name.
  std::string keyframe_text(int keyframe) const;

  /// Names the hinges and slides that stand outside their limits in the default state (-1) or in a keyframe, from where
  /// the first steps throw them, and where to start instead; "" where none does.
  std::string starts_outside_limits(int keyframe = -1) const;

  /// Whether nothing moves the link: neither it nor what it hangs on has a joint or is a mocap body. The world is fixed.
  bool is_fixed(int link) const;
  /// (ngeom) 1 for the geoms of such links.
  std::vector<std::uint8_t> fixed_geoms() const;
  /// Joint of each dof, (nv).
  std::vector<int> joint_of_dof() const;
  /// A number of the names, types, sizes, default state and content: two models that differ in one of them differ in
  /// it.
  std::uint64_t fingerprint() const;
};

}  // namespace cohort::sim
