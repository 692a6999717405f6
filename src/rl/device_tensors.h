/// How LibTorch comes to what a task keeps on a device (tasks/on_device.h): as tensors over the same memory, with
/// LibTorch's stream and the task's in order (tensors/stream_order.h).
#pragma once
#include <ATen/core/Tensor.h>

#include "core/array_view.h"

namespace cohort::rl {

class DeviceTensors {
 public:
  virtual ~DeviceTensors() = default;
  /// Whether LibTorch computes on this device; else a task is seen in host memory.
  virtual bool sees(DeviceId device) const;
  /// Over the view's memory, seen by LibTorch's next operations as the work so far on the view's stream leaves it.
  virtual at::Tensor read(const ArrayView& view) const;
  /// Work on the view's stream from here on comes after LibTorch's so far.
  virtual void write_before(const ArrayView& view) const;
  /// The ones of this LibTorch.
  static const DeviceTensors& real();
};

}  // namespace cohort::rl
