/// Where a task keeps its environments in the memory of a device that computes them, physics, observations and rewards
/// alike: what a control step takes and leaves need not be copied to the host.
///
///   if (OnDevice* there = task.on_device()) {
///     task.step(actions);                         // actions.device is there->device(): nothing is copied
///     there->observations(), there->reward();     // of that step, valid on there->stream()
///   }
///
/// The task's own views (Task::reward() and the like) show the same numbers in host memory, brought there when they are
/// asked for.
#pragma once
#include "core/array_view.h"

namespace cohort::tasks {

/// All views are contiguous, in device()'s memory, valid as long as the task and on stream().
class OnDevice {
 public:
  virtual ~OnDevice() = default;
  virtual DeviceId device() const = 0;
  virtual void* stream() const = 0;  ///< cudaStream_t of all work on the views

  virtual ArrayView observations() = 0;  ///< (n_envs, O) float32: the spec's fields side by side
  virtual ArrayView reward() = 0;        ///< (n_envs) float32
  virtual ArrayView reward_terms() = 0;  ///< (n_envs, terms) float32
  virtual ArrayView metrics() = 0;       ///< (n_envs, metrics) float32; without memory where the task has none
  virtual ArrayView success() = 0;       ///< (n_envs) uint8
  virtual ArrayView terminated() = 0;    ///< (n_envs) uint8
  virtual ArrayView truncated() = 0;     ///< (n_envs) uint8
  virtual ArrayView broken() = 0;        ///< (n_envs) uint8
};

}  // namespace cohort::tasks
