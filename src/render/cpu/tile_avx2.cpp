#include "render/cpu/tile_runner.h"

#if defined(__AVX2__)
#include "render/kernels/tile.h"
#include "sim/kernels/lane/lane_avx2.h"

namespace cohort::render {

DrawTile avx2_draw_tile() {
  return draw_tile<sim::Avx2Lane, sim::Avx2Lane>;
}

}  // namespace cohort::render
#else
namespace cohort::render {

DrawTile avx2_draw_tile() {
  return nullptr;
}

}  // namespace cohort::render
#endif
