#include "models/informer/key_sampling.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include <torch/types.h>

#include "core/error.h"
#include "core/philox.h"
#include "models/host_values.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

std::mutex override_mutex;
std::shared_ptr<const KeySampleOverride::Give> override_give;

std::shared_ptr<const KeySampleOverride::Give> present_override() {
  const std::scoped_lock lock(override_mutex);
  return override_give;
}

}  // namespace

std::int64_t prob_sparse_count(int factor, std::int64_t length) {
  const auto wanted = factor * static_cast<std::int64_t>(std::ceil(std::log(static_cast<double>(length))));
  return std::min(wanted, length);
}

at::Tensor draw_key_samples(const ProbSparseLayer& layer, std::int64_t n_query, std::int64_t n_sample,
                            std::int64_t n_key, bool training) {
  if (const auto give = present_override()) {
    const at::Tensor given = (*give)(layer.position, n_query, n_sample, n_key).contiguous();
    COHORT_CHECK(given.scalar_type() == at::kLong && given.device().is_cpu() && given.dim() == 2 &&
                     given.size(0) == n_query && given.size(1) == n_sample,
                 "the key samples given for ProbSparse layer {} must be ({}, {}) int64 on the CPU", layer.position,
                 n_query, n_sample);
    COHORT_CHECK(
        given.numel() == 0 || (given.min().item<std::int64_t>() >= 0 && given.max().item<std::int64_t>() < n_key),
        "the key samples given for ProbSparse layer {} must lie in [0, {})", layer.position, n_key);
    return given;
  }
  refuse_recording("ProbSparse attention: its sampled keys come from the host");
  const std::uint64_t seed = training ? random_context().seed : layer.eval_seed;
  const std::uint64_t step = training ? random_context().step : 0;
  const RandomStream stream(seed, RandomPurpose::kAttention, layer.id, step);
  at::Tensor samples = at::empty({n_query, n_sample}, at::kLong);
  auto* out = samples.mutable_data_ptr<std::int64_t>();
  const auto n = static_cast<std::uint64_t>(samples.numel());
  for (std::uint64_t i = 0; i < n; i += 4) {
    const Philox4 word = stream.at(i / 4);  // the numbers of stream.below(i, n_key), four to a call
    for (std::uint64_t j = 0; j < 4 && i + j < n; ++j)
      out[i + j] = static_cast<std::int64_t>((std::uint64_t{word.v[j]} * static_cast<std::uint64_t>(n_key)) >> 32);
  }
  return samples;
}

KeySampleOverride::KeySampleOverride(Give give) {
  const std::scoped_lock lock(override_mutex);
  COHORT_CHECK(override_give == nullptr, "another KeySampleOverride is alive");
  override_give = std::make_shared<const Give>(std::move(give));
}

KeySampleOverride::~KeySampleOverride() {
  const std::scoped_lock lock(override_mutex);
  override_give.reset();
}

}  // namespace cohort::models
