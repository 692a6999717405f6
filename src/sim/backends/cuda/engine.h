/// The batched engine on a CUDA device: one environment per thread, the same kernels as on a CPU.
#pragma once
#include <memory>

#include "sim/engine.h"
#include "sim/host/model.h"

namespace cohort::sim {

/// What make_cuda_engine would take of the device at least, and how many environments would fit. Takes nothing. Throws
/// Error where this build or this machine has no CUDA.
MemoryPlan plan_cuda_engine(const Model& model, const EngineOptions& options);

/// view() is memory of the device, valid on stream(); host_view() is a copy in host memory that is written back before
/// the next step. Parameters (Engine::parameter) are written in host memory and reach the device with
/// commit_parameters(). A caller who captures the stream into a CUDA graph calls step() and nothing else meanwhile.
/// Throws Error: where this build or this machine has no CUDA; for a model whose contacts need a narrow phase that only
/// the CPU has, naming the geoms; with the numbers, when the environments do not fit into the device's memory.
std::unique_ptr<Engine> make_cuda_engine(Model model, int n_envs, const EngineOptions& options);

/// Why make_cuda_engine cannot work in this build, or "".
std::string cuda_unusable();

}  // namespace cohort::sim
