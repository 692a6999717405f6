#include "train/validation.h"

#include <algorithm>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"

namespace cohort::train {

parallel::Batch without_padding(const parallel::Batch& batch, std::int64_t samples) {
  if (!batch.sample_ids.defined()) return batch;
  // Ids are places in the order of the whole epoch, which rise within a rank's share.
  const auto* ids = batch.sample_ids.const_data_ptr<std::int64_t>();
  return batch.slice(0, std::count_if(ids, ids + batch.size(), [&](std::int64_t id) { return id < samples; }));
}

std::vector<std::pair<std::string, double>> reduce(const std::vector<Metric>& metrics, parallel::Strategy& strategy) {
  at::Tensor values = at::empty({static_cast<std::int64_t>(metrics.size()), 2}, at::kDouble);
  auto* v = values.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    v[2 * i] = metrics[i].sum;
    v[2 * i + 1] = metrics[i].weight;
  }
  strategy.mean_over_ranks(values);
  v = values.mutable_data_ptr<double>();
  std::vector<std::pair<std::string, double>> result;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    COHORT_THROW_UNLESS(v[2 * i + 1] > 0.0, "validation: '{}' was measured on no sample; is the validation set empty?",
                        metrics[i].name);
    result.emplace_back(metrics[i].name, v[2 * i] / v[2 * i + 1]);
  }
  return result;
}

bool observe(const EarlyStoppingSettings& settings, const std::vector<std::pair<std::string, double>>& metrics,
             std::int64_t step, weights::EarlyStoppingState& state) {
  COHORT_THROW_UNLESS(!metrics.empty(), "the validation returned no metric");
  const std::pair<std::string, double>* watched = &metrics.front();
  if (!settings.metric.empty()) {
    watched = nullptr;
    std::string names;
    for (const auto& metric : metrics) {
      if (metric.first == settings.metric) watched = &metric;
      names += (names.empty() ? "" : ", ") + metric.first;
    }
    COHORT_THROW_UNLESS(watched, "train.early_stopping.metric = '{}' is none of the metrics: {}", settings.metric,
                        names);
  }
  if (!state.best || watched->second <= *state.best - settings.min_delta) {
    if (watched->second == watched->second) {
      state.best = watched->second;
      state.best_step = step;
      state.validations_since_best = 0;
      return true;
    }
  }
  ++state.validations_since_best;
  return false;
}

bool should_stop(const EarlyStoppingSettings& settings, const weights::EarlyStoppingState& state) {
  return settings.patience > 0 && state.validations_since_best >= settings.patience;
}

}  // namespace cohort::train
