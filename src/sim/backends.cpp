#include "sim/backends.h"

#include "core/error.h"
#include "sim/backends/cpu/engine.h"
#include "sim/backends/cuda/engine.h"
#include "sim/backends/mujoco/engine.h"

namespace cohort::sim {

namespace {

constexpr Backend kBackends[] = {
    {EngineKind::kBatched, DeviceKind::kCpu,
     [](const EngineModel& m, const EngineOptions& o) { return plan_cpu_engine(m.batched, o); },
     [](EngineModel m, int n, const EngineOptions& o) { return make_cpu_engine(std::move(m.batched), n, o); }},
    {EngineKind::kBatched, DeviceKind::kCuda,
     [](const EngineModel& m, const EngineOptions& o) { return plan_cuda_engine(m.batched, o); },
     [](EngineModel m, int n, const EngineOptions& o) { return make_cuda_engine(std::move(m.batched), n, o); }},
    {EngineKind::kMujoco, DeviceKind::kCpu,
     [](const EngineModel& m, const EngineOptions& o) { return plan_mujoco_engine(m.mjb, o); },
     [](EngineModel m, int n, const EngineOptions& o) { return make_mujoco_engine(m.mjb, n, o); }},
};

}  // namespace

const Backend& backend_of(EngineKind kind, const DeviceId& device) {
  for (const Backend& backend : kBackends)
    if (backend.kind == kind && backend.device == device.kind) return backend;
  throw Error(kind == EngineKind::kMujoco
                  ? format("the engine `mujoco` runs on the CPU, not on {}", to_string(device))
                  : format("the batched engine runs on CPUs and CUDA devices, not on {}", to_string(device)));
}

}  // namespace cohort::sim
