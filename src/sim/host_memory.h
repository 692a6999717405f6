/// How much memory this process can still get.
#pragma once

namespace cohort::sim {

/// The variable that limits a process to so many bytes of its own. Processes that start together and share a machine
/// each get a part of what was available before the first of them took any.
inline constexpr const char* kHostMemoryVariable = "COHORT_HOST_MEMORY";

/// Bytes: what the kernel says is available, or less where a control group of the process or kHostMemoryVariable allows
/// less.
double available_host_memory();

}  // namespace cohort::sim
