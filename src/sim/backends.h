/// The engines that there are, and the devices that they run on: one line for each in backends.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "core/array_view.h"
#include "sim/engine.h"
#include "sim/host/model.h"

namespace cohort::sim {

/// A model in the form that the engine reads: MuJoCo's binary one, or the batched engine's.
struct EngineModel {
  std::span<const std::uint8_t> mjb{};
  Model batched{};
};

struct Backend {
  EngineKind kind;
  DeviceKind device;
  /// What make() would take of the device's memory, and how many environments would fit. Takes nothing.
  MemoryPlan (*plan)(const EngineModel& model, const EngineOptions& options);
  std::unique_ptr<Engine> (*make)(EngineModel model, int n_envs, const EngineOptions& options);
};

/// Throws Error for a device that the engine does not run on.
const Backend& backend_of(EngineKind kind, const DeviceId& device);

}  // namespace cohort::sim
