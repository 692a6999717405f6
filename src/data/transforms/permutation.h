/// A permutation of [0, n) that is computed, not stored: what shuffles any number of windows in no memory.
#pragma once
#include <cstdint>

#include "core/error.h"
#include "core/philox.h"

namespace cohort::data {

/// A Feistel network of eight rounds over the smallest even number of bits that holds n, with Philox as its round
/// function; numbers beyond n are sent through again ("cycle walking": Black and Rogaway, "Ciphers with arbitrary
/// finite domains", CT-RSA 2002), fewer than four times on average. A function of (n, seed, id, step) only.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t n, std::uint64_t seed, std::uint64_t id, std::uint64_t step)
      : n_(n), stream_(seed, RandomPurpose::kDataOrder, id, step) {
    COHORT_CHECK(n >= 1, "a permutation of nothing");
    while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
  }

  std::uint64_t size() const { return n_; }
  /// Where place i < n goes.
  std::uint64_t at(std::uint64_t i) const {
    COHORT_ASSERT(i < n_, "place {} of {}", i, n_);
    do i = encrypt(i);
    while (i >= n_);
    return i;
  }

 private:
  std::uint64_t encrypt(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t round = 0; round < 8; ++round) {
      const std::uint64_t mixed = left ^ (stream_.at(round << 32 | right).v[0] & mask);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t n_;
  unsigned half_bits_ = 1;
  RandomStream stream_;
};

}  // namespace cohort::data
