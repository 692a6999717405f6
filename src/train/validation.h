/// Measuring a model on data that it does not train on, and deciding when to stop.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/strategy.h"
#include "train/batch_source.h"
#include "train/train_settings.h"
#include "weights/trainer_state.h"

namespace cohort::train {

/// A mean in the making: sum / weight, both added over all ranks.
struct Metric {
  std::string name;
  double sum = 0.0;
  double weight = 0.0;
};

/// Measures the model on this rank's share of the validation data. Called on every rank at the same step, with the
/// model in evaluation mode, without gradients; returns the same names in the same order on every rank. `number`: of the
/// validation in the whole training, from 1; whoever made the earlier ones, a process that was resumed or takes a dead
/// rank's place counts as the others do.
using Validator = std::function<std::vector<Metric>(torch::nn::Module& model, std::int64_t number)>;

/// The samples of a validation's batch (epoch 0 of a source of `samples` samples, in order) without those at its end
/// that repeat earlier ones to fill up a rank's share; perhaps none is left.
parallel::Batch without_padding(const parallel::Batch& batch, std::int64_t samples);

/// Sums up over ranks. Collective. Throws Error for a metric without weight on any rank.
std::vector<std::pair<std::string, double>> reduce(const std::vector<Metric>& metrics, parallel::Strategy& strategy);

/// Takes notice of a validation. Returns true when the watched metric is the best so far (NaN never is). Throws Error
/// when the metric that `settings` names does not exist.
bool observe(const EarlyStoppingSettings& settings, const std::vector<std::pair<std::string, double>>& metrics,
             std::int64_t step, weights::EarlyStoppingState& state);

/// True when the patience is used up.
bool should_stop(const EarlyStoppingSettings& settings, const weights::EarlyStoppingState& state);

}  // namespace cohort::train
