#include "render/cpu/eight_floats.h"
#include "render/cpu/tile_runner.h"
#include "render/kernels/tile.h"

namespace cohort::render {

DrawTile scalar_draw_tile() {
  return draw_tile<sim::ScalarLane, EightLane>;
}

}  // namespace cohort::render
