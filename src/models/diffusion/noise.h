/// The random numbers of a diffusion policy, each a function of (seed, sample, step) and its place: equal on every
/// rank, replica and device, and in any batch.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/random_context.h"

namespace cohort::models {

/// What one training step draws for the samples of a batch, on the CPU.
struct TrainingNoise {
  at::Tensor timesteps;  ///< (B) int64 in [0, num_train_timesteps): one per sample, for all of its draws
  at::Tensor noise;      ///< (draws, B, chunk, width) float32, standard normal
};

/// Keyed by the context's seed and step, and each sample's id (undefined ids: 0..samples-1).
TrainingNoise draw_training_noise(const RandomContext& context, std::int64_t samples, int num_train_timesteps,
                                  std::int64_t draws, std::int64_t chunk, std::int64_t width);

/// Who draws actions: an environment or a sample, and how many chunks it has drawn before.
struct SamplingKey {
  std::uint64_t seed = 0;
  std::uint64_t id = 0;
  std::uint64_t count = 0;
};

/// (B, chunk, width) float32 on the CPU, standard normal. `draw` 0 is where sampling begins, i + 1 what step i adds.
at::Tensor draw_sampling_noise(const std::vector<SamplingKey>& keys, std::uint64_t draw, std::int64_t chunk,
                               std::int64_t width);

}  // namespace cohort::models
