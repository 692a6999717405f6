#include "cli/simulate_figures.h"

#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "sim/host/lost_positions.h"
#include "sim/host/scene.h"

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
  const std::string lost = sim::describe_lost_positions(scene, steps);
  if (lost.empty()) return;
  log::warning("{}. Start nearer to zero or take a longer --timestep; --engine mujoco computes in double precision",
               lost);
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
