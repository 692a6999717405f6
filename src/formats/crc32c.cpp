#include "formats/crc32c.h"

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
#define COHORT_SSE42 __attribute__((target("sse4.2")))

/// The instruction takes a cycle, but its result comes after three: three neighbouring blocks of Bytes are taken at the
/// same time. The state of the first is moved across the second by a table, as that is linear: it is what Bytes zero
/// bytes make of it (Adler, crc32c.c 2013, does the same).
template <std::size_t Bytes>
class ThreeBlocks {
 public:
  COHORT_SSE42 ThreeBlocks() {
    std::array<std::uint32_t, 32> moved{};  // of each single bit
    for (unsigned bit = 0; bit < 32; ++bit) {
      std::uint64_t state = std::uint64_t{1} << bit;
      for (std::size_t i = 0; i < Bytes; i += 8) state = _mm_crc32_u64(state, 0);
      moved[bit] = static_cast<std::uint32_t>(state);
    }
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t b = 0; b < 256; ++b)
        for (std::size_t bit = 0; bit < 8; ++bit)
          if ((b >> bit) & 1) table_[k][b] ^= moved[8 * k + bit];
  }

  /// Takes as many blocks as there are off the front.
  COHORT_SSE42 void take(const unsigned char*& p, std::size_t& size, std::uint64_t& state) const {
    for (; size >= 3 * Bytes; size -= 3 * Bytes, p += 3 * Bytes) {
      std::uint64_t second = 0, third = 0;
      for (std::size_t i = 0; i < Bytes; i += 8) {
        state = _mm_crc32_u64(state, load64(p + i));
        second = _mm_crc32_u64(second, load64(p + Bytes + i));
        third = _mm_crc32_u64(third, load64(p + 2 * Bytes + i));
      }
      state = across(across(state) ^ second) ^ third;
    }
  }

 private:
  std::uint64_t across(std::uint64_t state) const {
    return table_[0][state & 0xFF] ^ table_[1][(state >> 8) & 0xFF] ^ table_[2][(state >> 16) & 0xFF] ^
           table_[3][(state >> 24) & 0xFF];
  }
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

COHORT_SSE42 std::uint32_t crc32c_by_instruction(const void* data, std::size_t size, std::uint32_t crc) {
  static const ThreeBlocks<4096> large;
  static const ThreeBlocks<256> small;
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  large.take(p, size, state);
  small.take(p, size, state);
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
