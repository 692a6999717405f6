#include "core/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace cohort {
namespace {

static_assert(std::endian::native == std::endian::little, "eight bytes are read as one little-endian number");

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78u;

/// tables[k][b]: the checksum of byte b followed by k zero bytes ("slicing by 8", Kounavis and Berry 2005).
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kReflectedPolynomial : 0);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t crc = tables[k - 1][b];
      tables[k][b] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t load64(const unsigned char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(const void* data, std::size_t size,
                                                                      std::uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  for (; size >= 8; size -= 8, p += 8) state = _mm_crc32_u64(state, load64(p));
  auto tail = static_cast<std::uint32_t>(state);
  for (; size > 0; --size, ++p) tail = _mm_crc32_u8(tail, *p);
  return ~tail;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(const void* data, std::size_t size, std::uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    const std::uint64_t word = load64(p) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; size > 0; --size, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(data, size, crc);
#endif
  return crc32c_by_table(data, size, crc);
}

}  // namespace cohort
