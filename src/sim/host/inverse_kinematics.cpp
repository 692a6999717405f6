#include "sim/host/inverse_kinematics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "core/philox.h"
#include "core/vec3.h"
#include "sim/host/kinematics.h"
#include "sim/host/model_info.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// Rotation vector in the world that turns `from` to `to`.
Vec3 turn(const std::array<double, 4>& to, const std::array<double, 4>& from) {
  // to * conjugate(from)
  const Vec3 u{to[1], to[2], to[3]}, v{-from[1], -from[2], -from[3]};
  double w = to[0] * from[0] - dot(u, v);
  const Vec3 c = cross(u, v);
  Vec3 r{};
  for (std::size_t i = 0; i < 3; ++i) r[i] = to[0] * v[i] + from[0] * u[i] + c[i];
  if (w < 0) {
    w = -w;
    for (double& x : r) x = -x;
  }
  const double sine = norm(r);
  const double scale = sine < 1e-12 ? 2.0 : 2.0 * std::atan2(sine, w) / sine;
  for (double& x : r) x *= scale;
  return r;
}

/// The shortest rotation vector that turns one unit direction to another.
Vec3 turn_axis(const Vec3& to, const Vec3& from) {
  Vec3 r = cross(from, to);
  const double sine = norm(r), cosine = dot(from, to);
  if (sine > 1e-12) {
    const double scale = std::atan2(sine, cosine) / sine;
    for (double& x : r) x *= scale;
    return r;
  }
  if (cosine > 0) return {0, 0, 0};
  // Opposite: about any axis across.
  const std::size_t k = std::abs(from[0]) < 0.6 ? 0 : 1;
  Vec3 e{};
  e[k] = 1;
  r = cross(from, e);
  const double length = norm(r);
  for (double& x : r) x *= std::numbers::pi / length;
  return r;
}

std::array<double, 9> matrix(const std::array<double, 4>& q) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  return {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
          2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
          2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
}

/// Solves A x = b in place by Cholesky; A (n, n) symmetric and positive definite.
void solve(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    double d = a[j * n + j];
    for (std::size_t k = 0; k < j; ++k) d -= a[j * n + k] * a[j * n + k];
    d = std::sqrt(d);
    a[j * n + j] = d;
    for (std::size_t i = j + 1; i < n; ++i) {
      double s = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) s -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = s / d;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
}

int count(const std::array<bool, 3>& mask) {
  return int{mask[0]} + int{mask[1]} + int{mask[2]};
}

/// Errors and Jacobian of all targets at one posture.
struct Equations {
  std::vector<double> error;     ///< (targets, 6)
  std::vector<double> jacobian;  ///< (targets * 6, dofs)
  double score = 0;              ///< 0 where every target is reached: the largest error in units of its tolerance
};

void evaluate(const Kinematics& kinematics, std::span<const double> qpos, std::span<const int> dofs,
              std::span<const IkTarget> targets, const IkSettings& settings, bool with_jacobian, Equations& out) {
  const Kinematics::Posture posture = kinematics.at(qpos);
  const std::size_t n = dofs.size();
  out.error.assign(6 * targets.size(), 0);
  out.jacobian.assign(6 * targets.size() * n, 0);
  out.score = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const IkTarget& target = targets[t];
    const Kinematics::Pose pose = posture.link_pose(target.link);
    Vec3 arm{};  // from the link's origin to the point, in the world
    for (std::size_t i = 0; i < 3; ++i)
      arm[i] = pose.rot[3 * i] * target.point[0] + pose.rot[3 * i + 1] * target.point[1] +
               pose.rot[3 * i + 2] * target.point[2];
    const int turns = target.quat ? count(target.rot_mask) : 0;
    Vec3 linear{}, angular{}, free_axis{};
    if (target.pos)
      for (std::size_t i = 0; i < 3; ++i) linear[i] = target.pos_mask[i] ? (*target.pos)[i] - pose.pos[i] - arm[i] : 0;
    if (turns == 1) {
      const std::size_t k = target.rot_mask[0] ? 0 : target.rot_mask[1] ? 1 : 2;
      free_axis = column(pose.rot, k);
      angular = turn_axis(column(matrix(*target.quat), k), free_axis);
    } else if (turns > 1) {
      angular = turn(*target.quat, pose.quat);
    }
    for (std::size_t i = 0; i < 3; ++i) out.error[6 * t + i] = linear[i], out.error[6 * t + 3 + i] = angular[i];
    out.score = std::max({out.score, norm(linear) / settings.pos_tolerance, norm(angular) / settings.rot_tolerance});
    if (!with_jacobian) continue;
    const std::span<double> jacobian(out.jacobian.data() + 6 * t * n, 6 * n);
    posture.link_jacobian(target.link, dofs, jacobian);
    for (std::size_t j = 0; j < n; ++j) {
      const Vec3 spin{jacobian[3 * n + j], jacobian[4 * n + j], jacobian[5 * n + j]};
      const Vec3 moved = cross(spin, arm);
      const double along = dot(spin, free_axis);
      for (std::size_t i = 0; i < 3; ++i) {
        double& l = jacobian[i * n + j];
        l = target.pos && target.pos_mask[i] ? l + moved[i] : 0;
        double& a = jacobian[(3 + i) * n + j];
        a = turns > 0 ? a - along * free_axis[i] : 0;
      }
    }
  }
}

}  // namespace

IkResult inverse_kinematics(const Kinematics& kinematics, const ModelInfo& info, std::span<const double> qpos,
                            std::span<const int> dofs, std::span<const IkTarget> targets, const IkSettings& settings) {
  COHORT_THROW_UNLESS(!targets.empty(), "inverse kinematics without a target");
  COHORT_THROW_UNLESS(!dofs.empty(), "inverse kinematics without a dof that may move");
  COHORT_THROW_UNLESS(
      settings.damping > 0 && settings.pos_tolerance > 0 && settings.rot_tolerance > 0 && settings.max_step > 0 &&
          settings.max_samples > 0 && settings.max_iterations > 0,
      "damping {}, tolerances {} m and {} rad, longest step {}, {} starts of {} iterations: all above 0",
      settings.damping, settings.pos_tolerance, settings.rot_tolerance, settings.max_step, settings.max_samples,
      settings.max_iterations);
  COHORT_CHECK(qpos.size() == at(info.nq), "{} coordinates of a model that has {}", qpos.size(), info.nq);
  for (const IkTarget& target : targets)
    COHORT_THROW_UNLESS(target.link >= 0 && at(target.link) < info.links.size(), "there is no link {}: there are {}",
                        target.link, info.links.size());
  const std::vector<int> joint_of = info.joint_of_dof();
  std::vector<const JointInfo*> joints;
  for (const int d : dofs) {
    COHORT_THROW_UNLESS(d >= 0 && d < info.nv, "there is no dof {}: there are {}", d, info.nv);
    const JointInfo& joint = info.joints[at(joint_of[at(d)])];
    COHORT_THROW_UNLESS(
        joint.type == JointType::kHinge || joint.type == JointType::kSlide,
        "dof {} (joint `{}`) is one of a free or ball joint: inverse kinematics moves hinges and slides", d,
        joint.name);
    joints.push_back(&joint);
  }
  const std::size_t n = dofs.size(), m = 6 * targets.size();
  const RandomStream random(settings.seed, RandomPurpose::kSampling, settings.id, 0);
  std::vector<double> now(qpos.begin(), qpos.end());
  const auto clamp = [&] {
    for (const JointInfo* joint : joints) {
      double& q = now[at(joint->qpos)];
      if (settings.respect_limits && joint->limited) q = std::clamp(q, joint->range[0], joint->range[1]);
    }
  };
  IkResult best{.qpos = now, .error = std::vector<double>(m)};
  double best_score = std::numeric_limits<double>::infinity();
  Equations equations;
  std::vector<double> normal(m * m), force(m);
  const auto keep = [&] {
    if (!(equations.score < best_score)) return;
    best_score = equations.score, best.qpos = now, best.error = equations.error;
  };
  for (int sample = 0; sample < settings.max_samples && best_score > 1; ++sample) {
    if (sample > 0) {
      for (std::size_t j = 0; j < n; ++j) {
        const JointInfo& joint = *joints[j];
        const double lower = joint.limited ? joint.range[0] : -std::numbers::pi,
                     upper = joint.limited ? joint.range[1] : std::numbers::pi;
        // A slide without limits has no range to draw from.
        const bool drawn = joint.limited || joint.type == JointType::kHinge;
        const auto index = static_cast<std::uint32_t>(at(sample) * n + j);
        now[at(joint.qpos)] =
            drawn ? lower + (upper - lower) * static_cast<double>(random.uniform(index)) : qpos[at(joint.qpos)];
      }
    }
    clamp();
    for (int iteration = 0;; ++iteration) {
      const bool last = iteration == settings.max_iterations;
      evaluate(kinematics, now, dofs, targets, settings, !last, equations);
      keep();
      if (last || equations.score <= 1) break;
      const std::vector<double>& jacobian = equations.jacobian;
      for (std::size_t a = 0; a < m; ++a)
        for (std::size_t b = 0; b <= a; ++b) {
          double sum = a == b ? settings.damping * settings.damping : 0;
          for (std::size_t j = 0; j < n; ++j) sum += jacobian[a * n + j] * jacobian[b * n + j];
          normal[a * m + b] = sum;
        }
      force = equations.error;
      solve(normal, force);
      for (std::size_t j = 0; j < n; ++j) {
        double step = 0;
        for (std::size_t a = 0; a < m; ++a) step += jacobian[a * n + j] * force[a];
        now[at(joints[j]->qpos)] += std::clamp(step, -settings.max_step, settings.max_step);
      }
      clamp();
    }
  }
  best.reached = best_score <= 1;
  return best;
}

}  // namespace cohort::sim
