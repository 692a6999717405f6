#include "tasks/libero/drawer_expert.h"

#include <algorithm>
#include <cmath>

namespace cohort::tasks::libero {
namespace {

constexpr double kClear = 0.07;    // m in front of the handle where the hand comes down
constexpr double kAbove = 0.10;    // m over the handle on the way there
constexpr double kReach = 0.05;    // m that an action of 1 is
constexpr double kGain = 1.6;      // of what is missing; the controller gets about an eighth of it in a step
constexpr double kPush = 0.03;     // m into the handle that a push aims at
constexpr double kBeside = 0.025;  // m that a push may be off the handle's middle

/// The joint that the goal wants closed, or none.
std::size_t drawer_joint(const Simulation& simulation) {
  const SceneFolder& folder = simulation.folder();
  const std::size_t none = simulation.frames().joints();
  if (folder.goal.size() != 1 || folder.goal[0].size() != 2 || folder.goal[0][0] != "close") return none;
  const auto site = folder.sites.find(folder.goal[0][1]);
  if (site == folder.sites.end() || site->second.joints.size() != 1) return none;
  const std::size_t joint = simulation.frames().joint(site->second.joints.front());
  return simulation.frames().joint_at(joint).kind == Frames::Kind::kSlide ? joint : none;
}

double clamped(double x, double most) {
  return std::clamp(x, -most, most);
}

}  // namespace

bool DrawerExpert::knows(const Simulation& simulation) {
  const std::size_t joint = drawer_joint(simulation);
  if (joint == simulation.frames().joints()) return false;
  const auto boxes = simulation.frames().boxes();
  const std::size_t body = simulation.frames().joint_at(joint).body;
  return std::any_of(boxes.begin(), boxes.end(), [&](const Frames::Box& box) { return box.body == body; });
}

DrawerExpert::DrawerExpert(const Simulation& simulation)
    : simulation_(simulation),
      poses_(simulation.frames().poses()),
      robot_(simulation.robot()),
      joint_(drawer_joint(simulation)) {
  const Frames::Joint& joint = simulation.frames().joint_at(joint_);
  // Positions along the joint's axis grow as the drawer shuts: the handle has the smallest.
  double least = 0;
  bool any = false;
  for (const Frames::Box& box : simulation.frames().boxes()) {
    if (box.body != joint.body) continue;
    const Vec3 axis = transpose(rotation(box.quat)) * joint.axis;
    double front = dot(box.pos, joint.axis);
    for (std::size_t k = 0; k < 3; ++k) front -= std::abs(axis[k]) * box.half[k];
    if (!any || front < least) least = front, handle_ = box, any = true;
  }
}

void DrawerExpert::act(std::span<const double> qpos, std::span<float> action) {
  const Frames& frames = simulation_.frames();
  frames.place(qpos, poses_);
  const Vec3 hand = simulation_.robot().grip(qpos, robot_).pos;
  const std::size_t body = frames.joint_at(joint_).body;
  const Vec3 inward = frames.joint_axis(poses_, joint_);
  const Mat3 turned = rotation(poses_.quat[body]);
  // The handle's outer face.
  const Vec3 axis = transpose(turned * rotation(handle_.quat)) * inward;
  double depth = 0;
  for (std::size_t k = 0; k < 3; ++k) depth += std::abs(axis[k]) * handle_.half[k];
  const Vec3 face = poses_.pos[body] + turned * handle_.pos - depth * inward;
  const Vec3 missing = hand - face;
  const double ahead = -dot(missing, inward), over = missing[2];
  const Vec3 aside = missing + ahead * inward - Vec3{0, 0, over};
  const double beside = norm(aside);

  Vec3 target = face;
  if (ahead > 0.005 && beside < kBeside && over < 0.03) {
    target = target + kPush * inward;
  } else if (over < 0.06 && (ahead < 0.03 || beside > kBeside)) {
    target = hand;  // low, and not where it should be: up first
    target[2] = face[2] + 1.5 * kAbove;
  } else {
    target = target - kClear * inward;
    // Down where it is in front.
    const double off = std::max(beside, std::abs(ahead - kClear));
    target[2] += kAbove * std::clamp((off - 0.015) / 0.02, 0.0, 1.0);
  }
  for (std::size_t k = 0; k < 3; ++k)
    action[k] = static_cast<float>(clamped(kGain * (target[k] - hand[k]) / kReach, 1));
  for (std::size_t k = 3; k < 6; ++k) action[k] = 0;
  action[6] = 1;
}

}  // namespace cohort::tasks::libero
