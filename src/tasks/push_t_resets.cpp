// gym-pusht draws its resets from NumPy's RandomState. Evaluations are compared with others' by these seeds, so this is
// the one place that does not draw from core/philox.h.
#include <cmath>
#include <random>

#include "tasks/push_t.h"

namespace cohort::tasks {
namespace {

/// numpy.random.RandomState(seed), whose streams NumPy has frozen (NEP 19). std::mt19937 is seeded by the same rule.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(std::uint32_t seed) : bits_(seed) {}

  /// randint(low, high): draws under the smallest mask over high - 1 - low until one fits.
  double integer(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t range = high - 1 - low;
    std::uint32_t mask = range;
    for (const unsigned shift : {1u, 2u, 4u, 8u, 16u}) mask |= mask >> shift;
    std::uint32_t value = next() & mask;
    while (value > range) value = next() & mask;
    return static_cast<double>(low + value);
  }

  /// The first randn(): Marsaglia's polar method, which keeps x1's number for the next call and returns x2's.
  double first_normal() {
    double x1 = 0, x2 = 0, r2 = 0;
    do {
      x1 = 2.0 * uniform() - 1.0;
      x2 = 2.0 * uniform() - 1.0;
      r2 = x1 * x1 + x2 * x2;
    } while (r2 >= 1.0 || r2 == 0.0);
    return std::sqrt(-2.0 * std::log(r2) / r2) * x2;
  }

 private:
  std::uint32_t next() { return static_cast<std::uint32_t>(bits_()); }

  /// [0, 1) with 53 bits: 27 of one draw above 26 of the next.
  double uniform() {
    const std::uint32_t high = next() >> 5, low = next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  std::mt19937 bits_;
};

}  // namespace

PushTState push_t_reset_state(std::uint32_t seed) {
  constexpr double kPi = 3.14159265358979323846;
  NumpyRandomState random(seed);
  PushTState state{};
  state[0] = random.integer(50, 450);
  state[1] = random.integer(50, 450);
  state[2] = random.integer(100, 400);
  state[3] = random.integer(100, 400);
  state[4] = random.first_normal() * 2 * kPi - kPi;
  return state;
}

}  // namespace cohort::tasks
