/// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected; RFC 3720 section 12.1), and the masked form in which TFRecord
/// files store it (TensorFlow, core/lib/hash/crc32c.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort {

/// The checksum of `size` bytes at `data`; `crc` is the checksum of what came before them (0 at the beginning), so that
/// crc32c(b, n, crc32c(a, m)) is the checksum of a followed by b. Uses the SSE4.2 instruction where the processor has
/// it.
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc = 0);

inline std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc = 0) {
  return crc32c(bytes.data(), bytes.size(), crc);
}

/// The same by tables only (eight bytes a round): what processors without the instruction run.
std::uint32_t crc32c_by_table(const void* data, std::size_t size, std::uint32_t crc = 0);

/// Rotated right by 15 bits plus a constant, so that a file that contains checksums can be checksummed itself.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

/// The inverse of mask_crc32c.
constexpr std::uint32_t unmask_crc32c(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xA282EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace cohort
