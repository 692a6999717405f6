#include "render/cpu/tile_runner.h"
#include "render/kernels/tile.h"
#include "sim/kernels/lane/lane_avx2.h"

namespace cohort::render {

void draw_tile_avx2(const FrameRecord& frame, int tile) {
  draw_tile<sim::Avx2Lane, sim::Avx2Lane>(frame, tile);
}

}  // namespace cohort::render
