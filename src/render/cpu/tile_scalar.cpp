#include "render/cpu/eight_floats.h"
#include "render/cpu/tile_runner.h"
#include "render/kernels/tile.h"

namespace cohort::render {

void draw_tile_scalar(const FrameRecord& frame, int tile) {
  draw_tile<sim::ScalarLane, EightLane>(frame, tile);
}

}  // namespace cohort::render
