#include "tasks/libero/observations.h"

#include <algorithm>
#include <cmath>

namespace cohort::tasks::libero {
namespace {

/// x y z w, w at least 0 (robosuite/utils/transform_utils.py, mat2quat).
std::array<double, 4> quaternion_of(const Mat3& r) {
  // The largest of the four first, so that nothing is divided by a small number.
  const double trace = r[0] + r[4] + r[8];
  Quat q;
  if (trace > 0) {
    const double s = 2 * std::sqrt(1 + trace);
    q = {0.25 * s, (r[7] - r[5]) / s, (r[2] - r[6]) / s, (r[3] - r[1]) / s};
  } else {
    const std::size_t i = r[0] > r[4] && r[0] > r[8] ? 0 : r[4] > r[8] ? 1 : 2, j = (i + 1) % 3, k = (i + 2) % 3;
    const double s = 2 * std::sqrt(std::max(0.0, 1 + r[4 * i] - r[4 * j] - r[4 * k]));
    q[0] = (r[3 * k + j] - r[3 * j + k]) / s;
    q[1 + i] = 0.25 * s, q[1 + j] = (r[3 * j + i] + r[3 * i + j]) / s, q[1 + k] = (r[3 * k + i] + r[3 * i + k]) / s;
  }
  const double sign = q[0] < 0 ? -1 : 1;
  return {sign * q[1], sign * q[2], sign * q[3], sign * q[0]};
}

/// Axis times angle (robosuite/utils/transform_utils.py, quat2axisangle): the angle is up to 2 pi for w below 0.
Vec3 axis_angle(const std::array<double, 4>& xyzw) {
  const double w = std::clamp(xyzw[3], -1.0, 1.0), sine = std::sqrt(1 - w * w);
  if (sine < 1e-9) return {};
  const double factor = 2 * std::acos(w) / sine;
  return {factor * xyzw[0], factor * xyzw[1], factor * xyzw[2]};
}

}  // namespace

Observations::Observations(const Simulation& simulation)
    : simulation_(simulation), hand_(simulation.frames().body(simulation.folder().hand_body)) {
  fields_ = {
      {"robot0_joint_pos", {7}, "rad", "the arm's joints"},
      {"robot0_joint_pos_cos", {7}, "1", "their cosines"},
      {"robot0_joint_pos_sin", {7}, "1", "their sines"},
      {"robot0_joint_vel", {7}, "rad/s", "their velocities"},
      {"robot0_eef_pos", {3}, "m", "the grip site"},
      {"robot0_eef_quat", {4}, "1", "x y z w of the hand"},
      {"robot0_gripper_qpos", {2}, "m", "the fingers' joints"},
      {"robot0_gripper_qvel", {2}, "m/s", "their velocities"},
      {"robot0_proprio-state", {39}, "1", "all of these side by side"},
  };
  std::int64_t width = 0;
  for (const std::string& name : simulation.folder().objects) {
    fields_.push_back({name + "_pos", {3}, "m", "where it is", true});
    fields_.push_back({name + "_quat", {4}, "1", "x y z w", true});
    fields_.push_back({name + "_to_robot0_eef_pos", {3}, "m", "in the hand's frame at the grip site", true});
    fields_.push_back({name + "_to_robot0_eef_quat", {4}, "1", "x y z w in that frame", true});
    objects_.push_back(simulation.frames().body(simulation.folder().things.at(name).body));
    width += 14;
  }
  if (width > 0) fields_.push_back({"object-state", {width}, "1", "those of all objects side by side", true});
  // Of LIBERO's data sets.
  fields_.push_back({"joint_states", {7}, "rad", "robot0_joint_pos, as LIBERO's data sets call it"});
  fields_.push_back({"gripper_states", {2}, "m", "robot0_gripper_qpos, likewise"});
  fields_.push_back({"ee_pos", {3}, "m", "robot0_eef_pos, likewise"});
  fields_.push_back({"ee_ori", {3}, "rad", "axis times angle of robot0_eef_quat"});
  fields_.push_back({"ee_states", {6}, "1", "ee_pos and ee_ori side by side"});
}

void Observations::compute(const Simulation::Seen& seen, Workspace& w) const {
  const RobotControl& robot = simulation_.robot();
  std::vector<double>& out = w.numbers;
  out.clear();
  const auto add = [&](const auto& values) { out.insert(out.end(), values.begin(), values.end()); };
  std::array<double, 7> joints, cosines, sines, velocities;
  std::array<double, 2> fingers, finger_velocities;
  for (std::size_t i = 0; i < 7; ++i) {
    joints[i] = seen.qpos[robot.arm().qpos[i]];
    cosines[i] = std::cos(joints[i]), sines[i] = std::sin(joints[i]);
    velocities[i] = seen.qvel[static_cast<std::size_t>(robot.arm().dofs[i])];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    fingers[i] = seen.qpos[robot.finger_qpos()[i]];
    finger_velocities[i] = seen.qvel[robot.finger_qvel()[i]];
  }
  simulation_.frames().place(seen.poses_qpos, w.poses);
  const Vec3 grip = robot.grip(seen.poses_qpos).pos;
  const auto xyzw = [](const Quat& q) { return std::array<double, 4>{q[1], q[2], q[3], q[0]}; };
  const std::array<double, 4> hand = xyzw(w.poses.quat[hand_]);
  add(joints), add(cosines), add(sines), add(velocities), add(grip), add(hand), add(fingers), add(finger_velocities);
  const std::vector<double> proprio(out);
  add(proprio);
  const std::size_t first_object = out.size();
  const Mat3 to_hand = transpose(rotation(w.poses.quat[hand_]));
  for (const std::size_t body : objects_) {
    add(w.poses.pos[body]);
    add(xyzw(w.poses.quat[body]));
    add(to_hand * (w.poses.pos[body] - grip));
    add(quaternion_of(to_hand * rotation(w.poses.quat[body])));
  }
  const std::vector<double> objects(out.begin() + static_cast<std::ptrdiff_t>(first_object), out.end());
  add(objects);
  const Vec3 turned = axis_angle(hand);
  add(joints), add(fingers), add(grip), add(turned), add(grip), add(turned);
}

}  // namespace cohort::tasks::libero
