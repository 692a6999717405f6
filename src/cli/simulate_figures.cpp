#include "cli/simulate_figures.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "sim/scene.h"

namespace cohort::cli {
namespace {

constexpr std::pair<int, const char*> kTroubles[] = {{sim::kStatusContactOverflow, "more contacts than fit"},
                                                     {sim::kStatusConstraintOverflow, "more constraints than fit"},
                                                     {sim::kStatusBadState, "a NaN or a value above 1e10"},
                                                     {sim::kStatusEngineError, "an error in MuJoCo"}};

std::int32_t value_of(const ArrayView& view, std::int64_t env) {
  return static_cast<const std::int32_t*>(view.data)[env * view.strides[0]];
}

}  // namespace

void count_step(sim::Scene& scene, std::vector<bool>& live, SimulateFigures& figures) {
  const ArrayView contacts = scene.host_view(sim::Field::kContactCount);
  const ArrayView iterations = scene.host_view(sim::Field::kSolverIterations);
  const ArrayView status = scene.host_view(sim::Field::kStatus);
  for (std::size_t e = 0; e < live.size(); ++e) {
    if (!live[e]) continue;
    const auto env = static_cast<std::int64_t>(e);
    figures.steps += 1;
    figures.contacts += value_of(contacts, env);
    figures.iterations += value_of(iterations, env);
    live[e] = value_of(status, env) == sim::kStatusOk;
    if (live[e] || figures.stop_step >= 0) continue;
    figures.stop_step = figures.done + 1;
    figures.stop_env = scene.global_environment_id(static_cast<int>(env));
    figures.stop_status = value_of(status, env);
    figures.stop_reason = scene.why_stopped(static_cast<int>(env));
    std::replace(figures.stop_reason.begin(), figures.stop_reason.end(), '\n', ' ');
  }
}

int report_trouble(sim::Scene& scene) {
  const ArrayView status = scene.host_view(sim::Field::kStatus);
  int stopped = 0;
  for (int e = 0; e < scene.n_envs(); ++e) {
    stopped += static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] != 0;
  }
  for (const auto& [bit, text] : kTroubles) {
    std::vector<std::int64_t> ids;
    std::string reason;
    for (int e = 0; e < scene.n_envs(); ++e) {
      if (!(static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] & bit)) continue;
      if (ids.empty() && bit == sim::kStatusEngineError) reason = ": " + scene.engine().error_text(e);
      if (ids.empty() && bit != sim::kStatusEngineError) {
        reason = format("; environment {}: {}", scene.global_environment_id(e), scene.why_stopped(e));
      }
      ids.push_back(scene.global_environment_id(e));
    }
    if (!ids.empty()) {
      log::warning("{} environments stopped: {} (environment{} {}){}", ids.size(), text, ids.size() == 1 ? "" : "s",
                   some_of(ids), reason);
    }
  }
  return stopped;
}

void report_lost_positions(sim::Scene& scene, std::int64_t steps) {
  if (scene.engine().kind() != sim::EngineKind::kBatched) return;
  // A millimetre or milliradian lost of a hundredth moved counts; rounding is half of what the next float is away, and may be to one side in every
  // step.
  constexpr double kCounts = 0.01, kLost = 1e-3, kLostShare = 1e-3;
  const sim::ModelInfo& info = scene.info();
  const std::vector<float> q = scene.get_qpos(), v = scene.get_qvel();
  double most = 0, at = 0, step = 0, spacing = 0;
  int env = 0;
  const sim::JointInfo* joint = nullptr;
  for (const sim::JointInfo& j : info.joints) {
    // Orientations are unit quaternions: they are never far from zero.
    const int coordinates = j.type == sim::JointType::kFree ? 3 : j.type == sim::JointType::kBall ? 0 : 1;
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
  if (joint == nullptr) return;
  const char* unit = joint->type == sim::JointType::kHinge ? "rad" : "m";
  log::warning(
      "joint {} of environment {} is {:.6g} {} out and moves {:.3g} {} a timestep, which single precision rounds to "
      "multiples of {:.3g} there: after {} timesteps it may be {:.2g} {} off. Start nearer to zero or take a longer "
      "--timestep; --engine mujoco computes in double precision",
      joint->name.empty() ? format("{}", joint - info.joints.data()) : format("`{}`", joint->name),
      scene.global_environment_id(env), at, unit, step, unit, spacing, steps, most, unit);
}

void need_one_left(const SimulateFigures& f, int n_envs, const std::string& control) {
  if (n_envs < 1 || f.stopped < n_envs) return;
  std::string reason = f.stop_reason;
  for (const auto& [bit, text] : kTroubles) {
    if (f.stop_reason.empty() && (f.stop_status & bit)) reason += (reason.empty() ? "" : ", ") + std::string(text);
  }
  // What helps depends on what it was, not on how the command was given.
  if (f.stop_status & sim::kStatusBadState) {
    reason += "; --timestep takes a smaller one";
    if (control == "random" && f.controls > 0) {
      reason += "; --control zero shows whether random controls in the ranges that the model gives are too much for it";
    }
  }
  throw Error(format("every environment stopped, the first, {}, in step {}: {}", f.stop_env, f.stop_step, reason));
}

std::string to_text(const SimulateFigures& f) {
  return format("{} {} {} {} {} {} {} {} {} {} {}", f.done, f.steps, f.seconds, f.contacts, f.iterations, f.stopped,
                f.stop_step, f.stop_env, f.stop_status, f.controls, f.stop_reason);
}

SimulateFigures figures_from(const std::string& saved, int rank) {
  std::istringstream text(saved);
  SimulateFigures one;
  text >> one.done >> one.steps >> one.seconds >> one.contacts >> one.iterations >> one.stopped >> one.stop_step >>
      one.stop_env >> one.stop_status >> one.controls;
  COHORT_THROW_UNLESS(!text.fail(), "process {} left no figures", rank);
  text.ignore();
  std::getline(text, one.stop_reason);
  return one;
}

void add(SimulateFigures& total, const SimulateFigures& one) {
  total.steps += one.steps, total.contacts += one.contacts, total.iterations += one.iterations;
  total.stopped += one.stopped;
  total.controls = std::max(total.controls, one.controls);
  if (one.stop_step >= 0 && (total.stop_step < 0 || one.stop_step < total.stop_step)) {
    total.stop_step = one.stop_step, total.stop_env = one.stop_env, total.stop_status = one.stop_status;
    total.stop_reason = one.stop_reason;
  }
  total.seconds = std::max(total.seconds, one.seconds);
  total.done = std::max(total.done, one.done);
}

}  // namespace cohort::cli
