/// Counts the allocations of a test's process, for claims that a call makes none.
#pragma once
#include <cstdint>

namespace cohort {

/// Calls of operator new so far, in all threads.
std::int64_t allocation_count();

}  // namespace cohort
