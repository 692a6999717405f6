/// The CUDA part of LibTorch, loaded at run time and only when a CUDA device is wanted, so that the program neither
/// links nor loads libtorch_cuda (and the 3 GB behind it) on a machine without a GPU.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace cohort::dist {

/// Sums the flat gradient buckets of the GPUs of one process into the first one's, with NCCL, on streams of its own, so
/// that it overlaps with the backward passes that still run.
class DeviceReducer {
 public:
  virtual ~DeviceReducer() = default;
  /// Notes that replica `replica` has written its copy of `bucket` on its current stream. Called by that replica's
  /// thread.
  virtual void mark_ready(std::size_t bucket, std::size_t replica) = 0;
  /// Starts the sum of `buffers` (one tensor per replica) into buffers[0], once all replicas have marked it ready.
  virtual void reduce(std::size_t bucket, const std::vector<at::Tensor>& buffers) = 0;
  /// Makes the current stream of every device wait for all sums that were started.
  virtual void finish() = 0;
  /// Copies buffers[0] to all others (parameters after an optimizer's step, buffers before a forward pass).
  virtual void broadcast(const std::vector<at::Tensor>& buffers) = 0;
};

/// Work of one device that is recorded once and then launched as a whole (a CUDA graph). What it reads and writes must
/// stay where it is.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Runs `work`, kernel by kernel, on the stream that will record it, after and before what is on the current stream.
  virtual void warm_up(const std::function<void()>& work) = 0;
  /// Records what `work` launches, without running it. When `work` throws, nothing is recorded.
  virtual void record(const std::function<void()>& work) = 0;
  /// Launches the recording on the current stream.
  virtual void replay() = 0;
};

/// What libcohort_cuda.so offers. The functions throw LibTorch's exceptions.
struct CudaPlugin {
  int interface_version;
  /// CUDA devices visible to this process; 0 without driver or device, and then why.
  int (*device_count)(std::string& why_none);
  /// ProcessGroupNCCL bound to one device.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl_backend)(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                         int world_size, std::chrono::milliseconds timeout, int device);
  std::unique_ptr<DeviceReducer> (*make_device_reducer)(const std::vector<int>& devices, std::size_t buckets);
  std::unique_ptr<DeviceGraph> (*make_graph)(int device);
  /// Current device of the calling thread.
  void (*set_device)(int device);
  /// Waits for all work of the device.
  void (*synchronise)(int device);
  /// Makes the current stream of `waiting` wait for what is on the current stream of `on`.
  void (*wait_for_device)(int waiting, int on);
  /// Whether `device` can read the memory of `peer` directly.
  bool (*peer_access)(int device, int peer);
  /// What tells a physical device (or a slice of one) from all others: its UUID, as nvidia-smi writes it.
  std::string (*device_uuid)(int device);
};

inline constexpr int kCudaPluginVersion = 2;

/// Loads libcohort_cuda.so from beside the program (../lib, or the folder in COHORT_PLUGIN_DIR). Must come before
/// anything asks LibTorch about CUDA, since LibTorch remembers the answer "there is none". Loads once; thread-safe.
/// Throws Error naming the file and the linker's reason.
const CudaPlugin& load_cuda_plugin();

/// True when load_cuda_plugin has succeeded in this process.
bool cuda_plugin_loaded();

}  // namespace cohort::dist
