// NVML's interface with two invented GPUs. The first reports everything; the second, as integrated and older GPUs do,
// knows neither power nor memory; a third one has fallen off the bus. COHORT_INVENTED_NVML_INIT sets what nvmlInit_v2
// returns.
#include <cstdlib>
#include <cstring>

namespace {
constexpr int kSuccess = 0, kNotSupported = 3, kGpuIsLost = 15;
struct Gpu {
  int id;
};
Gpu gpus[2] = {{0}, {1}};

int put(char* out, unsigned size, const char* text) {
  if (std::strlen(text) + 1 > size) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  std::strcpy(out, text);
  return kSuccess;
}
}  // namespace

extern "C" {
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;
};
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

int nvmlInit_v2() {
  const char* code = std::getenv("COHORT_INVENTED_NVML_INIT");
  return code ? std::atoi(code) : kSuccess;
}
int nvmlShutdown() {
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return put(out, size, "580.65.06");
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu** device) {
  if (index == 2) return kGpuIsLost;
  *device = &gpus[index];
  return kSuccess;
}
int nvmlDeviceGetName(Gpu* gpu, char* out, unsigned size) {
  return put(out, size, gpu->id == 0 ? "Invented H100" : "Invented Thor");
}
int nvmlDeviceGetUUID(Gpu* gpu, char* out, unsigned size) {
  return put(out, size, gpu->id == 0 ? "GPU-0" : "GPU-1");
}
int nvmlDeviceGetPciInfo_v3(Gpu* gpu, nvmlPciInfo_t* pci) {
  return put(pci->busId, 32, gpu->id == 0 ? "00000000:1B:00.0" : "00000000:43:00.0");
}
int nvmlDeviceGetMemoryInfo(Gpu* gpu, nvmlMemory_t* memory) {
  if (gpu->id == 1) return kNotSupported;
  *memory = {80ull << 30, 60ull << 30, 20ull << 30};
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(Gpu*, nvmlUtilization_t* rates) {
  *rates = {97, 41};
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(Gpu* gpu, unsigned* milliwatts) {
  *milliwatts = 650500;
  return gpu->id == 0 ? kSuccess : kNotSupported;
}
int nvmlDeviceGetEnforcedPowerLimit(Gpu* gpu, unsigned* milliwatts) {
  *milliwatts = 700000;
  return gpu->id == 0 ? kSuccess : kNotSupported;
}
int nvmlDeviceGetTemperature(Gpu*, int sensor, unsigned* degrees) {
  *degrees = 71;
  return sensor == 0 ? kSuccess : 2;  // NVML_ERROR_INVALID_ARGUMENT
}
int nvmlDeviceGetClockInfo(Gpu*, int type, unsigned* mhz) {
  const unsigned clocks[] = {1111, 1980, 2619, 3333};  // graphics, SM, memory, video
  *mhz = clocks[type];
  return kSuccess;
}
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
// Twenty processes: more than a caller's first guess.
int nvmlDeviceGetComputeRunningProcesses_v3(Gpu* gpu, unsigned* count, nvmlProcessInfo_t* infos) {
  if (gpu->id == 1) return kNotSupported;
  const unsigned room = *count;
  *count = 20;
  if (room < 20) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  for (unsigned i = 0; i < 20; ++i) infos[i] = {4000 + i, i == 19 ? ~0ull : 1ull << 30, ~0u, ~0u};
  return kSuccess;
}
int nvmlDeviceGetCurrPcieLinkWidth(Gpu*, unsigned* lanes) {
  *lanes = 8;
  return kSuccess;
}
int nvmlDeviceGetMaxPcieLinkWidth(Gpu*, unsigned* lanes) {
  *lanes = 16;
  return kSuccess;
}
int nvmlDeviceGetTotalEccErrors(Gpu* gpu, int type, int counter, unsigned long long* count) {
  *count = type == 1 && counter == 0 ? 3 : 77;
  return gpu->id == 0 ? kSuccess : kNotSupported;
}
int nvmlDeviceGetP2PStatus(Gpu* a, Gpu* b, int capability, int* status) {
  *status = capability == 0 && a == b ? 0 : 1;  // NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED
  return kSuccess;
}
// The name before driver 535; the newer one is absent here, so that the way back is tested.
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu* gpu, unsigned long long* bits) {
  *bits = gpu->id == 0 ? 0x1 | 0x4 | 0x40 : 0;
  return kSuccess;
}
}
