/// A number of a file's bytes that shows damage to it, not malice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/fnv.h"

namespace cohort::sim {

/// `hash` is that of what came before.
inline std::uint64_t checksum(std::string_view data, std::uint64_t hash = kFnvBegin) {
  return fnv1a(data, hash);
}

}  // namespace cohort::sim
