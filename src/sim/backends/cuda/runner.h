/// What the CUDA engine asks of the device: memory and launches. Plain pointers and numbers, so that neither
/// CUDA's headers are needed on this side nor C++20 on the other. Where no CUDA compiler was found, cuda/absent.cpp
/// stands in for cuda/runner.cu.
///
/// Every function names its device and leaves the caller's current device as it was. Those that return text return
/// null, or why they could not; a launch is followed by a check, and what goes wrong on the device later is reported by
/// the next wait().
#pragma once
#include "sim/kernels/lane/control_range.h"
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim::cuda {

/// True when this build has the kernels.
bool available();

/// Devices visible to the process; 0 also where there is no driver.
int device_count();

struct DeviceFigures {
  char name[256];
  int multiprocessors;
  unsigned long long free_bytes, total_bytes;
};
const char* describe_device(int device, DeviceFigures& out);

/// How a block of 32 environments lies in memory while it is computed; worked out on the host, because it takes a look
/// at every pair of geoms.
struct BlockPlan {
  ConstraintCapacity most;          ///< constraint_capacity of the model
  int values_per_lane;              ///< in the block's memory
  int hot_per_lane;                 ///< in the multiprocessor's shared memory instead
  int carveout;                     ///< per cent of what a multiprocessor can share that its blocks do share
  unsigned long long search_bytes;  ///< of a thread that searches over convex shapes
  unsigned long long bytes;         ///< of all that is in the block's memory
};

/// That, and how many blocks the device computes at once: more workspaces than that are of no use.
struct WorkspaceNeed {
  BlockPlan block;
  unsigned long long local_bytes;  ///< what the driver sets aside for the threads' stacks
  int blocks_at_once;
};
/// For so many blocks of environments: the fewer of them a multiprocessor gets, the more of its shared memory each may
/// have. `m` in host memory. Asked before the first launch: also lets blocks ask for all that the device can share.
/// For measuring only, the environment variables COHORT_GPU_HOT (values that a lane has in shared memory at most) and
/// COHORT_GPU_CARVEOUT (BlockPlan::carveout) override what is worked out.
const char* workspace_need(int device, const ModelView& m, int blocks, WorkspaceNeed& out);

const char* open_stream(int device, void** stream);
void close_stream(int device, void* stream);

/// Holds anything.
const char* allocate(int device, unsigned long long bytes, void** out);
/// Zeros, before what is put on the stream later.
const char* zero(int device, void* stream, void* memory, unsigned long long bytes);
void release(int device, void* memory);
/// Page-locked host memory, zeros.
const char* allocate_host(int device, unsigned long long bytes, void** out);
void release_host(int device, void* memory);

/// Both wait until the copy is there.
const char* upload(int device, void* stream, void* to, const void* from, unsigned long long bytes);
const char* download(int device, void* stream, void* to, const void* from, unsigned long long bytes);
const char* wait(int device, void* stream);

/// One engine's environments on its device.
struct Batch {
  int device;
  void* stream;     ///< cudaStream_t
  ModelView model;  ///< arrays in device memory
  DataView data;    ///< likewise; n_pad is a multiple of 32
  BlockPlan block;
  void* workspace;  ///< workspace_blocks * block.bytes
  int workspace_blocks;
};

/// One launch that advances every environment by `steps` timesteps. Only launches, so a caller who
/// captures the stream gets it into his graph.
const char* step(const Batch& batch, int steps);
/// One launch that computes the derived fields.
const char* forward(const Batch& batch);

/// What an environment is reset to: qpos0 (nq), mocap_pos0 (3 nmocap), mocap_quat0 (4 nmocap), in device memory.
struct Defaults {
  const float *qpos, *mocap_pos, *mocap_quat;
};
/// envs: (count) in device memory.
const char* reset(const Batch& batch, const Defaults& defaults, const int* envs, int count);

/// Rows of chosen environments to where an array has them: to[row * stride + envs[i]] = from[row * count + i]. All in the
/// device's memory; envs (count), from (rows, count).
const char* scatter(int device, void* stream, float* to, long long stride, const float* from, const int* envs,
                    int count, int rows);
/// The way back: to[row * count + i] = from[row * stride + envs[i]].
const char* gather(int device, void* stream, float* to, const float* from, long long stride, const int* envs, int count,
                   int rows);

/// Random controls of the first n_envs environments; ranges: (count) in device memory, by their indices.
const char* draw_controls(const Batch& batch, const ControlRange* ranges, int count, const ControlDraw& draw,
                          int n_envs);

}  // namespace cohort::sim::cuda
