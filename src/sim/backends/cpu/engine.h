/// The batched engine on a CPU: blocks of environments in SIMD lanes, shared out to threads.
#pragma once
#include <memory>

#include "sim/engine.h"
#include "sim/host/model.h"
#include "sim/options.h"

namespace cohort::sim {

/// What make_cpu_engine would take of this process' memory, and how many environments would fit. Takes nothing.
MemoryPlan plan_cpu_engine(const Model& model, const EngineOptions& options);

/// The results are the same bits for any number of threads and any lane width. Throws Error: with the numbers, when the
/// environments do not fit into the machine's memory; when this processor or this build lacks the asked lane width.
std::unique_ptr<Engine> make_cpu_engine(Model model, int n_envs, const EngineOptions& options);

/// The widest that this processor and this build have. Says once in the log where none is left but scalar: a build for a
/// processor with AVX-512 alone (CMake's COHORT_LANES) was moved to one without.
LaneWidth widest_lanes();
/// Whether this processor and this build have lanes of `width`.
bool runs_lanes(LaneWidth width);
/// `width`, and for kAuto the widest there is. Throws Error when this processor or this build lacks it.
LaneWidth checked_lanes(LaneWidth width);

/// Of what was compiled for each width, that for checked_lanes(width).
template <class T>
T of_lanes(LaneWidth width, T scalar, T avx2, T avx512) {
  width = checked_lanes(width);
  return width == LaneWidth::kAvx512 ? avx512 : width == LaneWidth::kAvx2 ? avx2 : scalar;
}

}  // namespace cohort::sim
