/// A number of a file's bytes that shows damage to it, not malice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort::sim {

/// FNV-1a (Fowler, Noll, Vo), 64 bits.
inline std::uint64_t checksum(std::string_view data, std::uint64_t hash = 14695981039346656037ull) {
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace cohort::sim
