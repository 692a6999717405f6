/// What `cohort simulate` counts and says of the environments: steps, contacts, trouble.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/format.h"
#include "sim/host/scene.h"

namespace cohort::cli {

/// What one process did; the figures of several add up, times and means aside.
struct SimulateFigures {
  std::int64_t done = 0;                                        ///< steps of each environment
  double steps = 0, seconds = 0, contacts = 0, iterations = 0;  ///< steps of environments; sums over them
  double stopped = 0;                                           ///< environments with trouble
  std::int64_t stop_step = -1, stop_env = 0, stop_status = 0;   ///< of the first of them: its step, counted from 1
  std::int64_t controls = 0;                                    ///< of an environment
  std::string stop_reason;                                      ///< of the first that stopped; one line
};

/// Adds a step of the environments that were live before it. live: one each; those that stopped in it leave.
void count_step(sim::Scene& scene, std::vector<bool>& live, SimulateFigures& figures);

/// Environments with trouble, in words: "3 environments stopped: a NaN or a value above 1e10 (environments 17, 20,
/// 21)". Their number.
int report_trouble(sim::Scene& scene);

/// Says where positions are lost: a coordinate so far out, or an angle turned so far, that single precision rounds what
/// it moves in a timestep, by a centimetre or 0.01 rad in all. After `steps` timesteps; the engine mujoco computes in
/// double.
void report_lost_positions(sim::Scene& scene, std::int64_t steps);

/// Throws Error where no environment is left: what follows is no simulation.
void need_one_left(const SimulateFigures& figures, int n_envs, const std::string& control);

/// The figures of a process as its file has them, for the one that started it. figures_from() gives those of the file
/// of process `rank`, and throws Error where it is no such file.
std::string to_text(const SimulateFigures& figures);
SimulateFigures figures_from(const std::string& text, int rank);

/// Adds the figures of one more process to those of others.
void add(SimulateFigures& total, const SimulateFigures& one);

/// "3, 9, 12", at most five of them: "3, 9, 12, 20, 21 and 4 more".
template <class T>
std::string some_of(const std::vector<T>& all) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) text += format("{}{}", i == 0 ? "" : ", ", all[i]);
  return all.size() <= kMost ? text : text + format(" and {} more", all.size() - kMost);
}

}  // namespace cohort::cli
