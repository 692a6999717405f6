#include "tasks/libero/start_state.h"

#include <algorithm>
#include <cmath>

namespace cohort::tasks::libero {

std::vector<double> given_state(const SceneFolder& folder, std::uint64_t seed) {
  const auto state = folder.initial_state(static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(folder.states)));
  return {state.begin(), state.end()};
}

std::vector<double> perturbed_state(const SceneFolder& folder, const Frames& frames, std::uint64_t seed,
                                    const Perturbation& perturbation) {
  const RandomStream random(seed, RandomPurpose::kEnvironment, 0, 0);
  const auto uniform = [&](std::uint64_t i) { return 2 * static_cast<double>(random.uniform(i)) - 1; };
  const auto which =
      static_cast<std::uint64_t>(static_cast<double>(random.uniform(0)) * static_cast<double>(folder.states));
  std::vector<double> state = given_state(folder, std::min(which, static_cast<std::uint64_t>(folder.states) - 1));
  double* qpos = state.data() + 1;  // after the time
  std::uint64_t next = 1;
  for (const std::string& name : folder.arm_joints)
    qpos[frames.joint_at(frames.joint(name)).qpos] += perturbation.arm * uniform(next++);
  for (const auto& [name, thing] : folder.things) {
    for (const std::string& joint_name : thing.joints) {
      const Frames::Joint& joint = frames.joint_at(frames.joint(joint_name));
      double* q = qpos + joint.qpos;
      if (joint.kind == Frames::Kind::kFree) {
        q[0] += perturbation.shift * uniform(next), q[1] += perturbation.shift * uniform(next + 1);
        const Quat turned = quaternion({0, 0, 1}, perturbation.turn * uniform(next + 2)) * Quat{q[3], q[4], q[5], q[6]};
        std::copy(turned.begin(), turned.end(), q + 3);
        next += 3;
      } else {
        // What is shut, or open, to its end stays so.
        const double way = joint.high - joint.low, shifted = q[0] + perturbation.articulation * way * uniform(next++);
        if (way > 0 && q[0] > joint.low && q[0] < joint.high && std::abs(q[0]) > 1e-3 * way)
          q[0] = std::clamp(shifted, joint.low + 0.01 * way, joint.high - 0.01 * way);
      }
    }
  }
  return state;
}

}  // namespace cohort::tasks::libero
