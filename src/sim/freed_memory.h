/// Memory of std::aligned_alloc and std::calloc.
#pragma once
#include <cstdlib>
#include <memory>

namespace cohort::sim {

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using FreedMemory = std::unique_ptr<void, FreeDeleter>;

}  // namespace cohort::sim
