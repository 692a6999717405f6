// Holds the declarations of core/devices_cuda.h against NVIDIA's cuda.h; built where that header is present.
#include <type_traits>

#include <cuda.h>
#include <gtest/gtest.h>

#include "core/devices_cuda.h"

namespace cohort {
namespace {

static_assert(sizeof(CUresult) == sizeof(int) && std::is_same_v<CUdevice, int> && sizeof(CUuuid) == 16);

/// A function of ours is NVIDIA's with enumerations as int and CUuuid as bytes.
template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class T>
struct Plain {
  using Type = typename std::conditional_t<std::is_enum_v<T>, std::type_identity<int>, std::type_identity<T>>::type;
};
template <>
struct Plain<CUuuid*> {
  using Type = unsigned char*;
};
template <class... A, class... B>
struct Same<int(A...), CUresult(B...)> : std::is_same<int(A...), int(typename Plain<B>::Type...)> {};

TEST(CudaAbi, OurDeclarationsAreThoseOfTheHeader) {
  EXPECT_TRUE((Same<cuda_abi::Init, decltype(cuInit)>::value));
  EXPECT_TRUE((Same<cuda_abi::DriverGetVersion, decltype(cuDriverGetVersion)>::value));
  EXPECT_TRUE((Same<cuda_abi::GetErrorName, decltype(cuGetErrorName)>::value));
  EXPECT_TRUE((Same<cuda_abi::DeviceGetCount, decltype(cuDeviceGetCount)>::value));
  EXPECT_TRUE((Same<cuda_abi::DeviceGet, decltype(cuDeviceGet)>::value));
  EXPECT_TRUE((Same<cuda_abi::DeviceGetName, decltype(cuDeviceGetName)>::value));
  EXPECT_TRUE((Same<cuda_abi::DeviceTotalMem, decltype(cuDeviceTotalMem)>::value));
  EXPECT_TRUE((std::is_same_v<decltype(cuDeviceGetAttribute), CUresult(int*, CUdevice_attribute, CUdevice)>)&&sizeof(
                  CUdevice_attribute) == sizeof(int));
  EXPECT_TRUE((Same<cuda_abi::DeviceGetPCIBusId, decltype(cuDeviceGetPCIBusId)>::value));
  EXPECT_TRUE((Same<cuda_abi::DeviceGetUuid, decltype(cuDeviceGetUuid)>::value));
  EXPECT_EQ(cuda_abi::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(cuda_abi::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

}  // namespace
}  // namespace cohort
