#include "core/fake_driver/fake_gpus.h"

namespace {
/// What CUDA_VISIBLE_DEVICES leaves, as places in PCI order.
std::vector<int> visible;
std::vector<fake::Gpu> all;
const fake::Gpu& at(int device) {
  return all[static_cast<std::size_t>(visible[static_cast<std::size_t>(device)])];
}
}  // namespace

extern "C" {
int cuInit(unsigned) {
  if (const int code = fake::number("COHORT_FAKE_CUINIT", 0)) return code;
  all = fake::gpus();
  visible.clear();
  const auto order = fake::order("COHORT_FAKE_CUDA_ORDER", all.size());
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!mask) {
    for (std::size_t i = 0; i < all.size(); ++i) visible.push_back(order[i]);
  } else {
    for (const std::string& entry : fake::split(mask, ',')) {
      int found = -1;
      if (entry.rfind("GPU-", 0) == 0) {
        for (std::size_t i = 0; i < all.size(); ++i)
          if (all[i].uuid.rfind(entry, 0) == 0) found = static_cast<int>(i);
      } else if (!entry.empty() && entry[0] >= '0' && entry[0] <= '9') {
        const auto index = static_cast<std::size_t>(std::atoi(entry.c_str()));
        if (index < all.size()) found = order[index];
      }
      if (found < 0) break;
      visible.push_back(found);
    }
  }
  return visible.empty() ? 100 : 0;
}
int cuDriverGetVersion(int* version) {
  *version = fake::number("COHORT_FAKE_CUDA_VERSION", 13000);
  return 0;
}
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible.size());
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  fake::copy(at(device).name, name, static_cast<unsigned>(length));
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = at(device).bytes;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? at(device).major : at(device).minor;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int length, int device) {
  fake::copy(at(device).pci, text, static_cast<unsigned>(length));
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  fake::uuid_bytes(at(device).uuid, uuid);
  return 0;
}
}
