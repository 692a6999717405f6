/// terrain_point over lanes, compiled once for each kind of processor (terrain_lanes_*.cpp).
#pragma once
#include "tasks/terrain/terrain_height.h"

namespace cohort::tasks::test {

/// out: (4, n): height, normal. n: a multiple of 16. x, y, out: aligned to 64 bytes.
template <class L>
void points_of(const sim::TerrainView& view, const float* x, const float* y, int n, float* out) {
  using sim::load, sim::store;  // of a float; those of registers are found by their argument
  typename L::V* const type = nullptr;
  for (int i = 0; i < n; i += L::kWidth) {
    const auto at = sim::terrain_point(view, load(x + i, type), load(y + i, type));
    store(out + i, at.height);
    for (int k = 0; k < 3; ++k) store(out + (k + 1) * n + i, at.normal[k]);
  }
}

using Points = void (*)(const sim::TerrainView& view, const float* x, const float* y, int n, float* out);
Points scalar_points();
/// nullptr where this build lacks the width.
Points avx2_points();
Points avx512_points();

}  // namespace cohort::tasks::test
