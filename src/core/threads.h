/// Threads: how many this process may use, and a loop spread over them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace cohort {

/// Cores that this process may use: the smaller of its affinity mask and its cgroup's CPU quota (v2 cpu.max or v1
/// cpu.cfs_quota_us, rounded up); at least 1.
int available_cores();

/// Names the calling thread for debuggers and `top -H`; the kernel keeps the first 15 bytes.
void set_thread_name(const std::string& name);

/// Blocks every signal in the calling thread except those that a fault of its own raises, so that SIGTERM, SIGINT and
/// the like go to the thread that handles them. For worker threads.
void block_signals_in_this_thread();

/// Runs body(i) for every i in [0, count), on the caller and up to threads - 1 further threads; indices are handed out
/// in ascending order, one at a time, so keep a piece of work well above a microsecond. Returns when all have run. When
/// bodies throw, no further index is started, and the exception of the lowest index that threw is rethrown.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace cohort
