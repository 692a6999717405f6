#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.h"

namespace cohort::data {

std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed) {
  constexpr std::int64_t kLimit = 4294967295 / 20;  // aten/src/ATen/native/TensorFactories.cpp, randperm_cpu
  COHORT_THROW_UNLESS(n >= 0 && n < kLimit, "a permutation of {} samples is beyond PyTorch's 32-bit range of {}", n,
                      kLimit);
  // PyTorch's CPU generator is MT19937 seeded with the low 32 bits, as std::mt19937 is.
  std::mt19937 engine(static_cast<std::uint32_t>(seed));
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = 0; i < n - 1; ++i) {
    const std::int64_t j = i + static_cast<std::int64_t>(engine()) % (n - i);
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
  }
  return order;
}

DistributedSampler::DistributedSampler(std::int64_t dataset_size, SamplerSettings settings)
    : dataset_size_(dataset_size), settings_(settings) {
  COHORT_THROW_UNLESS(dataset_size >= 1, "the data set holds no samples");
  COHORT_THROW_UNLESS(settings.world_size >= 1 && settings.rank >= 0 && settings.rank < settings.world_size,
                      "rank {} lies outside a world of {}", settings.rank, settings.world_size);
}

std::int64_t DistributedSampler::share_size(std::int64_t start) const {
  const std::int64_t left = dataset_size_ - start, world = settings_.world_size;
  return settings_.drop_last ? left / world : (left + world - 1) / world;
}

std::vector<std::int64_t> DistributedSampler::global_order(std::uint64_t epoch) const {
  if (settings_.shuffle) return torch_randperm(dataset_size_, settings_.seed + epoch);
  std::vector<std::int64_t> order(static_cast<std::size_t>(dataset_size_));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

EpochShare DistributedSampler::share(std::uint64_t epoch, std::int64_t start) const {
  COHORT_THROW_UNLESS(start >= 0 && start <= dataset_size_, "an epoch of {} samples cannot start at {}", dataset_size_,
                      start);
  const std::vector<std::int64_t> order = global_order(epoch);
  const std::int64_t count = share_size(start);
  EpochShare share;
  share.indices.reserve(static_cast<std::size_t>(count));
  share.sample_ids.reserve(static_cast<std::size_t>(count));
  // Ids of different epochs must not meet, padding included: an epoch has fewer than dataset_size + world_size places.
  // The stride may not depend on the number of ranks, so it is twice the size of the data set where that suffices.
  const std::int64_t stride = 2 * std::max(dataset_size_, settings_.world_size);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = start + settings_.rank + i * settings_.world_size;
    if (place >= dataset_size_) ++share.padded;
    share.indices.push_back(order[static_cast<std::size_t>(place % dataset_size_)]);
    share.sample_ids.push_back(static_cast<std::int64_t>(epoch) * stride + place);
  }
  return share;
}

}  // namespace cohort::data
