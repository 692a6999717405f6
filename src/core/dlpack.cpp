#include "core/dlpack.h"

#include <memory>

namespace cohort::dlpack {
namespace {

struct Holder {
  ManagedTensor managed{};
  std::array<std::int64_t, kMaxRank> shape{}, strides{};
  std::function<void()> release;
};

struct TypeRow {
  ElementType type;
  DataType dlpack;
};
constexpr TypeRow kTypes[] = {
    {ElementType::kFloat32, {kDLFloat, 32, 1}}, {ElementType::kFloat64, {kDLFloat, 64, 1}},
    {ElementType::kFloat16, {kDLFloat, 16, 1}}, {ElementType::kBFloat16, {kDLBfloat, 16, 1}},
    {ElementType::kInt64, {kDLInt, 64, 1}},     {ElementType::kInt32, {kDLInt, 32, 1}},
    {ElementType::kInt16, {kDLInt, 16, 1}},     {ElementType::kUInt8, {kDLUInt, 8, 1}},
    {ElementType::kBool, {kDLBool, 8, 1}},
};

}  // namespace

ManagedTensor* to_dlpack(const ArrayView& view, std::function<void()> release) {
  auto holder = std::make_unique<Holder>();
  holder->shape = view.shape;
  holder->strides = view.strides;
  holder->release = std::move(release);
  Tensor& tensor = holder->managed.dl_tensor;
  tensor.data = view.data;
  switch (view.device.kind) {
    case DeviceKind::kCpu:
      tensor.device = {kDLCPU, 0};
      break;
    case DeviceKind::kCuda:
      tensor.device = {kDLCUDA, view.device.index};
      break;
    case DeviceKind::kMetal:
      tensor.device = {kDLMetal, view.device.index};
      break;
  }
  tensor.ndim = view.rank;
  for (const TypeRow& row : kTypes)
    if (row.type == view.type) tensor.dtype = row.dlpack;
  tensor.shape = holder->shape.data();
  tensor.strides = holder->strides.data();
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](ManagedTensor* self) {
    std::unique_ptr<Holder> owned(static_cast<Holder*>(self->manager_ctx));
    if (owned->release) owned->release();
  };
  return &holder.release()->managed;
}

ArrayView from_dlpack(const ManagedTensor& managed) {
  const Tensor& tensor = managed.dl_tensor;
  COHORT_THROW_UNLESS(tensor.ndim >= 0 && tensor.ndim <= kMaxRank,
                      "a DLPack tensor of {} dimensions; at most {} are known", tensor.ndim, kMaxRank);
  const TypeRow* type = nullptr;
  for (const TypeRow& row : kTypes)
    if (row.dlpack.code == tensor.dtype.code && row.dlpack.bits == tensor.dtype.bits && tensor.dtype.lanes == 1)
      type = &row;
  COHORT_THROW_UNLESS(type, "a DLPack tensor of type code {}, {} bits, {} lanes is not known here", tensor.dtype.code,
                      tensor.dtype.bits, tensor.dtype.lanes);
  DeviceId device;
  switch (tensor.device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      device = {DeviceKind::kCpu, 0};
      break;
    case kDLCUDA:
      device = {DeviceKind::kCuda, tensor.device.device_id};
      break;
    case kDLMetal:
      device = {DeviceKind::kMetal, tensor.device.device_id};
      break;
    default:
      throw Error(format("a DLPack tensor on device type {} is not known here", tensor.device.device_type));
  }
  ArrayView view =
      make_view(static_cast<std::byte*>(tensor.data) + tensor.byte_offset, type->type,
                std::span<const std::int64_t>(tensor.shape, static_cast<std::size_t>(tensor.ndim)), device);
  if (tensor.strides)
    for (int i = 0; i < view.rank; ++i) view.strides[static_cast<std::size_t>(i)] = tensor.strides[i];
  return view;
}

}  // namespace cohort::dlpack
