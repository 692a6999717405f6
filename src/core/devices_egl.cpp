// EGL, opened at run time: which entry of eglQueryDevicesEXT is which GPU. Constants and signatures: the Khronos
// registry, EGL_EXT_device_enumeration, EGL_EXT_device_query, EGL_EXT_device_persistent_id, EGL_EXT_device_drm,
// EGL_NV_device_cuda.
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include <dlfcn.h>

#include "core/devices_cuda.h"
#include "core/devices_probe.h"
#include "core/format.h"

namespace cohort {
namespace fs = std::filesystem;
namespace {

constexpr std::int32_t kExtensions = 0x3055;
constexpr std::int32_t kDrmDeviceFile = 0x3233;
constexpr std::int32_t kCudaDevice = 0x323A;
constexpr std::int32_t kDeviceUuid = 0x335C;
constexpr std::int32_t kMostDevices = 64;

using GetProcAddress = void* (*)(const char*);
using QueryDevices = unsigned (*)(std::int32_t, void**, std::int32_t*);
using QueryString = const char* (*)(void*, std::int32_t);
using QueryAttribute = unsigned (*)(void*, std::int32_t, std::intptr_t*);
using QueryBinary = unsigned (*)(void*, std::int32_t, std::int32_t, void*, std::int32_t*);

/// "/dev/dri/card1" -> the PCI address of the device behind it, by way of /sys/class/drm/card1/device.
std::string pci_of_drm_node(const std::string& node) {
  std::error_code error;
  const fs::path device = fs::canonical(fs::path("/sys/class/drm") / fs::path(node).filename() / "device", error);
  return error ? "" : normal_pci_bus_id(device.filename().string());
}

}  // namespace

EglReport probe_egl() {
  EglReport report;
  void* library = dlopen("libEGL.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    report.failure = "libEGL.so.1 cannot be opened";
    return report;
  }
  const auto get_proc = reinterpret_cast<GetProcAddress>(dlsym(library, "eglGetProcAddress"));
  const auto query_devices = get_proc ? reinterpret_cast<QueryDevices>(get_proc("eglQueryDevicesEXT")) : nullptr;
  const auto query_string = get_proc ? reinterpret_cast<QueryString>(get_proc("eglQueryDeviceStringEXT")) : nullptr;
  const auto query_attribute =
      get_proc ? reinterpret_cast<QueryAttribute>(get_proc("eglQueryDeviceAttribEXT")) : nullptr;
  const auto query_binary = get_proc ? reinterpret_cast<QueryBinary>(get_proc("eglQueryDeviceBinaryEXT")) : nullptr;
  if (!query_devices || !query_string) {
    report.failure = "libEGL.so.1 cannot list devices";
    return report;
  }
  std::array<void*, kMostDevices> handles{};
  std::int32_t count = 0;
  if (!query_devices(kMostDevices, handles.data(), &count)) {
    report.failure = "eglQueryDevicesEXT failed";
    return report;
  }
  for (std::int32_t i = 0; i < count; ++i) {
    EglDevice device;
    void* handle = handles[static_cast<std::size_t>(i)];
    const char* text = query_string(handle, kExtensions);
    const std::string extensions = std::string(" ") + (text ? text : "") + " ";
    const auto has = [&](const char* name) {
      return extensions.find(std::string(" ") + name + " ") != std::string::npos;
    };
    std::array<unsigned char, 16> uuid{};
    std::int32_t size = 0;
    if (has("EGL_EXT_device_persistent_id") && query_binary &&
        query_binary(handle, kDeviceUuid, static_cast<std::int32_t>(uuid.size()), uuid.data(), &size) && size == 16) {
      device.uuid = "GPU-";
      for (std::size_t b = 0; b < uuid.size(); ++b)
        device.uuid += format("{}{:02x}", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "", uuid[b]);
    }
    if (has("EGL_EXT_device_drm"))
      if (const char* node = query_string(handle, kDrmDeviceFile)) device.pci_bus_id = pci_of_drm_node(node);
    std::intptr_t cuda = -1;
    if (has("EGL_NV_device_cuda") && query_attribute && query_attribute(handle, kCudaDevice, &cuda))
      device.cuda_index = static_cast<int>(cuda);
    report.devices.push_back(std::move(device));
  }
  return report;
}

}  // namespace cohort
