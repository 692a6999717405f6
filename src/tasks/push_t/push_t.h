/// Push-T (Florence et al., "Implicit behavioral cloning", 2021; Chi et al., "Diffusion Policy", 2023) in its state
/// version: a round agent pushes a T-shaped block onto a goal pose. Bodies, control and reward are those of the
/// package gym-pusht (gym_pusht/envs/pusht.py), on the same physics library, Chipmunk2D.
///
/// Lengths are pixels of a world of 512 x 512, angles radians, time seconds. One control step of 0.1 s is ten physics
/// steps of 0.01 s. There is no gravity and no friction; the block loses its speed between physics steps (damping 0).
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "tasks/push_t/convex_area.h"

namespace cohort::tasks {

inline constexpr double kPushTWorld = 512;             ///< px: actions lie in [0, 512]
inline constexpr double kPushTAgentRadius = 15;        ///< px
inline constexpr double kPushTTimestep = 0.01;         ///< s of a physics step
inline constexpr int kPushTSubsteps = 10;              ///< physics steps of a control step
inline constexpr int kPushTMaxSteps = 300;             ///< control steps after which the published episodes end
inline constexpr double kPushTStiffness = 100;         ///< 1/s²: the agent's acceleration per px to its target
inline constexpr double kPushTDamping = 20;            ///< 1/s: and per px/s of its speed; critical with the stiffness
inline constexpr double kPushTSuccessCoverage = 0.95;  ///< of the goal's area

using PushTAction = std::array<double, 2>;  ///< target x, y of the agent
using PushTState = std::array<double, 5>;   ///< agent x, y, block x, y, block angle in [0, 2 pi)

/// Where the T's own origin, the middle of the bar's outer edge, is, and how far the T is turned.
struct PushTPose {
  Point2 origin;
  double angle = 0;
};

inline constexpr PushTPose kPushTGoal = {{256, 256}, 0.78539816339744830962};

/// What decides about the future, but for the solver's warm start.
struct PushTSituation {
  Point2 agent, agent_velocity;
  PushTPose block;
};

struct PushTStep {
  PushTState observation;
  double coverage = 0;   ///< share of the goal's area that the block covers
  double reward = 0;     ///< coverage / 0.95, at most 1
  bool success = false;  ///< coverage above 0.95: the episode ends
};

/// The two boxes of the T in its own frame, bar then stem, and its outline of 8 corners, counter-clockwise (y up).
const std::array<std::array<Point2, 4>, 2>& push_t_boxes();
const std::array<Point2, 8>& push_t_outline();

/// A point of the T's frame in the world.
Point2 to_world(const PushTPose& pose, Point2 local);

/// Share of the goal's area (6300 px²) that a T at `pose` covers.
double push_t_coverage(const PushTPose& pose);

/// The state that gym-pusht 0.1.8 draws for reset(seed=seed): agent x, y in 50 … 449, block x, y in 100 … 399, angle in
/// [-pi, pi), from gymnasium's np_random (NumPy's PCG64). Versions before 0.1.6 drew otherwise.
PushTState push_t_reset_state(std::uint32_t seed);

/// One environment. Not for use by two threads at a time; any number may exist.
class PushT {
 public:
  /// As after reset(0).
  PushT();
  ~PushT();
  PushT(PushT&&) noexcept;
  PushT& operator=(PushT&&) noexcept;

  /// gym-pusht's reset(seed=seed). Returns the observation.
  PushTState reset(std::uint32_t seed);
  /// gym-pusht's reset_to_state: the block's angle is set after its position, about the centre of gravity, so that the
  /// block's origin ends elsewhere than `state` says; then one physics step. Throws Error for what is not finite.
  PushTState reset_to(const PushTState& state);
  /// Exactly this situation, without a physics step and without memory of contacts. Throws Error for what is not
  /// finite.
  void place(const PushTSituation& situation);

  /// One control step (0.1 s). Throws Error for an action that is not finite; actions outside [0, 512] are taken as
  /// they are, as gym-pusht does.
  PushTStep step(const PushTAction& action);
  /// One physics step (0.01 s) towards `action`.
  void substep(const PushTAction& action);

  PushTState observation() const;
  PushTSituation situation() const;
  /// The corners of the two boxes in the world, x0, y0, x1, …, in the order of gym-pusht's get_keypoints.
  std::array<double, 16> keypoints() const;
  double coverage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::tasks
