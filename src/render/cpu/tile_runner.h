/// What each width of lanes offers: drawing a tile. One function per build of kernels/tile.h.
#pragma once
#include "render/kernels/records.h"

namespace cohort::render {

using DrawTile = void (*)(const FrameRecord& frame, int tile);

void draw_tile_scalar(const FrameRecord& frame, int tile);
#if defined(__x86_64__)
void draw_tile_avx2(const FrameRecord& frame, int tile);
void draw_tile_avx512(const FrameRecord& frame, int tile);
#endif

}  // namespace cohort::render
