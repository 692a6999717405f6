#include "sim/host/lost_positions.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/format.h"
#include "sim/host/scene.h"

namespace cohort::sim {

std::string describe_lost_positions(Scene& scene, std::int64_t steps) {
  if (scene.engine().kind() != EngineKind::kBatched) return "";
  // A millimetre or milliradian lost of a hundredth moved counts; rounding is half of what the next float is away, and
  // may be to one side in every step.
  constexpr double kCounts = 0.01, kLost = 1e-3, kLostShare = 1e-3;
  const ModelInfo& info = scene.info();
  const std::vector<float> q = scene.get_qpos(), v = scene.get_qvel();
  double most = 0, at = 0, step = 0, spacing = 0;
  int env = 0;
  const JointInfo* joint = nullptr;
  for (const JointInfo& j : info.joints) {
    // Orientations are unit quaternions: they are never far from zero.
    const int coordinates = j.type == JointType::kFree ? 3 : j.type == JointType::kBall ? 0 : 1;
    for (int k = 0; k < coordinates; ++k) {
      for (int e = 0; e < scene.n_envs(); ++e) {
        const float where = std::abs(q[static_cast<std::size_t>(e * info.nq + j.qpos + k)]);
        const double between = static_cast<double>(std::nextafter(where, std::numeric_limits<float>::max()) - where);
        const double moves =
            std::abs(static_cast<double>(v[static_cast<std::size_t>(e * info.nv + j.dof + k)])) * info.timestep;
        const double lost = 0.5 * between * static_cast<double>(steps);
        if (moves * static_cast<double>(steps) < kCounts || lost < kLost || 0.5 * between < kLostShare * moves ||
            lost <= most) {
          continue;
        }
        most = lost, at = static_cast<double>(where), step = moves, spacing = between, env = e, joint = &j;
      }
    }
  }
  if (joint == nullptr) return "";
  const char* unit = joint->type == JointType::kHinge ? "rad" : "m";
  return format(
      "joint {} of environment {} is {:.6g} {} out and moves {:.3g} {} a timestep, which single precision rounds to "
      "multiples of {:.3g} there: after {} timesteps it may be {:.2g} {} off",
      joint->name.empty() ? format("{}", joint - info.joints.data()) : format("`{}`", joint->name),
      scene.global_environment_id(env), at, unit, step, unit, spacing, steps, most, unit);
}

}  // namespace cohort::sim
