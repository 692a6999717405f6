/// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
/// 3", SC 2011). No state: a number is a function of (seed, purpose, id, step, index), so that it does not matter which
/// rank, thread or lane asks, or in which order. Compiles as host and as CUDA device code.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define COHORT_HOST_DEVICE __host__ __device__
#else
#define COHORT_HOST_DEVICE
#endif

namespace cohort {

/// What a number is drawn for; two purposes never share a stream. Values are part of the file format of a run: append
/// only.
enum class RandomPurpose : std::uint32_t {
  kModelInit = 1,     ///< initial weights; id = parameter's position; equal on every rank
  kDataOrder = 2,     ///< permutations of samples; id = 0, step = epoch
  kDropout = 3,       ///< id = global sample id, step = training step, see models/dropout.h
  kAttention = 4,     ///< ProbSparse key sampling; id = layer
  kAugmentation = 5,  ///< id = global sample id
  kEnvironment = 6,   ///< simulation; id = global environment id
  kAction = 7,        ///< random controls; id = global environment id
  kDiffusion = 8,  ///< diffusion: timestep and noise of a training sample; id = global sample id, step = training step
  kSampling = 9,   ///< diffusion: noise of drawing actions; id = who asks (environment, sample), step = their count
  kTest = 1000,
};

struct Philox4 {
  std::uint32_t v[4];
};

/// Ten rounds on a 128-bit counter with a 64-bit key.
COHORT_HOST_DEVICE inline Philox4 philox4x32_10(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                                                std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// A stream of numbers for one (seed, purpose, id, step). Copyable; `at(i)` may be called in any order.
class RandomStream {
 public:
  /// id: up to 2^32 - 1 (a global sample or environment id); step: likewise.
  COHORT_HOST_DEVICE RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint64_t id, std::uint64_t step)
      : k0_(static_cast<std::uint32_t>(seed)),
        // The purpose and the high halves go into the key; the low halves into the counter, beside the index.
        k1_(static_cast<std::uint32_t>(seed >> 32) ^ (static_cast<std::uint32_t>(purpose) * 0x9E3779B9u) ^
            (static_cast<std::uint32_t>(id >> 32) * 0x85EBCA6Bu) ^
            (static_cast<std::uint32_t>(step >> 32) * 0xC2B2AE35u)),
        id_(static_cast<std::uint32_t>(id)),
        step_(static_cast<std::uint32_t>(step)) {}

  /// Four uniformly distributed 32-bit integers for this index.
  COHORT_HOST_DEVICE Philox4 at(std::uint64_t index) const {
    return philox4x32_10(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), id_, step_, k0_,
                         k1_);
  }

  /// What stays the same over all indices, for kernels that run the rounds on many of them at once:
  /// at(i) is philox4x32_10(low half of i, high half of i, id, step, key0, key1).
  struct Fixed {
    std::uint32_t id, step, key0, key1;
  };
  COHORT_HOST_DEVICE Fixed fixed() const { return {id_, step_, k0_, k1_}; }

  COHORT_HOST_DEVICE std::uint32_t bits(std::uint64_t index) const { return at(index >> 2).v[index & 3]; }

  /// Uniform in [0, 1) with 24 bits.
  COHORT_HOST_DEVICE float uniform(std::uint64_t index) const {
    return static_cast<float>(bits(index) >> 8) * (1.0f / 16777216.0f);
  }

  /// Uniform integer in [0, n), n < 2^32, by the multiply-shift method (bias below n / 2^32).
  COHORT_HOST_DEVICE std::uint32_t below(std::uint64_t index, std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{bits(index)} * n) >> 32);
  }

  /// Standard normal (Box and Muller 1958). Host results depend on the C library's log and cos.
  float normal(std::uint64_t index) const {
    const Philox4 r = at(index);
    const double u1 = (static_cast<double>(r.v[0]) + 1.0) / 4294967296.0;  // in (0, 1]
    const double u2 = static_cast<double>(r.v[1]) / 4294967296.0;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u1)) * std::cos(6.283185307179586 * u2));
  }

 private:
  std::uint32_t k0_, k1_, id_, step_;
};

}  // namespace cohort
