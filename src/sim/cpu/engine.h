/// The batched engine on a CPU: blocks of environments in SIMD lanes, shared out to threads.
#pragma once
#include <memory>

#include "sim/engine.h"
#include "sim/model.h"
#include "sim/options.h"

namespace cohort::sim {

struct CpuEngineOptions {
  int threads = 1;  ///< including the caller's
  LaneWidth lanes = LaneWidth::kAuto;
  int row_space = -1;         ///< of SceneOptions
  int contact_capacity = 0;   ///< likewise
  ParameterSet parameters{};  ///< that environments have of their own from the beginning
  FieldSet step_leaves{};     ///< of SceneOptions
};

/// What make_cpu_engine would take of this process' memory, and how many environments would fit. Takes nothing.
MemoryPlan plan_cpu_engine(const Model& model, const CpuEngineOptions& options);

/// The results are the same bits for any number of threads and any lane width. Throws Error: with the numbers, when the
/// environments do not fit into the machine's memory; when this processor lacks the asked lane width.
std::unique_ptr<Engine> make_cpu_engine(Model model, int n_envs, const CpuEngineOptions& options);

/// The widest that this processor runs.
LaneWidth widest_lanes();

}  // namespace cohort::sim
