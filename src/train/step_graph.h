/// Whole training steps as graphs of a device: forward, backward, the guard against NaN, clipping and the update are
/// recorded once and then launched with one call, which is what a small network on a fast GPU waits for.
#pragma once
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "dist/cuda_plugin.h"
#include "models/host_values.h"
#include "parallel/batch.h"

namespace cohort::train {

class StepGraph {
 public:
  /// Everything that a step does on the device with a batch there; `lr` is a scalar there (float32, on a CPU float64).
  /// What differs from step to step may come from these two and from models::host_values only.
  using Work = std::function<void(const parallel::Batch& batch, const at::Tensor& lr)>;

  StepGraph(std::unique_ptr<dist::DeviceGraph> graph, c10::Device device, Work work);

  /// One step: the first kWarmUps run kernel by kernel, the next is recorded, and from then on the recording is
  /// launched. False, with nothing done, when this step has to be made without a graph: the batch has other shapes than
  /// the first one, or the model cannot be recorded, which the log says once.
  bool step(const parallel::Batch& batch, double lr, const models::RandomContext& context);

  static constexpr int kWarmUps = 3;

 private:
  bool fits(const parallel::Batch& batch) const;
  void load(const parallel::Batch& batch, double lr);
  void run();
  bool refuse(const char* why);

  std::unique_ptr<dist::DeviceGraph> graph_;
  c10::Device device_;
  Work work_;
  bool refused_ = false;
  int passes_ = 0;         // warm-ups and the recording
  parallel::Batch batch_;  // on the device; every step's batch is copied there
  at::Tensor lr_;
  models::HostRecording host_;
};

}  // namespace cohort::train
