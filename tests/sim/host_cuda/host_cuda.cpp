#include "sim/host_cuda/host_cuda.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "sim/host_cuda/cuda_runtime.h"

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cohort::host_cuda {

struct Graph {
  std::vector<std::function<void()>> work;
};
struct Stream {
  int device;
  std::vector<std::function<void()>> work;  ///< put there, not done
  std::unique_ptr<Graph> recording;
  bool invalid = false;  ///< the recording
};

namespace {

constexpr int kMultiprocessors = 1, kThreadsPerMultiprocessor = 2048, kReservedShared = 1024;
/// Of a multiprocessor: little on one device, so that some of what would lie there does, as much as GPUs have on the
/// other.
constexpr int kSharedBytes[kDevices] = {64 << 10, 228 << 10};
/// Of a block, without and with asking for more.
constexpr int kSharedOfBlock = 48 << 10, kMostSharedOfBlock[kDevices] = {50 << 10, 96 << 10};

struct Allocation {
  int device;
  std::size_t bytes;   ///< as asked for
  void* mapped;        ///< whole pages, and the one that is never open
  std::size_t opened;  ///< bytes of the pages before that one
};

struct Runtime {
  std::recursive_mutex mutex;
  std::map<std::uintptr_t, Allocation> device_memory;
  std::map<std::uintptr_t, std::size_t> host_memory;
  std::set<Stream*> streams;
  int graphs = 0, default_stream = 0, fail_after = -1;
  int launches[kDevices] = {};
  long long uploaded[kDevices] = {}, downloaded[kDevices] = {};
  std::map<std::pair<int, const void*>, int> allowed_shared;  ///< by device and kernel
  double limit[kDevices] = {kTotalBytes, kTotalBytes};
  bool fail_wait = false, broken = false;
  float* shared = nullptr;
  std::size_t shared_bytes = 0;

  std::size_t free_bytes(int device) const {
    double used = 0;
    for (const auto& [at, a] : device_memory) used += a.device == device ? static_cast<double>(a.opened) : 0;
    return static_cast<std::size_t>(std::max(0.0, limit[device] - used));
  }
  void protect(int device, int how) {
    for (const auto& [at, a] : device_memory) {
      if (a.device == device) mprotect(a.mapped, a.opened, how);
    }
  }
  /// Whether [memory, memory + bytes) is part of an allocation of the device.
  bool holds(int device, const void* memory, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    auto next = device_memory.upper_bound(at);
    if (next == device_memory.begin()) return false;
    const auto& [start, a] = *--next;
    return a.device == device && at + bytes <= start + a.bytes;
  }
  bool is_page_locked(const void* memory, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    auto next = host_memory.upper_bound(at);
    if (next == host_memory.begin()) return false;
    const auto& [start, size] = *--next;
    return at + bytes <= start + size;
  }
  void finish(Stream& stream) {
    protect(stream.device, PROT_READ | PROT_WRITE);
    for (const auto& piece : stream.work) piece();
    stream.work.clear();
    protect(stream.device, PROT_NONE);
  }
};

Runtime& runtime() {
  static Runtime r;
  return r;
}
using Lock = std::lock_guard<std::recursive_mutex>;

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

cudaError_t failed(cudaError_t status) {
  last = status;
  return status;
}

/// A stream that this thread records makes calls that wait or allocate invalid (the mode of capture that we use).
cudaError_t refuse_during_capture() {
  for (Stream* s : runtime().streams) {
    if (s->recording) {
      s->invalid = true;
      return failed(cudaErrorStreamCaptureUnsupported);
    }
  }
  return cudaSuccess;
}

cudaError_t put(Stream* stream, std::function<void()> work) {
  Runtime& r = runtime();
  if (stream == nullptr) {
    ++r.default_stream;
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (!r.streams.contains(stream) || stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  (stream->recording ? stream->recording->work : stream->work).push_back(std::move(work));
  return cudaSuccess;
}

/// Bytes [from, from + size) hold what a block finds in its shared memory.
bool is_untouched(const void* from, std::size_t size) {
  // All bytes are alike where the first is right and each is as the one before it.
  const auto* byte = static_cast<const unsigned char*>(from);
  return size == 0 || (byte[0] == 0xff && std::memcmp(byte, byte + 1, size - 1) == 0);
}

bool must_fail() {
  Runtime& r = runtime();
  return r.fail_after >= 0 && r.fail_after-- == 0;
}

}  // namespace

Counts counts(int device) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  Counts c;
  for (const auto& [at, a] : r.device_memory) c.allocations += a.device == device ? 1 : 0;
  for (Stream* s : r.streams) c.streams += s->device == device ? 1 : 0;
  c.graphs = r.graphs;
  c.launches = r.launches[device];
  c.default_stream = r.default_stream;
  c.uploaded = r.uploaded[device], c.downloaded = r.downloaded[device];
  return c;
}
void use_shared_memory(float* memory, int bytes) {
  runtime().shared = memory;
  runtime().shared_bytes = static_cast<std::size_t>(bytes);
}
void limit_memory(int device, double free_bytes) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  r.limit[device] = kTotalBytes;
  r.limit[device] = std::min(kTotalBytes, kTotalBytes - static_cast<double>(r.free_bytes(device)) + free_bytes);
}
void fail_allocation_after(int n) {
  runtime().fail_after = n;
}
void fail_next_wait() {
  runtime().fail_wait = true;
}

cudaError_t set_attribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || value > kMostSharedOfBlock[current]) return failed(cudaErrorInvalidValue);
      r.allowed_shared[{current, kernel}] = value;
      break;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < 0 || value > 100) return failed(cudaErrorInvalidValue);
      break;
  }
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread) {
  const Lock lock(runtime().mutex);
  const dim3 grid = config.gridDim, block = config.blockDim;
  if (grid.x < 1 || grid.y != 1 || grid.z != 1 || block.x < 1 || block.x > 1024 || block.y != 1 || block.z != 1) {
    return failed(cudaErrorInvalidConfiguration);
  }
  const std::size_t shared = config.dynamicSmemBytes;
  if (shared > runtime().shared_bytes) return failed(cudaErrorInvalidValue);
  const int device = current;
  const auto allowed = runtime().allowed_shared.find({device, kernel});
  const int most =
      allowed == runtime().allowed_shared.end() ? kSharedOfBlock : std::max(kSharedOfBlock, allowed->second);
  if (shared > static_cast<std::size_t>(most)) return failed(cudaErrorInvalidValue);
  return put(config.stream, [=, thread = std::move(thread)] {
    Runtime& r = runtime();
    ++r.launches[device];
    gridDim = grid;
    blockDim = block;
    for (blockIdx = {0}; blockIdx.x < grid.x; ++blockIdx.x) {
      std::memset(r.shared, 0xff, r.shared_bytes);
      for (threadIdx = {0}; threadIdx.x < block.x; ++threadIdx.x) thread();
      if (!is_untouched(reinterpret_cast<char*>(r.shared) + shared, r.shared_bytes - shared)) r.broken = true;
    }
  });
}

}  // namespace cohort::host_cuda

using namespace cohort::host_cuda;

cudaError_t cudaGetLastError() {
  return std::exchange(last, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
  }
  return "unknown";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return failed(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (device < 0 || device >= kDevices) return failed(cudaErrorInvalidDevice);
  *out = {};
  std::strcpy(out->name, "memory of the host");
  out->multiProcessorCount = kMultiprocessors;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= kDevices) return failed(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *out = kMultiprocessors;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *out = kThreadsPerMultiprocessor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *out = kSharedBytes[device];
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *out = kMostSharedOfBlock[device];
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *out = kReservedShared;
      break;
  }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const Lock lock(runtime().mutex);
  *total_bytes = static_cast<std::size_t>(kTotalBytes);
  *free_bytes = runtime().free_bytes(current);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  const Lock lock(runtime().mutex);
  auto* stream = new Stream{current, {}, nullptr};
  runtime().streams.insert(stream);
  *out = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (!r.streams.contains(stream)) return failed(cudaErrorInvalidResourceHandle);
  r.finish(*stream);
  r.streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (!r.streams.contains(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = refuse_during_capture(); status != cudaSuccess) return status;
  r.finish(*stream);
  const bool failing = std::exchange(r.fail_wait, false) || r.broken;
  return failing ? failed(cudaErrorIllegalAddress) : cudaSuccess;
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (const cudaError_t status = refuse_during_capture(); status != cudaSuccess) return status;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t padded = (bytes + 255) / 256 * 256, opened = (padded + page - 1) / page * page;
  if (must_fail() || bytes == 0 || opened > r.free_bytes(current)) return failed(cudaErrorMemoryAllocation);
  void* mapped = mmap(nullptr, opened + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return failed(cudaErrorMemoryAllocation);
  // All bits set: a NaN as a float, -1 as an integer.
  std::memset(mapped, 0xff, opened);
  mprotect(mapped, opened + page, PROT_NONE);
  *out = static_cast<char*>(mapped) + (opened - padded);
  r.device_memory[reinterpret_cast<std::uintptr_t>(*out)] = {current, bytes, mapped, opened};
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  const auto at = r.device_memory.find(reinterpret_cast<std::uintptr_t>(memory));
  if (at == r.device_memory.end() || at->second.device != current) return failed(cudaErrorInvalidValue);
  for (Stream* s : r.streams) {
    if (s->device == current) r.finish(*s);
  }
  munmap(at->second.mapped, at->second.opened + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  r.device_memory.erase(at);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (const cudaError_t status = refuse_during_capture(); status != cudaSuccess) return status;
  if (must_fail() || bytes == 0) return failed(cudaErrorMemoryAllocation);
  *out = ::operator new(bytes);
  std::memset(*out, 0xff, bytes);
  r.host_memory[reinterpret_cast<std::uintptr_t>(*out)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (r.host_memory.erase(reinterpret_cast<std::uintptr_t>(memory)) == 0) return failed(cudaErrorInvalidValue);
  for (Stream* s : r.streams) r.finish(*s);
  ::operator delete(memory);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const Lock lock(runtime().mutex);
  if (!runtime().holds(current, to, bytes)) return failed(cudaErrorInvalidValue);
  return put(stream, [=] { std::memset(to, value, bytes); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  const bool up = kind == cudaMemcpyHostToDevice;
  if (!r.holds(current, up ? to : from, bytes)) return failed(cudaErrorInvalidValue);
  (up ? r.uploaded : r.downloaded)[current] += static_cast<long long>(bytes);
  if (r.is_page_locked(up ? from : to, bytes)) return put(stream, [=] { std::memcpy(to, from, bytes); });
  // Of memory that the system may move, a copy is taken at once; into it, the call waits.
  if (up) {
    const auto* bytes_of = static_cast<const unsigned char*>(from);
    return put(stream, [to, staged = std::vector<unsigned char>(bytes_of, bytes_of + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  }
  if (const cudaError_t status = refuse_during_capture(); status != cudaSuccess) return status;
  const cudaError_t status = put(stream, [=] { std::memcpy(to, from, bytes); });
  if (status == cudaSuccess) r.finish(*stream);
  return status;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (!r.streams.contains(stream) || stream->recording) return failed(cudaErrorInvalidResourceHandle);
  stream->recording = std::make_unique<Graph>();
  stream->invalid = false;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  *out = nullptr;
  if (!r.streams.contains(stream) || !stream->recording) return failed(cudaErrorInvalidResourceHandle);
  const std::unique_ptr<Graph> recorded = std::move(stream->recording);
  if (stream->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  *out = new Graph(*recorded);
  ++r.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  const Lock lock(runtime().mutex);
  *out = new Graph(*graph);
  ++runtime().graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Lock lock(runtime().mutex);
  for (const auto& piece : graph->work) {
    if (const cudaError_t status = put(stream, piece); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock(runtime().mutex);
  --runtime().graphs;
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return cudaGraphDestroy(graph);
}
