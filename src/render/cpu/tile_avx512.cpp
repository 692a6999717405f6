#include "render/cpu/tile_runner.h"

#if defined(__AVX512F__)
#include "render/kernels/tile.h"
#include "sim/kernels/lane/lane_avx512.h"

namespace cohort::render {

namespace {

/// Eight lanes under a name of their own: the functions that have it are compiled with this file's instructions.
struct EightOfAvx512 : sim::Avx2Lane {};

}  // namespace

DrawTile avx512_draw_tile() {
  return draw_tile<sim::Avx512Lane, EightOfAvx512>;
}

}  // namespace cohort::render
#else
namespace cohort::render {

DrawTile avx512_draw_tile() {
  return nullptr;
}

}  // namespace cohort::render
#endif
