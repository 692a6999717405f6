#include "tasks/libero/drawer_expert.h"

#include <algorithm>
#include <cmath>

namespace cohort::tasks::libero {
namespace {

constexpr double kBelowEdge = 0.004;  // m below the drawer's upper edge: the tips reach 15 mm below the grip site
constexpr double kMostAbove = 0.02;   // m that the rest of the cabinet may be higher than the drawer
constexpr double kClear = 0.09;       // m in front of the drawer where the hand comes down
constexpr double kAbove = 0.10;       // m over that on the way there
constexpr double kReach = 0.05;       // m that an action of 1 is
constexpr double kGain = 1.6;         // of what is missing; the controller gets about an eighth of it in a step
constexpr double kPush = 0.03;        // m into the drawer that a push aims at
constexpr double kBeside = 0.025;     // m that a push may be off the middle

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

/// Of a body's boxes, in the world: the highest point.
double top_of(const Frames& frames, const Frames::Poses& poses, std::size_t body) {
  double top = -1e9;
  for (const Frames::Box& box : frames.boxes()) {
    if (box.body != body) continue;
    const Mat3 turned = rotation(poses.quat[body] * box.quat);
    double half = 0;
    for (std::size_t k = 0; k < 3; ++k) half += std::abs(turned[6 + k]) * box.half[k];
    top = std::max(top, (poses.pos[body] + rotation(poses.quat[body]) * box.pos)[2] + half);
  }
  return top;
}

}  // namespace

bool DrawerExpert::knows(const Simulation& simulation) {
  const Frames& frames = simulation.frames();
  const std::size_t joint = drawer_joint(simulation);
  if (joint == frames.joints()) return false;
  Frames::Poses poses = frames.poses();
  frames.place(simulation.qpos(0), poses);
  const std::size_t body = frames.joint_at(joint).body;
  const double top = top_of(frames, poses, body);
  if (top < -1e8) return false;
  // Below another drawer the hand, which is broader than the fingers, would meet that one first.
  for (std::size_t other = 1; other < frames.bodies(); ++other)
    if (other != body && (frames.parent(other) == frames.parent(body) || other == frames.parent(body)) &&
        top_of(frames, poses, other) > top + kMostAbove)
      return false;
  return true;
}

DrawerExpert::DrawerExpert(const Simulation& simulation)
    : simulation_(simulation), poses_(simulation.frames().poses()), joint_(drawer_joint(simulation)) {
  const Frames& frames = simulation.frames();
  frames.place(simulation.qpos(0), poses_);
  const std::size_t body = frames.joint_at(joint_).body;
  const Vec3 inward = frames.joint_axis(poses_, joint_);
  const Mat3 turned = rotation(poses_.quat[body]);
  // Half of what a box measures along a direction of the world, and its middle.
  const auto half_along = [&](const Frames::Box& box, const Vec3& direction) {
    const Vec3 axis = transpose(turned * rotation(box.quat)) * direction;
    return std::abs(axis[0]) * box.half[0] + std::abs(axis[1]) * box.half[1] + std::abs(axis[2]) * box.half[2];
  };
  const auto middle = [&](const Frames::Box& box) { return poses_.pos[body] + turned * box.pos; };
  constexpr Vec3 kVertical{0, 0, 1};
  const double height = top_of(frames, poses_, body) - kBelowEdge;
  // Of what is so high, that which sticks out most.
  double least = 1e9;
  Vec3 point{};
  for (const Frames::Box& box : frames.boxes()) {
    if (box.body != body || middle(box)[2] + half_along(box, kVertical) < height) continue;
    const Vec3 face = middle(box) - half_along(box, inward) * inward;
    if (dot(face, inward) < least) least = dot(face, inward), point = face;
  }
  point[2] = height;
  front_ = transpose(turned) * (point - poses_.pos[body]);
}

void DrawerExpert::act(std::span<const double> qpos, std::span<float> action) {
  const Frames& frames = simulation_.frames();
  frames.place(qpos, poses_);
  const Vec3 hand = simulation_.robot().grip(qpos).pos;
  const std::size_t body = frames.joint_at(joint_).body;
  const Vec3 inward = frames.joint_axis(poses_, joint_);
  const Vec3 face = poses_.pos[body] + rotation(poses_.quat[body]) * front_;
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
