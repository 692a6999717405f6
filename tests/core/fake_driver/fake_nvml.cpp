#include "core/fake_driver/fake_gpus.h"

namespace {
std::vector<fake::Gpu> all;
const fake::Gpu& at(void* device) {
  return *static_cast<fake::Gpu*>(device);
}
struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};
}  // namespace

extern "C" {
int nvmlInit_v2() {
  all = fake::gpus();
  return fake::number("COHORT_FAKE_NVMLINIT", 0);
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int) {
  return "an error of the fake";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  fake::copy("580.65.06", text, size);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(all.size());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &all[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  fake::copy(at(device).name, text, size);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = at(device).bytes;
  memory->used = 1ull << 30;
  memory->free = memory->total - memory->used;
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = at(device).major;
  *minor = at(device).minor;
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  fake::copy("0000" + at(device).pci, info->bus_id, sizeof info->bus_id);  // NVML writes the domain with eight digits
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  fake::copy(at(device).uuid, text, size);
  return 0;
}
}
