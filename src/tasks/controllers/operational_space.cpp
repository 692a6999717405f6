#include "tasks/controllers/operational_space.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cohort::tasks {
namespace {

constexpr std::size_t kN = kArmJoints;
using Joints = std::array<double, kN>;

/// J_a M^-1 J_b^T, (rows, rows), of `rows` rows of the Jacobian from `first` on; its inverse is the inertia that the
/// hand shows there.
void hand_inertia(const ArmReading& now, std::span<const double> mass_inverse, std::size_t first, std::size_t rows,
                  std::span<double> out) {
  std::array<double, 6 * kN> product{};  // J M^-1
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < kN; ++j)
      for (std::size_t k = 0; k < kN; ++k)
        product[i * kN + j] += now.jacobian[(first + i) * kN + k] * mass_inverse[k * kN + j];
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < kN; ++k) sum += product[i * kN + k] * now.jacobian[(first + j) * kN + k];
      out[i * rows + j] = sum;
    }
  }
  invert(out, static_cast<int>(rows));
}

}  // namespace

bool invert(std::span<double> a, int n_in) {
  // Gauss and Jordan with pivots.
  const auto n = static_cast<std::size_t>(n_in);
  std::array<std::size_t, 8> row_of{}, column_of{};
  std::array<bool, 8> done{};
  COHORT_ASSERT(n <= 8, "{} rows: at most 8", n);
  for (std::size_t step = 0; step < n; ++step) {
    std::size_t row = 0, column = 0;
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (done[i]) continue;
      for (std::size_t j = 0; j < n; ++j) {
        if (done[j] || !(std::abs(a[i * n + j]) > largest)) continue;
        largest = std::abs(a[i * n + j]), row = i, column = j;
      }
    }
    if (!(largest > 0)) return false;
    done[column] = true;
    if (row != column)
      for (std::size_t j = 0; j < n; ++j) std::swap(a[row * n + j], a[column * n + j]);
    row_of[step] = row, column_of[step] = column;
    const double inverse = 1 / a[column * n + column];
    a[column * n + column] = 1;
    for (std::size_t j = 0; j < n; ++j) a[column * n + j] *= inverse;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == column) continue;
      const double factor = a[i * n + column];
      a[i * n + column] = 0;
      for (std::size_t j = 0; j < n; ++j) a[i * n + j] -= factor * a[column * n + j];
    }
  }
  for (std::size_t step = n; step-- > 0;) {
    if (row_of[step] == column_of[step]) continue;
    for (std::size_t i = 0; i < n; ++i) std::swap(a[i * n + row_of[step]], a[i * n + column_of[step]]);
  }
  return true;
}

Mat3 robosuite_rotation(const Vec3& turn) {
  const double angle = norm(turn);
  double q[4] = {1, 0, 0, 0};  // w x y z
  if (angle != 0) {
    q[0] = std::cos(0.5 * angle);
    for (std::size_t i = 0; i < 3; ++i) q[1 + i] = turn[i] / angle * std::sin(0.5 * angle);
  }
  // As NumPy and Numba round: products of floats summed in double by the dot product, the scaling in double.
  float f[4];
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    f[i] = static_cast<float>(q[i]);
    sum += static_cast<double>(f[i] * f[i]);
  }
  const double scale = std::sqrt(2.0 / static_cast<double>(static_cast<float>(sum)));
  for (float& x : f) x = static_cast<float>(static_cast<double>(x) * scale);
  const auto product = [&](int i, int j) { return f[i] * f[j]; };
  const auto d = [](float x) { return static_cast<double>(x); };
  return {1 - d(product(2, 2)) - d(product(3, 3)), d(product(1, 2) - product(3, 0)),
          d(product(1, 3) + product(2, 0)),        d(product(1, 2) + product(3, 0)),
          1 - d(product(1, 1)) - d(product(3, 3)), d(product(2, 3) - product(1, 0)),
          d(product(1, 3) - product(2, 0)),        d(product(2, 3) + product(1, 0)),
          1 - d(product(1, 1)) - d(product(2, 2))};
}

ArmIndices find_arm(const sim::Kinematics& kinematics, const sim::ModelInfo& model, const std::string& site,
                    std::span<const std::string> joints) {
  COHORT_CHECK(joints.size() == kN, "{} joints: {}", joints.size(), kN);
  ArmIndices arm;
  arm.site = kinematics.site(site);
  for (std::size_t i = 0; i < kN; ++i) {
    const sim::JointInfo& joint = model.joints[static_cast<std::size_t>(model.joint(joints[i]))];
    COHORT_THROW_UNLESS(joint.type == sim::JointType::kHinge || joint.type == sim::JointType::kSlide,
                        "joint `{}` is neither a hinge nor a slide", joint.name);
    arm.qpos[i] = static_cast<std::size_t>(joint.qpos);
    arm.dofs[i] = joint.dof;
  }
  return arm;
}

void read_arm(const sim::Kinematics& kinematics, const ArmIndices& arm, std::span<const double> qpos,
              std::span<const double> qvel, ArmReading& reading, std::span<double> bias) {
  sim::Kinematics::Posture posture = kinematics.at(qpos);
  const sim::Kinematics::Pose hand = posture.site_pose(arm.site);
  reading.pos = hand.pos, reading.rot = hand.rot;
  posture.site_jacobian(arm.site, arm.dofs, reading.jacobian);
  posture.mass_matrix(arm.dofs, reading.mass);
  for (std::size_t j = 0; j < kN; ++j) {
    reading.position[j] = qpos[arm.qpos[j]];
    reading.velocity[j] = qvel[static_cast<std::size_t>(arm.dofs[j])];
  }
  if (!bias.empty()) posture.bias(qvel, arm.dofs, bias);
}

void OperationalSpaceControl::begin(Memory& memory, const ArmReading& now) const {
  memory.goal_pos = now.pos;
  memory.goal_rot = now.rot;
  memory.posture = now.position;
}

void OperationalSpaceControl::set_goal(Memory& memory, const ArmReading& now, std::span<const double> action) const {
  Vec3 shift, turn;
  for (std::size_t i = 0; i < 3; ++i) {
    shift[i] = std::clamp(action[i], -1.0, 1.0) * settings_.position_scale;
    turn[i] = std::clamp(action[3 + i], -1.0, 1.0) * settings_.orientation_scale;
  }
  memory.goal_pos = now.pos + shift;
  if (turn[0] != 0 || turn[1] != 0 || turn[2] != 0) memory.goal_rot = robosuite_rotation(turn) * now.rot;
}

void OperationalSpaceControl::unlimited_torques(const Memory& memory, const ArmReading& now,
                                                std::span<const double> bias, std::span<double> out) const {
  const double kp = settings_.stiffness, kd = 2 * std::sqrt(kp) * settings_.damping_ratio;
  std::array<double, kN* kN> mass_inverse = now.mass;
  invert(mass_inverse, kArmJoints);
  std::array<double, 9> inertia_pos, inertia_rot;
  std::array<double, 36> inertia;
  hand_inertia(now, mass_inverse, 0, 3, inertia_pos);
  hand_inertia(now, mass_inverse, 3, 3, inertia_rot);
  hand_inertia(now, mass_inverse, 0, 6, inertia);

  Vec3 turn{};  // half the sum of what each axis still has to turn
  for (std::size_t j = 0; j < 3; ++j) turn = turn + 0.5 * cross(column(now.rot, j), column(memory.goal_rot, j));
  std::array<double, 6> velocity{};
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < kN; ++j) velocity[i] += now.jacobian[i * kN + j] * now.velocity[j];
  const Vec3 linear{velocity[0], velocity[1], velocity[2]}, angular{velocity[3], velocity[4], velocity[5]};
  const Vec3 force = Mat3(inertia_pos) * (kp * (memory.goal_pos - now.pos) - kd * linear);
  const Vec3 torque = Mat3(inertia_rot) * (kp * turn - kd * angular);
  const std::array<double, 6> wrench{force[0], force[1], force[2], torque[0], torque[1], torque[2]};

  // Null space: N^T p with N = 1 - M^-1 J^T L J is p - J^T L J M^-1 p.
  const double posture_kp = settings_.posture_stiffness, posture_kd = 2 * std::sqrt(posture_kp);
  Joints pull{}, accelerated{};
  for (std::size_t i = 0; i < kN; ++i)
    accelerated[i] = posture_kp * (memory.posture[i] - now.position[i]) - posture_kd * now.velocity[i];
  for (std::size_t i = 0; i < kN; ++i)
    for (std::size_t j = 0; j < kN; ++j) pull[i] += now.mass[i * kN + j] * accelerated[j];
  std::array<double, 6> at_hand{}, held{};  // J M^-1 p = J times the acceleration
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < kN; ++j) at_hand[i] += now.jacobian[i * kN + j] * accelerated[j];
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 6; ++j) held[i] += inertia[i * 6 + j] * at_hand[j];
  for (std::size_t j = 0; j < kN; ++j) {
    double sum = bias[j] + pull[j];
    for (std::size_t i = 0; i < 6; ++i) sum += now.jacobian[i * kN + j] * (wrench[i] - held[i]);
    out[j] = sum;
  }
}

void OperationalSpaceControl::torques(const Memory& memory, const ArmReading& now, std::span<const double> bias,
                                      std::span<double> out) const {
  unlimited_torques(memory, now, bias, out);
  for (std::size_t j = 0; j < kN; ++j)
    out[j] = std::clamp(out[j], -settings_.torque_limit[j], settings_.torque_limit[j]);
}

}  // namespace cohort::tasks
