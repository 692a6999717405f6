#include "render/cpu/tile_runner.h"
#include "render/kernels/tile.h"
#include "sim/kernels/lane/lane_avx512.h"

namespace cohort::render {

namespace {

/// Eight lanes under a name of their own: the functions that have it are compiled with this file's instructions.
struct EightOfAvx512 : sim::Avx2Lane {};

}  // namespace

void draw_tile_avx512(const FrameRecord& frame, int tile) {
  draw_tile<sim::Avx512Lane, EightOfAvx512>(frame, tile);
}

}  // namespace cohort::render
