/// What a scene is told before it is built.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "sim/field.h"

namespace cohort::sim {

/// Which code advances the physics.
enum class EngineKind {
  kBatched,  ///< ours: float, one environment per SIMD lane; the features of docs/reference/simulation.md, others are
             ///< refused by name
  kMujoco,   ///< MuJoCo's own thread pool: double, every feature, CPU only
};

/// "batched", "mujoco"; throws Error naming what is allowed.
EngineKind parse_engine(const std::string& text);
const char* to_string(EngineKind kind);

/// How wide the batched engine's vectors are on a CPU. The results are the same bits for every width.
enum class LaneWidth {
  kAuto,    ///< the widest that this processor runs
  kScalar,  ///< one float: what a GPU thread runs
  kAvx2,    ///< 8 floats
  kAvx512,  ///< 16 floats
};
LaneWidth parse_lane_width(const std::string& text);
const char* to_string(LaneWidth width);

/// What an environment reports after a step. Values are bits: several may be set; they stay until the environment is
/// reset.
enum Status : std::int32_t {
  kStatusOk = 0,
  kStatusContactOverflow = 1,     ///< more contacts than capacity: the environment kept its last state
  kStatusConstraintOverflow = 2,  ///< more constraint rows than capacity: likewise
  kStatusBadState = 4,            ///< a NaN, an infinity or a value above 1e10 appeared: likewise
  kStatusEngineError = 8,         ///< MuJoCo raised an error; Engine::error_text says which
};

/// A parameter of the model that may differ between environments.
enum class Parameter : int {
  kLinkMass,      ///< (nbody) kg; inertia stays
  kGeomFriction,  ///< (ngeom * 3)
  kDofArmature,   ///< (nv)
  kDofDamping,    ///< (nv)
  kActuatorGain,  ///< (nactuator * 10), MuJoCo's gainprm
  kActuatorBias,  ///< (nactuator * 10), MuJoCo's biasprm
  /// (nbody * 3) m, the centre of mass in the link's frame. MuJoCo's engine keeps that of a link whose inertia it
  /// simplifies: alone, with its centre at its origin and axes of inertia along its own.
  kLinkCom,
  kLinkInertia,         ///< (nbody * 3) kg m^2, about the centre of mass along the axes of inertia; mass stays
  kLinkInertiaQuat,     ///< (nbody * 4) unit w x y z, of those axes in the link's frame; MuJoCo's engine: as kLinkCom
  kGravity,             ///< (3) m/s^2
  kDofFrictionloss,     ///< (nv) N, N m; batched engine: 0 of dofs that have none in the model
  kJointStiffness,      ///< (njnt) N/m, N m/rad; batched engine: of hinges and slides
  kJointRange,          ///< (njnt * 2) rad, m: lower and upper limit; of joints that have limits in the model
  kActuatorForceRange,  ///< (nactuator * 2) N, N m: before the gear; of actuators that have one in the model
  /// (ngeom * 3) m and (ngeom * 4) unit w x y z, in the link's frame. Inertia stays; so do sensors of a geom's frame and
  /// tendons that wrap around a geom.
  kGeomPos,
  kGeomQuat,
  kGeomSize,  ///< (ngeom * 3) m, MuJoCo's geom_size; of spheres, capsules, ellipsoids, cylinders, boxes. Inertia stays
};
inline constexpr int kParameterCount = 17;

/// s. MuJoCo takes smaller numbers for zero (mjMINVAL).
inline constexpr double kLeastTimestep = 1e-15;

/// Empty fields keep what the model's file says.
struct SceneOptions {
  std::optional<double> timestep;                ///< s
  std::optional<std::array<double, 3>> gravity;  ///< m/s^2
  std::optional<std::string> integrator;         ///< Euler, RK4, implicit, implicitfast
  std::optional<std::string> solver;             ///< PGS, CG, Newton
  std::optional<std::string> cone;               ///< pyramidal, elliptic
  std::optional<int> iterations;                 ///< of the constraint solver, at most
  std::optional<double> tolerance;               ///< of the constraint solver, MuJoCo's scaled cost and gradient
  std::optional<int> ls_iterations;              ///< of the solver's line search, at most
  std::optional<double> ls_tolerance;            ///< of the line search, as a share of the slope
  std::optional<int> noslip_iterations;          ///< sweeps over the friction forces after the solver, at most
  std::optional<double> noslip_tolerance;        ///< of these sweeps
  std::optional<double> impratio;                ///< of frictional to normal constraint impedance
  /// Pairs of links that do not collide, besides those that the model leaves out: names of links, with or without their
  /// entity's before them ("robot/hand", "hand"). The world's is `world`.
  std::vector<std::array<std::string, 2>> exclude{};
  EngineKind engine = EngineKind::kBatched;
  DeviceId device{};  ///< where the batched engine runs
  LaneWidth lanes = LaneWidth::kAuto;
  int threads = 1;                     ///< the scene uses so many cores and no more
  int substeps = 1;                    ///< physics steps per Scene::step()
  std::uint64_t seed = 0;              ///< with the global environment id, the key of all randomness
  std::int64_t first_environment = 0;  ///< global id of this scene's environment 0
  /// Contacts per environment of the batched engine; 0: all that the model's pairs of geoms can make. The engine's
  /// choice at build, no part of a compiled model.
  int contact_capacity = 0;
  /// Environments with at most so many constraint rows, 64 at most, are solved for the rows' forces instead of the
  /// accelerations: the same solution, other rounding. -1: chosen from the model, 64 for large trees (24 on a CUDA
  /// device), 24 or 0 else. With equal row_space a CPU and a CUDA device give the same bits.
  /// Newton's solver and pyramidal cones only, of the batched engine. The engine's choice at build, no part of a
  /// compiled model. docs/design/decisions/row-space.md
  int row_space = -1;
  /// Parameters that environments will have of their own: build() counts their memory before it takes any, and takes
  /// it. Others take theirs when they are first asked for.
  std::vector<Parameter> parameters{};
  /// Derived fields that step() leaves behind, as MuJoCo's mj_step does: those of the last time that the step evaluated
  /// the forces, RK4's fourth stage or the state before Euler's last substep. kLinkPos, kLinkQuat and those that follow
  /// kSensors, which no other scene has. kLinkForce of the batched engine knows no equalities between links and no
  /// spatial tendons: build() refuses such a model by name.
  std::vector<Field> step_leaves{};
  /// Of the fields in step_leaves, those that follow from positions and velocities alone (kLinkPos, kLinkQuat, kLinkCom,
  /// kLinkInertia, kLinkVelocity, kLinkTwist) are those of the state that the step ends in, as after forward(); false: of
  /// the state that the step evaluated last, which is one timestep behind qpos and qvel. Forces are always of that
  /// evaluation. Costs the kinematics once for each call of Engine::step, whatever its number of substeps.
  bool leave_present = false;
  /// Scene::step() says which environment stopped first and why, and throws Error when none goes on; false: kStatus says
  /// it alone.
  bool report_stops = true;
  /// Compiling a file happens in a child process with these limits, so that a hostile or broken file ends as an Error.
  double compile_seconds = 60;              ///< CPU time; a file that gives nothing is waited for as long, 20 s at most
  double compile_memory = 8.0 * (1 << 30);  ///< bytes of address space, above what this process has mapped
};

}  // namespace cohort::sim
