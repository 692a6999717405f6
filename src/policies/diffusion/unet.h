/// The conditional U-Net of Diffusion Policy (Chi et al. 2023): 1-D convolutions along the action chunk, scaled and
/// shifted by the timestep and the observations (FiLM, Perez et al. 2018).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/config.h"
#include "policies/diffusion/denoiser.h"

namespace cohort::models {

struct UnetSettings {
  int diffusion_step_embed_dim = 256;             ///< width of the timestep's embedding
  std::vector<int> down_dims = {256, 512, 1024};  ///< channels of each level; each level but the first halves the chunk
  int kernel_size = 5;                            ///< odd
  int n_groups = 8;                               ///< of group norm; divides every channel count
  bool cond_predict_scale = true;                 ///< FiLM scales and shifts; false: shifts only
};

void describe(config::Fields& fields, UnetSettings& settings);
/// For chunks of so many rows. Throws Error naming the field, its value and what is allowed.
void check(const UnetSettings& settings, int chunk);

/// `chunk`: rows of an action chunk, a multiple of 2^(levels - 1). `condition`: numbers of all observations together.
/// Weights have the names of the reference's ConditionalUnet1D. Throws Error for settings out of range.
std::shared_ptr<Denoiser> make_unet(const UnetSettings& settings, int chunk, int action_width, int condition);

}  // namespace cohort::models
