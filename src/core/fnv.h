/// FNV-1a, 64 bits (Fowler, Noll, Vo: http://www.isthe.com/chongo/tech/comp/fnv): shows whether bytes are the same, not
/// who changed them.
///
///   std::uint64_t hash = fnv1a(header);
///   hash = fnv1a(body, hash);  // of both, one behind the other
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort {

/// Of no bytes.
inline constexpr std::uint64_t kFnvBegin = 0xCBF29CE484222325u;

/// `hash` is that of what came before.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = kFnvBegin) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

/// Of the bytes of a number or another value without padding, as they lie in memory.
template <class T>
std::uint64_t fnv1a_of(const T& value, std::uint64_t hash = kFnvBegin) {
  return fnv1a({reinterpret_cast<const char*>(&value), sizeof value}, hash);
}

}  // namespace cohort
