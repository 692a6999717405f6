/// The part of a SceneTask that computes its environments on the engine's device (SceneTask::compute_on).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/field.h"
#include "tasks/on_device.h"

namespace cohort::tasks {

/// What SceneTask keeps of all environments in host memory, row by row.
struct HostRows {
  std::vector<std::vector<float>>& observations;  ///< of each field
  std::vector<float>&actions, &reward, &terms, &metrics;
  std::vector<std::uint8_t>&success, &terminated, &truncated, &broken;
  std::vector<std::int64_t>& steps;  ///< control steps since the reset
};

class SceneOnDevice : public OnDevice {
 public:
  /// A control period of all environments, without a copy to the host. actions: (n_envs, A) float32, in the device's
  /// memory, or in the host's, from where they are copied. evaluates: the derived fields are computed once more.
  virtual void step(const ArrayView& actions, int timesteps, bool evaluates) = 0;
  /// An engine's field where episodes of these environments begin; rows: (envs, values). To be followed by begin().
  virtual void put(sim::Field field, std::span<const float> rows) = 0;
  /// Begins episodes of the environments that put() was told of: one copy to the device for all of it.
  virtual void begin(std::span<const std::int32_t> envs) = 0;
  virtual void observe(std::span<const std::int32_t> envs) = 0;
  /// Copies what the device holds to the host, or back.
  virtual void bring(const HostRows& rows) = 0;
  virtual void take(const HostRows& rows) = 0;
};

}  // namespace cohort::tasks
