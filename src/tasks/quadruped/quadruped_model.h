/// The robot dog of quadruped-velocity: model, ground, and where its feet and knees are. A design of our own of 12 kg,
/// as large as the small dogs that are sold: four legs with an abduction, a hip and a knee joint each, 0.2 m from hip
/// to knee and from knee to foot, feet that are spheres.
///
///   const QuadrupedGround ground(/*rough=*/true);
///   const std::string mjcf = quadruped_mjcf(ground);
///   const LegPoints leg = leg_points(0, {0.0, 0.8, -1.5});     // front left: foot and knee in the trunk's frame
///   ground.height(x, y);                                       // m
///
/// Coordinates of the model: 7 of the trunk (position, quaternion), then abduction, hip, knee of the legs front left,
/// front right, rear left, rear right.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "tasks/controllers/vec3.h"

namespace cohort::tasks {

inline constexpr std::size_t kQuadrupedLegs = 4, kQuadrupedJoints = 12;
/// Where the legs stand: rad.
inline constexpr std::array<double, kQuadrupedJoints> kQuadrupedStance{0, 0.8, -1.5, 0, 0.8, -1.5,
                                                                       0, 0.8, -1.5, 0, 0.8, -1.5};
inline constexpr double kQuadrupedHeight = 0.315;  ///< m, of the trunk's middle over flat ground when it stands
inline constexpr double kQuadrupedFoot = 0.022, kQuadrupedKnee = 0.025;     ///< m, radii
inline constexpr double kQuadrupedStiffness = 25, kQuadrupedDamping = 0.6;  ///< N m/rad, N m s/rad
inline constexpr double kQuadrupedTorque = 24;                              ///< N m at most
inline constexpr double kQuadrupedTimestep = 0.005;                         ///< s
inline constexpr const char* kQuadrupedLegNames[kQuadrupedLegs] = {"fl", "fr", "rl", "rr"};

/// Flat, or a height field of 60 m x 60 m whose corners, 0.25 m apart, lie between 0 and 0.06 m: always the same one.
/// rising: flat within 2 m of the middle, from where it gets rougher until 8 m.
class QuadrupedGround {
 public:
  explicit QuadrupedGround(bool rough, bool rising = false);
  bool rough() const { return !corners_.empty(); }
  double height(double x, double y) const;
  /// Elements of MJCF: what belongs into <asset>, and the geom "floor".
  std::string asset() const;
  std::string geom() const;

 private:
  std::vector<float> corners_;  // rows along y
};

std::string quadruped_mjcf(const QuadrupedGround& ground);

/// Middles of the foot and of the knee in the trunk's frame.
struct LegPoints {
  Vec3 foot, knee;
};
/// joints: abduction, hip, knee.
LegPoints leg_points(std::size_t leg, const std::array<double, 3>& joints);

}  // namespace cohort::tasks
