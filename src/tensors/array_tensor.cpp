#include "tensors/array_tensor.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

namespace cohort::tensors {

at::ScalarType to_torch(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return at::kFloat;
    case ElementType::kFloat64:
      return at::kDouble;
    case ElementType::kFloat16:
      return at::kHalf;
    case ElementType::kBFloat16:
      return at::kBFloat16;
    case ElementType::kInt64:
      return at::kLong;
    case ElementType::kInt32:
      return at::kInt;
    case ElementType::kInt16:
      return at::kShort;
    case ElementType::kUInt8:
      return at::kByte;
    case ElementType::kBool:
      return at::kBool;
  }
  throw Error("an array of an unknown element type");
}

ElementType from_torch(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::kFloat32;
    case at::kDouble:
      return ElementType::kFloat64;
    case at::kHalf:
      return ElementType::kFloat16;
    case at::kBFloat16:
      return ElementType::kBFloat16;
    case at::kLong:
      return ElementType::kInt64;
    case at::kInt:
      return ElementType::kInt32;
    case at::kShort:
      return ElementType::kInt16;
    case at::kByte:
      return ElementType::kUInt8;
    case at::kBool:
      return ElementType::kBool;
    default:
      throw Error(format("arrays cannot hold the element type {}", c10::toString(type)));
  }
}

c10::Device to_torch(DeviceId device) {
  switch (device.kind) {
    case DeviceKind::kCpu:
      return {c10::kCPU};
    case DeviceKind::kCuda:
      return {c10::kCUDA, static_cast<c10::DeviceIndex>(device.index)};
    case DeviceKind::kMetal:
      return {c10::kMPS, static_cast<c10::DeviceIndex>(device.index)};
  }
  throw Error("an unknown kind of device");
}

DeviceId from_torch(c10::Device device) {
  const int index = device.has_index() ? device.index() : 0;
  if (device.is_cpu()) return {DeviceKind::kCpu, 0};
  if (device.is_cuda()) return {DeviceKind::kCuda, index};
  if (device.is_mps()) return {DeviceKind::kMetal, index};
  throw Error(format("Cohort does not know the device {}", device.str()));
}

at::Tensor to_tensor(const ArrayView& view, std::shared_ptr<const void> owner) {
  const auto rank = static_cast<std::size_t>(view.rank);
  const at::IntArrayRef shape(view.shape.data(), rank), strides(view.strides.data(), rank);
  for (const auto stride : strides) {
    COHORT_THROW_UNLESS(stride >= 0, "LibTorch has no tensors with negative strides; copy the array first");
  }
  const c10::Device device = to_torch(view.device);
  return at::for_blob(view.data, shape)
      .strides(strides)
      .deleter([kept = std::move(owner)](void*) {})
      .options(at::TensorOptions().dtype(to_torch(view.type)).device(device))
      .target_device(device)
      .make_tensor();
}

ArrayView view_of(const at::Tensor& tensor) {
  COHORT_THROW_UNLESS(tensor.layout() == at::kStrided, "only a dense tensor can be viewed as an array");
  COHORT_THROW_UNLESS(tensor.dim() <= kMaxRank, "an array has at most {} dimensions; the tensor has {}", kMaxRank,
                      tensor.dim());
  ArrayView view;
  view.data = const_cast<void*>(tensor.const_data_ptr());
  view.type = from_torch(tensor.scalar_type());
  view.rank = static_cast<int>(tensor.dim());
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    view.shape[i] = tensor.size(static_cast<std::int64_t>(i));
    view.strides[i] = tensor.stride(static_cast<std::int64_t>(i));
  }
  view.device = from_torch(tensor.device());
  if (tensor.is_cuda()) {
    const auto stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(tensor.device());
    view.stream = stream.native_handle();
  }
  return view;
}

OwnedView owned_view_of(const at::Tensor& tensor) {
  return {view_of(tensor), std::make_shared<const at::Tensor>(tensor)};
}

}  // namespace cohort::tensors
