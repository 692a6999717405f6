/// What a test asks of the devices that cuda_runtime.h makes of the host's memory, and tells them.
#pragma once

namespace cohort::host_cuda {

inline constexpr int kDevices = 2;
/// Memory of a device, unless it is told to have less.
inline constexpr double kTotalBytes = 1 << 30;

/// Where the kernels' `extern __shared__` array lies: its file says so.
void use_shared_memory(float* memory, int bytes);

/// Of a device, since the process began.
struct Counts {
  int allocations = 0;                     ///< that are not given back
  int streams = 0;                         ///< likewise
  int graphs = 0;                          ///< likewise, of all devices
  int launches = 0;                        ///< of kernels
  int default_stream = 0;                  ///< pieces of work put on the default stream, of all devices
  long long uploaded = 0, downloaded = 0;  ///< bytes to the device, and to the host
};
Counts counts(int device);

/// What can be had of the device's memory besides what is taken; kTotalBytes or more: all there is.
void limit_memory(int device, double free_bytes);
/// The allocation after the next n on any device fails, once; n < 0: none does.
void fail_allocation_after(int n);
/// The next wait for a stream reports what a kernel that broke would leave.
void fail_next_wait();
/// Environments' steps whose constraints teams of threads have solved; of a runner with COHORT_GPU_TEAM.
long long solved_by_teams();

}  // namespace cohort::host_cuda
