/// Textures as pixels are looked up in them: RGBA in levels of half the size each.
#pragma once
#include <vector>

#include "render/kernels/records.h"
#include "sim/host/visual_model.h"

namespace cohort::render {

/// Owns what a TextureRecord points to.
struct TracedTexture {
  std::vector<unsigned> pixel;
  std::vector<int> width, height, first;  ///< of each level
  bool cube = false;
  TextureRecord record() const;
};

/// sRGB becomes linear, as OpenGL reads it.
TracedTexture trace_texture(const sim::VisualTexture& texture);

}  // namespace cohort::render
