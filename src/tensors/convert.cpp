#include "tensors/convert.h"

#include <torch/types.h>

namespace cohort::tensors {

c10::ScalarType to_scalar_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return c10::kFloat;
    case ElementType::kFloat64:
      return c10::kDouble;
    case ElementType::kFloat16:
      return c10::kHalf;
    case ElementType::kBFloat16:
      return c10::kBFloat16;
    case ElementType::kInt64:
      return c10::kLong;
    case ElementType::kInt32:
      return c10::kInt;
    case ElementType::kInt16:
      return c10::kShort;
    case ElementType::kUInt8:
      return c10::kByte;
    case ElementType::kBool:
      return c10::kBool;
  }
  throw Error("an array of an unknown element type");
}

ElementType to_element_type(c10::ScalarType type) {
  for (const ElementType candidate :
       {ElementType::kFloat32, ElementType::kFloat64, ElementType::kFloat16, ElementType::kBFloat16,
        ElementType::kInt64, ElementType::kInt32, ElementType::kInt16, ElementType::kUInt8, ElementType::kBool})
    if (to_scalar_type(candidate) == type) return candidate;
  throw Error(format("tensors of type {} cannot be array views", c10::toString(type)));
}

c10::Device to_torch_device(DeviceId device) {
  switch (device.kind) {
    case DeviceKind::kCpu:
      return c10::Device(c10::kCPU);
    case DeviceKind::kCuda:
      return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device.index));
    case DeviceKind::kMetal:
      return c10::Device(c10::kMPS, static_cast<c10::DeviceIndex>(device.index));
  }
  throw Error("an unknown kind of device");
}

DeviceId to_device_id(c10::Device device) {
  const int index = device.has_index() ? device.index() : 0;
  if (device.is_cpu()) return {DeviceKind::kCpu, 0};
  if (device.is_cuda()) return {DeviceKind::kCuda, index};
  if (device.is_mps()) return {DeviceKind::kMetal, index};
  throw Error(format("tensors on {} are not supported; use cpu, cuda or mps", device.str()));
}

at::Tensor to_tensor(const ArrayView& view, std::function<void()> release) {
  COHORT_THROW_UNLESS(view.rank >= 0 && view.rank <= kMaxRank, "a view of {} dimensions: there are 0 to {}", view.rank,
                      kMaxRank);
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    COHORT_THROW_UNLESS(view.shape[i] >= 0 && view.strides[i] >= 0,
                        "dimension {} of a view has {} elements, {} apart: tensors have neither below zero", i,
                        view.shape[i], view.strides[i]);
  }
  COHORT_THROW_UNLESS(view.data != nullptr || view.size() == 0, "a view of {} elements without memory", view.size());
  const bool seen = view.device.kind == DeviceKind::kCpu || (view.device.kind == DeviceKind::kCuda && at::hasCUDA()) ||
                    (view.device.kind == DeviceKind::kMetal && at::hasMPS());
  COHORT_THROW_UNLESS(seen,
                      "the array lies on {}, which this LibTorch does not see: build with one that has the device",
                      to_string(view.device));
  const auto rank = static_cast<std::size_t>(view.rank);
  const auto options = at::TensorOptions().dtype(to_scalar_type(view.type)).device(to_torch_device(view.device));
  const at::IntArrayRef shape(view.shape.data(), rank), strides(view.strides.data(), rank);
  if (!release) return at::from_blob(view.data, shape, strides, options);
  return at::from_blob(
      view.data, shape, strides, [release = std::move(release)](void*) { release(); }, options);
}

ArrayView to_view(const at::Tensor& tensor) {
  COHORT_THROW_UNLESS(tensor.dim() <= kMaxRank, "a tensor of {} dimensions; an array view has at most {}", tensor.dim(),
                      kMaxRank);
  ArrayView view = make_view(tensor.data_ptr(), to_element_type(tensor.scalar_type()),
                             std::span<const std::int64_t>(tensor.sizes().data(), tensor.sizes().size()),
                             to_device_id(tensor.device()));
  for (std::int64_t i = 0; i < tensor.dim(); ++i) view.strides[static_cast<std::size_t>(i)] = tensor.stride(i);
  return view;
}

}  // namespace cohort::tensors
