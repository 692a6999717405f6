/// What each width of lanes offers: drawing a tile. One function per build of kernels/tile.h.
#pragma once
#include "render/kernels/records.h"

namespace cohort::render {

using DrawTile = void (*)(const FrameRecord& frame, int tile);

DrawTile scalar_draw_tile();
/// nullptr where this build lacks the width (CMake's COHORT_LANES).
DrawTile avx2_draw_tile();
DrawTile avx512_draw_tile();

}  // namespace cohort::render
