/// What the host computes for a forward pass - random numbers, places of crops, factors of a noise schedule - on its
/// way to the device. A step that is recorded as a graph (train/step_graph.h) gets new values in the same memory before
/// each replay.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/error.h"
#include "models/random_context.h"

namespace cohort::models {

/// Tensors on the CPU, a function of the context; of the same shapes and types for every context with as many samples.
/// What it refers to must outlive the recording.
using HostFunction = std::function<std::vector<at::Tensor>(const RandomContext& context)>;

/// function(random_context()) on `device`. Inside a recording it is remembered, and the tensors stay where they are.
std::vector<at::Tensor> host_values(at::Device device, const HostFunction& function);

/// What a recorded step cannot do.
class NotRecordable : public Error {
 public:
  using Error::Error;
};

/// For layers whose kernels take what differs from step to step as plain numbers, or whose shapes differ: throws
/// NotRecordable inside a recording, otherwise does nothing.
void refuse_recording(const std::string& what);

/// The host values of one step, in the order in which a forward pass asks for them.
class HostRecording {
 public:
  /// A pass begins. The first one computes the values; later ones find them where they were.
  void begin_pass(const at::Tensor& sample_ids);
  /// Computes everything again and copies it to the device, in the order of the current stream.
  void refill(const RandomContext& context);

 private:
  friend std::vector<at::Tensor> host_values(at::Device device, const HostFunction& function);
  struct Entry {
    HostFunction function;
    std::vector<at::Tensor> on_device;
  };
  std::vector<at::Tensor> next(at::Device device, const HostFunction& function);

  std::vector<Entry> entries_;
  std::size_t next_ = 0;
  at::Tensor sample_ids_;  // of the pass
};

/// Makes `recording` this thread's for a scope.
class HostRecordingGuard {
 public:
  explicit HostRecordingGuard(HostRecording& recording);
  ~HostRecordingGuard();
  HostRecordingGuard(const HostRecordingGuard&) = delete;
  HostRecordingGuard& operator=(const HostRecordingGuard&) = delete;

 private:
  HostRecording* former_;
};

}  // namespace cohort::models
