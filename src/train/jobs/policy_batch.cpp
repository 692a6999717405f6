#include "train/jobs/policy_batch.h"

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/policy_network.h"
#include "policies/rdt/rdt_policy.h"

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
  if (layout.lang_row)
    observations[models::kInstructionObservation] =
        batch.at("lang_row").view({-1, 1, 1}).expand({-1, layout.frames, -1});
  if (layout.in_episode) observations[models::kInEpisodeObservation] = batch.at("observation_mask");
  if (layout.ctrl_freq) observations[models::kFrequencyObservation] = batch.at("ctrl_freq");
  for (std::size_t i = 0; i < layout.rgb.size(); ++i)
    observations[layout.rgb[i]] = batch.at("image/" + layout.images[i]);
  return observations;
}

at::Tensor drawn_actions(torch::nn::Module& policy, const models::Observations& observations,
                         const at::Tensor& sample_ids) {
  return models::as_policy(policy).draw(observations, ids_of(sample_ids), kDrawSeed);
}

}  // namespace cohort::train
