/// ArrayView <-> at::Tensor without copies, and the names of devices and element types on either side.
#pragma once
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "core/array_view.h"

namespace cohort::tensors {

/// Element types have equal meaning on both sides. from_torch throws Error for a type that ArrayView lacks.
at::ScalarType to_torch(ElementType type);
ElementType from_torch(at::ScalarType type);

c10::Device to_torch(DeviceId device);
/// Throws Error for a device that Cohort does not know. "cuda" without an index is the device 0.
DeviceId from_torch(c10::Device device);

/// A tensor on the view's memory, with its strides. `owner` is kept until the last tensor that shares the memory is
/// gone; null: the caller keeps the memory. Strides must not be negative.
at::Tensor to_tensor(const ArrayView& view, std::shared_ptr<const void> owner);

/// A view of the tensor's memory, which the caller keeps alive. Throws Error for more than kMaxRank dimensions, for a
/// tensor without strided memory, or for an element type that ArrayView lacks. For CUDA, `stream` is the current
/// stream.
ArrayView view_of(const at::Tensor& tensor);

/// A view together with what keeps its memory alive.
struct OwnedView {
  ArrayView view;
  std::shared_ptr<const void> owner;
};
OwnedView owned_view_of(const at::Tensor& tensor);

}  // namespace cohort::tensors
