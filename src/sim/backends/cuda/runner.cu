// The batched engine's kernels on a CUDA device: a thread computes an environment from end to end, a warp a block of
// 32, and one launch as many steps as the caller likes. The source is the CPU's (sim/kernels), compiled without
// contraction (-fmad=false), with IEEE division and square root, which are nvcc's defaults: the bits are
// meant to be the CPU's.
#include <cstdlib>

#include "core/philox.h"
#include "sim/backends/cuda/block.h"
#include "sim/backends/cuda/current_device.h"
#include "sim/backends/cuda/runner.h"

namespace cohort::sim::cuda {
namespace {

/// Warps that a multiprocessor of 65,536 registers is to hold: 128 registers each thread. The searches over convex
/// shapes would take all 255 otherwise, from the models that have none, too.
constexpr int kWarpsAtOnce = 16;

/// `steps` timesteps; none: the derived fields of the present state. One kernel for both, because nvcc compiles all
/// that a kernel calls for each kernel anew. A warp works on the blocks of environments w, w + workspaces,
/// w + 2 workspaces, ...: which workspace an environment gets, and how many there are, is in no result.
__global__ void __launch_bounds__(kLanes, kWarpsAtOnce)
    block_kernel(const __grid_constant__ ModelView m, const __grid_constant__ DataView d, char* workspace,
                 const __grid_constant__ BlockPlan plan, int steps) {
  extern __shared__ float hot[];
  const int lane = static_cast<int>(threadIdx.x);
  BlockSpace<GpuLane> space;
#if !defined(__CUDA_ARCH__)
  if (kTeamThreads > 0) host_shared_memory = hot;
#endif
  prepare(m, plan, workspace + blockIdx.x * plan.bytes, hot + kTeamShare, lane, space);
  for (int block = static_cast<int>(blockIdx.x); block < d.n_pad / kLanes; block += static_cast<int>(gridDim.x)) {
    const int env = block * kLanes + lane;
    for (int s = 0; s < steps; ++s) {
      step_block<GpuLane>(m, d, {env, nullptr}, space, s + 1 == steps);
    }
    if (steps == 0) forward_block<GpuLane>(m, d, env, space);
  }
}

__device__ void clear(float* field, int n, int n_pad, int env) {
  for (int i = 0; i < n; ++i) field[static_cast<long long>(i) * n_pad + env] = 0.0f;
}
__device__ void fill(float* field, const float* from, int n, int n_pad, int env) {
  for (int i = 0; i < n; ++i) field[static_cast<long long>(i) * n_pad + env] = from[i];
}

/// Of a field that nobody asked for: nothing.
__device__ void clear_some(float* field, int n, int n_pad, int env) {
  if (field != nullptr) clear(field, n, n_pad, env);
}

__global__ void reset_kernel(const __grid_constant__ ModelView m, const __grid_constant__ DataView d, Defaults defaults,
                             const int* envs, int count) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= count) return;
  const int e = envs[k];
  fill(d.qpos, defaults.qpos, m.nq, d.n_pad, e);
  fill(d.mocap_pos, defaults.mocap_pos, 3 * m.nmocap, d.n_pad, e);
  fill(d.mocap_quat, defaults.mocap_quat, 4 * m.nmocap, d.n_pad, e);
  clear(d.qvel, m.nv, d.n_pad, e);
  clear(d.act, m.na, d.n_pad, e);
  clear(d.warmstart, m.nv, d.n_pad, e);
  clear(d.time, 1, d.n_pad, e);
  clear(d.time_low, 1, d.n_pad, e);
  clear(d.history, m.nhistory, d.n_pad, e);
  clear(d.ctrl, m.nu, d.n_pad, e);
  clear(d.applied, m.nv, d.n_pad, e);
  clear(d.link_force, 6 * m.nlink, d.n_pad, e);
  clear(d.separations, 3 * m.nseparation, d.n_pad, e);
  clear(d.qacc, m.nv, d.n_pad, e);
  clear(d.link_pos, 3 * m.nlink, d.n_pad, e);
  clear(d.link_quat, 4 * m.nlink, d.n_pad, e);
  clear(d.sensors, m.nsensordata, d.n_pad, e);
  clear_some(d.link_com, 3 * m.nlink, d.n_pad, e);
  clear_some(d.link_inertia, 10 * m.nlink, d.n_pad, e);
  clear_some(d.link_velocity, 6 * m.nlink, d.n_pad, e);
  clear_some(d.link_external, 6 * m.nlink, d.n_pad, e);
  clear_some(d.qfrc_actuator, m.nv, d.n_pad, e);
  clear_some(d.qfrc_constraint, m.nv, d.n_pad, e);
  clear_some(d.link_twist, 6 * m.nlink, d.n_pad, e);
  clear_some(d.geom_force, 6 * m.nfilegeom, d.n_pad, e);
  d.status[e] = 0;
  d.contact_count[e] = 0;
  d.iterations[e] = 0;
}

__global__ void scatter_kernel(float* to, long long stride, const float* from, const int* envs, int count, int rows) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  for (int row = 0; row < rows; ++row) to[row * stride + envs[i]] = from[static_cast<long long>(row) * count + i];
}
__global__ void gather_kernel(float* to, const float* from, long long stride, const int* envs, int count, int rows) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  for (int row = 0; row < rows; ++row) to[static_cast<long long>(row) * count + i] = from[row * stride + envs[i]];
}

/// RandomControls::draw, an environment per thread.
__global__ void controls_kernel(float* ctrl, int n_pad, const ControlRange* ranges, int count, ControlDraw draw,
                                int n_envs) {
  const int e = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (e >= n_envs) return;
  const RandomStream stream(draw.seed, RandomPurpose::kAction,
                            static_cast<unsigned long long>(draw.first_environment + e),
                            static_cast<unsigned long long>(draw.step));
  for (int i = 0; i < count; ++i) {
    const ControlRange range = ranges[i];
    ctrl[static_cast<long long>(range.index) * n_pad + e] =
        range.at(stream.uniform(static_cast<unsigned long long>(range.index)));
  }
}

/// For kernels with an environment per thread.
constexpr int kThreads = 128;
unsigned blocks_for(int envs) {
  return static_cast<unsigned>((envs - 1) / kThreads + 1);
}

/// Shared memory of a block: what its teams solve in, and the hot values of its lanes.
size_t shared_bytes(int hot_per_lane) {
  return sizeof(float) * (static_cast<size_t>(kTeamShare) + kLanes * static_cast<size_t>(hot_per_lane));
}

/// A number from the environment, for measuring; otherwise `value`.
int measured_with(const char* variable, int value) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != 0 ? std::atoi(text) : value;
}

/// Shared memory of a device, in bytes.
struct SharedMemory {
  int all;       ///< of a multiprocessor
  int of_block;  ///< that a block may have
  int reserved;  ///< of each block, besides
};
const char* shared_memory_of(int device, SharedMemory& out) {
  const auto ask = [&](int& to, cudaDeviceAttr attribute) {
    return text(cudaDeviceGetAttribute(&to, attribute, device));
  };
  if (const char* why = ask(out.all, cudaDevAttrMaxSharedMemoryPerMultiprocessor)) return why;
  if (const char* why = ask(out.of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin)) return why;
  return ask(out.reserved, cudaDevAttrReservedSharedMemoryPerBlock);
}

/// plan_block with the hot values for which the warps that a multiprocessor computes at once have room in its shared
/// memory, of which an eighth at least is left to the first-level cache.
const char* plan_with_shared_memory(int device, const ModelView& m, int warps, BlockPlan& out) {
  SharedMemory shared{};
  if (const char* why = shared_memory_of(device, shared)) return why;
  int bytes = shared.all / 8 * 7 / warps - shared.reserved;
  if (bytes > shared.of_block) bytes = shared.of_block;
  bytes -= static_cast<int>(shared_bytes(0));
  const int most = bytes > 0 ? bytes / static_cast<int>(sizeof(float) * kLanes) : 0;
  const int wanted = measured_with("COHORT_GPU_HOT", most);
  out = plan_block(m, wanted < most ? wanted : most);
  const long long used = warps * (static_cast<long long>(shared_bytes(out.hot_per_lane)) + shared.reserved);
  const int percent = static_cast<int>((100 * used + shared.all - 1) / shared.all);
  out.carveout = measured_with("COHORT_GPU_CARVEOUT", percent < 100 ? percent : 100);
  // A block has no more than 48 KiB unless it may ask for more.
  return text(cudaFuncSetAttribute(block_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared.of_block));
}

unsigned grid_of(const Batch& batch) {
  const int blocks = batch.data.n_pad / kLanes;
  return static_cast<unsigned>(blocks < batch.workspace_blocks ? blocks : batch.workspace_blocks);
}

template <class... P, class... A>
cudaError_t launch(const Batch& batch, unsigned blocks, unsigned threads, size_t shared_bytes, void (*kernel)(P...),
                   A... arguments) {
  return launch_on(batch.stream, blocks, threads, shared_bytes, kernel, arguments...);
}

cudaError_t launch_blocks(const Batch& batch, int steps) {
  // Of the function, which engines of other models and batches share: said again before each launch.
  const cudaError_t status =
      cudaFuncSetAttribute(block_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, batch.block.carveout);
  if (status != cudaSuccess) return status;
  return launch(batch, grid_of(batch), kLanes, shared_bytes(batch.block.hot_per_lane), block_kernel, batch.model,
                batch.data, static_cast<char*>(batch.workspace), batch.block, steps);
}

}  // namespace

bool available() {
  return true;
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

const char* describe_device(int device, DeviceFigures& out) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  cudaDeviceProp properties;
  if (const char* why = text(cudaGetDeviceProperties(&properties, device))) return why;
  for (int i = 0; i < 256; ++i) out.name[i] = properties.name[i];
  out.name[255] = 0;
  out.multiprocessors = properties.multiProcessorCount;
  size_t free_bytes = 0, total_bytes = 0;
  if (const char* why = text(cudaMemGetInfo(&free_bytes, &total_bytes))) return why;
  out.free_bytes = free_bytes;
  out.total_bytes = total_bytes;
  return nullptr;
}

const char* workspace_need(int device, const ModelView& m, int blocks, WorkspaceNeed& out) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  int multiprocessors = 0, threads = 0, warps = 0;
  if (const char* why = text(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device))) {
    return why;
  }
  const int of_each = (blocks + multiprocessors - 1) / multiprocessors;
  if (const char* why =
          plan_with_shared_memory(device, m, of_each < kWarpsAtOnce ? of_each : kWarpsAtOnce, out.block)) {
    return why;
  }
  if (const char* why = text(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device)))
    return why;
  cudaFuncAttributes figures;
  if (const char* why = text(cudaFuncGetAttributes(&figures, block_kernel))) return why;
  // The driver reserves for as many threads as the device could hold, whatever their registers allow.
  out.local_bytes = static_cast<unsigned long long>(figures.localSizeBytes) * static_cast<unsigned long long>(threads) *
                    static_cast<unsigned long long>(multiprocessors);
  if (const char* why = text(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&warps, block_kernel, kLanes,
                                                                           shared_bytes(out.block.hot_per_lane)))) {
    return why;
  }
  out.blocks_at_once = multiprocessors * (warps > 0 ? warps : 1);
  return nullptr;
}

const char* open_stream(int device, void** stream) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  cudaStream_t made = nullptr;
  const char* why = text(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  *stream = made;
  return why;
}

void close_stream(int device, void* stream) {
  const OnDevice on(device);
  if (on.status() == cudaSuccess) cudaStreamDestroy(stream_of(stream));
}

const char* allocate(int device, unsigned long long bytes, void** out) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  *out = nullptr;
  return text(cudaMalloc(out, bytes));
}

const char* zero(int device, void* stream, void* memory, unsigned long long bytes) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(cudaMemsetAsync(memory, 0, bytes, stream_of(stream)));
}

void release(int device, void* memory) {
  const OnDevice on(device);
  if (on.status() == cudaSuccess) cudaFree(memory);
}

const char* allocate_host(int device, unsigned long long bytes, void** out) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  *out = nullptr;
  if (const char* why = text(cudaMallocHost(out, bytes))) return why;
  char* at = static_cast<char*>(*out);
  for (unsigned long long i = 0; i < bytes; ++i) at[i] = 0;
  return nullptr;
}

void release_host(int device, void* memory) {
  const OnDevice on(device);
  if (on.status() == cudaSuccess) cudaFreeHost(memory);
}

const char* upload(int device, void* stream, void* to, const void* from, unsigned long long bytes) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (bytes == 0) return nullptr;
  if (const char* why = text(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(stream)))) return why;
  return text(cudaStreamSynchronize(stream_of(stream)));
}

const char* download(int device, void* stream, void* to, const void* from, unsigned long long bytes) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (bytes == 0) return nullptr;
  if (const char* why = text(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(stream)))) return why;
  return text(cudaStreamSynchronize(stream_of(stream)));
}

const char* wait(int device, void* stream) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(cudaStreamSynchronize(stream_of(stream)));
}

const char* step(const Batch& batch, int steps) {
  const OnDevice on(batch.device);
  if (on.status() != cudaSuccess) return text(on.status());
  return steps > 0 ? text(launch_blocks(batch, steps)) : nullptr;
}

const char* forward(const Batch& batch) {
  const OnDevice on(batch.device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(launch_blocks(batch, 0));
}

const char* reset(const Batch& batch, const Defaults& defaults, const int* envs, int count) {
  const OnDevice on(batch.device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0) return nullptr;
  return text(
      launch(batch, blocks_for(count), kThreads, 0, reset_kernel, batch.model, batch.data, defaults, envs, count));
}

const char* scatter(int device, void* stream, float* to, long long stride, const float* from, const int* envs,
                    int count, int rows) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0 || rows == 0) return nullptr;
  return text(launch_on(stream, blocks_for(count), kThreads, 0, scatter_kernel, to, stride, from, envs, count, rows));
}

const char* gather(int device, void* stream, float* to, const float* from, long long stride, const int* envs, int count,
                   int rows) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0 || rows == 0) return nullptr;
  return text(launch_on(stream, blocks_for(count), kThreads, 0, gather_kernel, to, from, stride, envs, count, rows));
}

const char* draw_controls(const Batch& batch, const ControlRange* ranges, int count, const ControlDraw& draw,
                          int n_envs) {
  const OnDevice on(batch.device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0) return nullptr;
  return text(launch(batch, blocks_for(n_envs), kThreads, 0, controls_kernel, batch.data.ctrl, batch.data.n_pad, ranges,
                     count, draw, n_envs));
}

}  // namespace cohort::sim::cuda
