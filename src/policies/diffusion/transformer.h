/// The transformer variant of Diffusion Policy (Chi et al. 2023, section III-B): action tokens attend to the timestep
/// and the observations. The reference's TransformerForDiffusion with observations as condition, weight for weight; its
/// variants that condition by inpainting are left out.
#pragma once
#include <cstdint>
#include <memory>

#include "core/config.h"
#include "policies/diffusion/denoiser.h"

namespace cohort::models {

struct TransformerSettings {
  int n_layer = 8;           ///< decoder layers
  int n_head = 4;            ///< attention heads; divides n_emb
  int n_emb = 256;           ///< width
  double p_drop_emb = 0.0;   ///< dropout of the embedded tokens
  double p_drop_attn = 0.3;  ///< dropout inside the layers
  bool causal_attn = true;   ///< an action sees actions and observations up to its own time only
  int n_cond_layers = 0;     ///< encoder layers over timestep and observations; 0: a small MLP instead
};

void describe(config::Fields& fields, TransformerSettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const TransformerSettings& settings);

/// `chunk`: rows of an action chunk; `observations`: how many condition it, each `features` numbers wide. In training
/// with dropout a RandomContext must be set. Throws Error for settings out of range.
std::shared_ptr<Denoiser> make_transformer(const TransformerSettings& settings, int chunk, int action_width,
                                           int observations, int features);

}  // namespace cohort::models
