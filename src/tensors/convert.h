/// ArrayView to and from LibTorch's tensors, without copies.
#pragma once
#include <functional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "core/array_view.h"

namespace cohort::tensors {

c10::ScalarType to_scalar_type(ElementType type);
/// Throws Error for a type that ArrayView does not have.
ElementType to_element_type(c10::ScalarType type);

c10::Device to_torch_device(DeviceId device);
/// Throws Error for devices other than cpu, cuda and mps.
DeviceId to_device_id(c10::Device device);

/// A tensor over the view's memory, with its strides: what is written through it is seen by the owner, and the other
/// way round (stream_order.h says when, on a device). `release` runs when the last tensor that shares the memory is
/// gone; give it what keeps the memory alive. Throws Error for a view without memory or of more than kMaxRank
/// dimensions, and for one of a device that this LibTorch does not see.
at::Tensor to_tensor(const ArrayView& view, std::function<void()> release = {});

/// A view of the tensor's memory, valid as long as the tensor. Throws Error for more than kMaxRank dimensions.
ArrayView to_view(const at::Tensor& tensor);

}  // namespace cohort::tensors
