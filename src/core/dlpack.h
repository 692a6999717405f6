/// ArrayView to and from DLPack (https://dmlc.github.io/dlpack/latest/c_api.html, ABI of version 0.8), the struct by
/// which array libraries hand each other memory. The declarations follow the published ABI, so that no header is
/// needed.
#pragma once
#include <cstdint>
#include <functional>

#include "core/array_view.h"

namespace cohort::dlpack {

enum DeviceType : std::int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLMetal = 8 };
enum TypeCode : std::uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };

struct Device {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< elements; null = row-major
  std::uint64_t byte_offset;
};
/// Owned by whoever received it, who calls deleter(this) once.
struct ManagedTensor {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor*);
};

/// A managed tensor over the view's memory; `release` runs when its receiver deletes it. The stream is not handed over:
/// the content must be valid on the receiver's stream, or synchronised before.
ManagedTensor* to_dlpack(const ArrayView& view, std::function<void()> release);

/// A view of a received tensor, which stays owned by the caller and must outlive the view. Throws Error for an element
/// type or device that Cohort does not know, or more than kMaxRank dimensions.
ArrayView from_dlpack(const ManagedTensor& tensor);

}  // namespace cohort::dlpack
