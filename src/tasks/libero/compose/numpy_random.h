/// The numbers that numpy.random draws after numpy.random.seed(seed): NumPy's legacy generator, RandomState, whose
/// streams are frozen (NumPy enhancement proposal 19). LIBERO places its fixtures with it. For nothing else: our own
/// numbers come from core/philox.h.
///
/// Sources: Matsumoto and Nishimura, "Mersenne Twister" (1998), which std::mt19937 is; numpy/random/src/legacy and
/// src/distributions for how its words become numbers.
#pragma once
#include <cstdint>
#include <optional>
#include <random>

namespace cohort::tasks::libero::compose {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : engine_(seed) {}

  /// random.random(): in [0, 1), 53 bits of two words.
  double uniform();
  /// random.uniform(low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// random.randint(count): below `count`, which is at least 1. Of one possible answer no word is drawn.
  std::uint32_t below(std::uint32_t count);
  /// random.randn(): Marsaglia's polar method, which draws for every second number only.
  double normal();

 private:
  std::mt19937 engine_;
  std::optional<double> kept_;
};

}  // namespace cohort::tasks::libero::compose
