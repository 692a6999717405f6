#include <cstdint>
#include <cstring>

#include "core/fake_driver/fake_gpus.h"

namespace {
std::vector<fake::Gpu> all;

unsigned query_devices(std::int32_t most, void** devices, std::int32_t* count) {
  all.clear();
  const auto gpus = fake::gpus();
  for (const int place : fake::order("COHORT_FAKE_EGL_ORDER", gpus.size()))
    all.push_back(gpus[static_cast<std::size_t>(place)]);
  *count = 0;
  for (fake::Gpu& gpu : all)
    if (*count < most) devices[(*count)++] = &gpu;
  return 1;
}
const char* query_string(void*, std::int32_t name) {
  return name == 0x3055 ? "EGL_EXT_device_persistent_id EGL_NV_device_cuda" : nullptr;
}
unsigned query_binary(void* device, std::int32_t name, std::int32_t most, void* value, std::int32_t* size) {
  if (name != 0x335C || most < 16) return 0;
  fake::uuid_bytes(static_cast<fake::Gpu*>(device)->uuid, static_cast<unsigned char*>(value));
  *size = 16;
  return 1;
}
unsigned query_attribute(void*, std::int32_t, std::intptr_t* value) {
  *value = 0;
  return 1;
}
}  // namespace

extern "C" void* eglGetProcAddress(const char* name) {
  if (!std::strcmp(name, "eglQueryDevicesEXT")) return reinterpret_cast<void*>(&query_devices);
  if (!std::strcmp(name, "eglQueryDeviceStringEXT")) return reinterpret_cast<void*>(&query_string);
  if (!std::strcmp(name, "eglQueryDeviceBinaryEXT")) return reinterpret_cast<void*>(&query_binary);
  if (!std::strcmp(name, "eglQueryDeviceAttribEXT")) return reinterpret_cast<void*>(&query_attribute);
  return nullptr;
}
