// gym-pusht draws its resets from NumPy. Evaluations are compared with others' by these seeds, so this is the one place
// that does not draw from core/philox.h.
#include <array>
#include <cstddef>
#include <cstdint>

#include "tasks/push_t/push_t.h"

namespace cohort::tasks {
namespace {

/// numpy.random.SeedSequence(seed).generate_state(8) for a seed of 32 bits, whose result NumPy keeps stable (NEP 19):
/// M. O'Neill's seed_seq with a pool of four words.
std::array<std::uint32_t, 8> numpy_seed_words(std::uint32_t seed) {
  constexpr std::uint32_t kInitA = 0x43b0d7e5, kMultiplierA = 0x931e8875, kInitB = 0x8b51f9dd,
                          kMultiplierB = 0x58f38ded, kMixLeft = 0xca01f9dd, kMixRight = 0x4973f715;
  const auto fold = [](std::uint32_t x) { return x ^ (x >> 16); };
  const auto hash = [&](std::uint32_t value, std::uint32_t& constant, std::uint32_t multiplier) {
    value ^= constant;
    constant *= multiplier;
    return fold(value * constant);
  };
  std::uint32_t constant = kInitA;
  std::array<std::uint32_t, 4> pool = {seed, 0, 0, 0};
  for (std::uint32_t& word : pool) word = hash(word, constant, kMultiplierA);
  for (std::size_t from = 0; from < pool.size(); ++from)
    for (std::size_t to = 0; to < pool.size(); ++to)
      if (from != to) pool[to] = fold(kMixLeft * pool[to] - kMixRight * hash(pool[from], constant, kMultiplierA));
  constant = kInitB;
  std::array<std::uint32_t, 8> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = hash(pool[i % pool.size()], constant, kMultiplierB);
  return words;
}

/// numpy.random.Generator(PCG64(SeedSequence(seed))), which is gymnasium's np_random: O'Neill's PCG XSL RR 128/64
/// ("PCG: A family of simple fast space-efficient statistically good algorithms", 2014).
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint32_t seed) {
    const auto words = numpy_seed_words(seed);
    const auto wide = [&](std::size_t i) {  // the more significant half first, each of two words, the lower first
      const auto half = [&](std::size_t k) { return words[k] | (static_cast<std::uint64_t>(words[k + 1]) << 32); };
      return (static_cast<Wide>(half(i)) << 64) | half(i + 2);
    };
    increment_ = (wide(4) << 1) | 1;
    advance();
    state_ += wide(0);
    advance();
  }

  /// integers(low, high): Lemire's method on 32 bits ("Fast random integer generation in an interval", 2019).
  double integer(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t count = high - low;
    const std::uint32_t threshold = (0 - count) % count;
    std::uint64_t product = std::uint64_t{next32()} * count;
    while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next32()} * count;
    return static_cast<double>(low + static_cast<std::uint32_t>(product >> 32));
  }

  /// uniform(low, high), from the upper 53 bits of a draw.
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next64() >> 11) / 9007199254740992.0);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  void advance() {
    constexpr Wide kMultiplier = (static_cast<Wide>(0x2360ed051fc65da4) << 64) | 0x4385df649fccf645;
    state_ = state_ * kMultiplier + increment_;
  }

  std::uint64_t next64() {
    advance();
    const auto mixed = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
    const auto turn = static_cast<unsigned>(state_ >> 122);
    return (mixed >> turn) | (mixed << ((64 - turn) % 64));
  }

  /// The lower half of a draw, then its upper half.
  std::uint32_t next32() {
    if (has_upper_) {
      has_upper_ = false;
      return upper_;
    }
    const std::uint64_t both = next64();
    upper_ = static_cast<std::uint32_t>(both >> 32);
    has_upper_ = true;
    return static_cast<std::uint32_t>(both);
  }

  Wide state_ = 0, increment_ = 0;
  std::uint32_t upper_ = 0;
  bool has_upper_ = false;
};

}  // namespace

PushTState push_t_reset_state(std::uint32_t seed) {
  constexpr double kPi = 3.14159265358979323846;
  NumpyGenerator random(seed);
  PushTState state{};
  state[0] = random.integer(50, 450);
  state[1] = random.integer(50, 450);
  state[2] = random.integer(100, 400);
  state[3] = random.integer(100, 400);
  state[4] = random.uniform(-kPi, kPi);
  return state;
}

}  // namespace cohort::tasks
