/// The quantities that every environment has: names for an engine's arrays.
#pragma once
#include <bitset>

namespace cohort::sim {

/// A quantity of every environment. Views have shape (n_envs, size).
enum class Field : int {
  // State and inputs: read and written by step(); the caller may write them between steps.
  kQpos,         ///< (nq)
  kQvel,         ///< (nv)
  kAct,          ///< (na)
  kWarmstart,    ///< (nv) acceleration the constraint solver starts from
  kTime,         ///< (1) s
  kCtrl,         ///< (nu)
  kQfrcApplied,  ///< (nv) generalized forces
  kXfrcApplied,  ///< (nbody * 6) force (N) and torque (N m) at each link's centre of mass, in the world
  kMocapPos,     ///< (nmocap * 3)
  kMocapQuat,    ///< (nmocap * 4)
  // Derived from the present state by Engine::forward(), and left behind by step() where SceneOptions::step_leaves
  // names them: read only.
  kQacc,      ///< (nv)
  kLinkPos,   ///< (nbody * 3)
  kLinkQuat,  ///< (nbody * 4)
  kSensors,   ///< (nsensordata)
  // The same, of scenes only whose SceneOptions::step_leaves names them. The first four are MuJoCo's xipos, cinert, cvel,
  // cfrc_ext; the last three of these about the centre of mass of the links that hang on the same child of the world,
  // along the world's axes.
  kLinkCom,         ///< (nbody * 3) m, each link's centre of mass in the world
  kLinkInertia,     ///< (nbody * 10) xx yy zz xy xz yz (kg m^2), mass times position (kg m), mass (kg)
  kLinkVelocity,    ///< (nbody * 6) angular (rad/s), linear (m/s)
  kLinkForce,       ///< (nbody * 6) torque (N m) and force (N) of contacts and of kXfrcApplied
  kQfrcActuator,    ///< (nv) generalized forces of the actuators
  kQfrcConstraint,  ///< (nv) generalized forces of the constraints
  kLinkTwist,       ///< (nbody * 6) linear velocity (m/s) of each link's origin, angular velocity (rad/s), in the world
  kGeomForce,  ///< (ngeom * 6) N, in the world: contact forces on each geom, summed over the geoms that are fixed to
               ///< the world (ModelInfo::is_fixed), then over all others; zero where there is none
  // Diagnostics of the last step, int32: read only.
  kStatus,            ///< (1) bits of Status
  kContactCount,      ///< (1)
  kSolverIterations,  ///< (1)
  kFieldCount,
};
inline constexpr int kFieldCount = static_cast<int>(Field::kFieldCount);
/// By the fields' numbers.
using FieldSet = std::bitset<kFieldCount>;

constexpr bool is_derived(Field field) {
  return field >= Field::kQacc && field <= Field::kGeomForce;
}
/// Derived, and of no scene that does not ask for it.
constexpr bool is_on_request(Field field) {
  return field >= Field::kLinkCom && field <= Field::kGeomForce;
}
/// Whether a scene whose steps leave these has the field.
inline bool has_field(const FieldSet& step_leaves, Field field) {
  return !is_on_request(field) || step_leaves.test(static_cast<std::size_t>(field));
}

}  // namespace cohort::sim
