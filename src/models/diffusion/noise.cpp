#include "models/diffusion/noise.h"

#include <torch/types.h>

#include "core/error.h"
#include "core/philox.h"

namespace cohort::models {

TrainingNoise draw_training_noise(const RandomContext& context, std::int64_t samples, int num_train_timesteps,
                                  std::int64_t draws, std::int64_t chunk, std::int64_t width) {
  const at::Tensor ids = context.sample_ids.defined() ? context.sample_ids.contiguous() : at::arange(samples);
  COHORT_CHECK(ids.numel() == samples, "{} sample ids for {} samples", ids.numel(), samples);
  TrainingNoise drawn{at::empty({samples}, at::kLong), at::empty({draws, samples, chunk, width}, at::kFloat)};
  std::int64_t* timesteps = drawn.timesteps.mutable_data_ptr<std::int64_t>();
  float* noise = drawn.noise.mutable_data_ptr<float>();
  const std::int64_t count = chunk * width;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto id = static_cast<std::uint64_t>(ids.const_data_ptr<std::int64_t>()[i]);
    const RandomStream stream(context.seed, RandomPurpose::kDiffusion, id, context.step);
    timesteps[i] = stream.below(0, static_cast<std::uint32_t>(num_train_timesteps));
    for (std::int64_t draw = 0; draw < draws; ++draw)
      for (std::int64_t k = 0; k < count; ++k)
        noise[(draw * samples + i) * count + k] = stream.normal(static_cast<std::uint64_t>(1 + draw * count + k));
  }
  return drawn;
}

at::Tensor draw_sampling_noise(const std::vector<SamplingKey>& keys, std::uint64_t draw, std::int64_t chunk,
                               std::int64_t width) {
  at::Tensor noise = at::empty({static_cast<std::int64_t>(keys.size()), chunk, width}, at::kFloat);
  float* out = noise.mutable_data_ptr<float>();
  const auto count = static_cast<std::uint64_t>(chunk * width);
  for (const SamplingKey& key : keys) {
    const RandomStream stream(key.seed, RandomPurpose::kSampling, key.id, key.count);
    for (std::uint64_t k = 0; k < count; ++k) *out++ = stream.normal(draw * count + k);
  }
  return noise;
}

}  // namespace cohort::models
