/// The part of the CUDA driver API that the device list uses, declared without cuda.h.
#pragma once
#include <cstddef>
#include <string>

namespace cohort {
namespace cuda_abi {

// CUresult and CUdevice are ints, CUuuid is 16 bytes (cuda.h).
using Init = int(unsigned flags);
using DriverGetVersion = int(int* version);
using GetErrorName = int(int code, const char** name);
using DeviceGetCount = int(int* count);
using DeviceGet = int(int* device, int ordinal);
using DeviceGetName = int(char* name, int length, int device);
using DeviceTotalMem = int(std::size_t* bytes, int device);
using DeviceGetAttribute = int(int* value, int attribute, int device);
using DeviceGetPCIBusId = int(char* text, int length, int device);
using DeviceGetUuid = int(unsigned char* uuid, int device);

inline constexpr int kComputeCapabilityMajor = 75;  ///< CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kComputeCapabilityMinor = 76;

}  // namespace cuda_abi

/// "00000000:3B:00.0" and "0000:3b:00.0" are one address: "0000:3b:00.0". "" where the text is none.
std::string normal_pci_bus_id(const std::string& text);

}  // namespace cohort
