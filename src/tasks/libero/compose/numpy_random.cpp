#include "tasks/libero/compose/numpy_random.h"

#include <bit>
#include <cmath>

namespace cohort::tasks::libero::compose {

double NumpyRandom::uniform() {
  const auto high = static_cast<double>(engine_() >> 5), low = static_cast<double>(engine_() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;  // 2^26, 2^53
}

std::uint32_t NumpyRandom::below(std::uint32_t count) {
  if (count <= 1) return 0;
  const std::uint32_t last = count - 1, mask = ~std::uint32_t{0} >> std::countl_zero(last);
  for (;;)
    if (const std::uint32_t value = static_cast<std::uint32_t>(engine_()) & mask; value <= last) return value;
}

double NumpyRandom::normal() {
  if (kept_) {
    const double value = *kept_;
    kept_.reset();
    return value;
  }
  for (;;) {
    const double x = 2 * uniform() - 1, y = 2 * uniform() - 1, r2 = x * x + y * y;
    if (r2 >= 1 || r2 == 0) continue;
    const double f = std::sqrt(-2 * std::log(r2) / r2);
    kept_ = f * x;
    return f * y;
  }
}

}  // namespace cohort::tasks::libero::compose
