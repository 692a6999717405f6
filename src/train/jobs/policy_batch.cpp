#include "train/jobs/policy_batch.h"

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/bc/behaviour_cloning.h"
#include "models/diffusion_policy/diffusion_policy.h"

namespace cohort::train {
namespace {

/// Of actions drawn for figures: the same in every validation.
constexpr std::uint64_t kDrawSeed = 0;

std::vector<std::uint64_t> ids_of(const at::Tensor& sample_ids) {
  const at::Tensor ids = sample_ids.contiguous();
  const std::int64_t* values = ids.const_data_ptr<std::int64_t>();
  std::vector<std::uint64_t> result;
  for (std::int64_t i = 0; i < ids.numel(); ++i) result.push_back(static_cast<std::uint64_t>(values[i]));
  return result;
}

}  // namespace

models::Observations observations_of(const ObservationLayout& layout, const parallel::Batch& batch) {
  models::Observations observations;
  if (!layout.low_dim.empty()) {
    const at::Tensor& proprio = batch.at("proprio");
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < layout.low_dim.size(); ++i) {
      observations[layout.low_dim[i]] = proprio.narrow(2, begin, layout.widths[i]);
      begin += layout.widths[i];
    }
    COHORT_CHECK(begin == proprio.size(2), "the batch has {} low-dimensional numbers, but the policy names {}",
                 proprio.size(2), begin);
  }
  if (!layout.language.empty())
    observations[layout.language] = batch.at("language").unsqueeze(1).expand({-1, layout.frames, -1});
  for (std::size_t i = 0; i < layout.rgb.size(); ++i)
    observations[layout.rgb[i]] = batch.at("image/" + layout.images[i]);
  return observations;
}

at::Tensor drawn_actions(torch::nn::Module& policy, bool is_diffusion, const models::Observations& observations,
                         const at::Tensor& sample_ids) {
  const at::NoGradGuard no_grad;
  const std::vector<std::uint64_t> ids = ids_of(sample_ids);
  if (is_diffusion) {
    std::vector<models::SamplingKey> keys;
    for (const std::uint64_t id : ids) keys.push_back({.seed = kDrawSeed, .id = id, .count = 0});
    return models::sample_actions(policy, observations, keys);
  }
  models::BcControl control(policy, kDrawSeed);
  const models::BcSettings& settings = models::bc_settings(policy);
  std::vector<at::Tensor> rows;
  for (std::int64_t frame = 0; frame < (settings.rnn.enabled ? settings.rnn.horizon : 1); ++frame) {
    models::Observations seen;
    for (const auto& [name, tensor] : observations) seen[name] = tensor.select(1, frame);
    rows.push_back(control.act(ids, seen));
  }
  return at::stack(rows, 1);
}

}  // namespace cohort::train
