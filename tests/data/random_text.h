/// Random choices for tests that invent texts.
#pragma once
#include <cstdint>
#include <string>

#include "core/philox.h"

namespace cohort::data {

/// A sequence of random numbers, a function of its seed.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : stream_(seed, RandomPurpose::kTest, 0, 0) {}
  std::uint32_t bits() { return stream_.bits(index_++); }
  /// 0 to n - 1.
  int below(int n) { return static_cast<int>(stream_.below(index_++, static_cast<std::uint32_t>(n))); }
  bool chance(double probability) { return static_cast<double>(bits()) < probability * 4294967296.0; }
  double normal() { return static_cast<double>(stream_.normal(index_++)); }
  std::string digits(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>('0' + below(10));
    return text;
  }

 private:
  RandomStream stream_;
  std::uint64_t index_ = 0;
};

}  // namespace cohort::data
