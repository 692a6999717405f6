/// The `mujoco` engine: MuJoCo's batch of simulations on a thread pool; every feature, double precision, CPU.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "sim/engine.h"

namespace cohort::sim {

/// What make_mujoco_engine would take of this process' memory, and how many environments would fit. Takes nothing.
MemoryPlan plan_mujoco_engine(std::span<const std::uint8_t> mjb, const EngineOptions& options);

/// mjb: MuJoCo's binary model. The results are the same bits for any number of threads. Throws Error.
std::unique_ptr<Engine> make_mujoco_engine(std::span<const std::uint8_t> mjb, int n_envs, const EngineOptions& options);

/// Names and addresses of a binary model.
ModelInfo describe_mjb(std::span<const std::uint8_t> mjb);

}  // namespace cohort::sim
