/// Threads: names, signals, and a loop spread over them. How many are worth it: available_cores() in devices_cpu.h.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace cohort {

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
