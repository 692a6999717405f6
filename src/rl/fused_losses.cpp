#include "rl/fused_losses.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

namespace cohort::rl {
namespace {

constexpr std::int64_t kLossRows = 2048;  // of a piece
constexpr double kLogRootTwoPi = 0.91893853320467274178;

/// Sums over the rows of a piece.
struct LossSums {
  double surrogate = 0, value = 0, kl = 0;
  std::vector<double> d_log_std;
};

/// Pointers into LossInputs and FusedLosses, and what all rows have in common.
struct LossRows {
  const float *mean, *value, *actions, *old_means, *old_log_probs, *old_values, *advantages, *returns;
  float *d_mean, *d_value;
  std::int64_t width;
  std::vector<float> inverse_std;  // e^-log_std
  // As gaussian_kl(), in float: what is but rounding must be exactly 0, or it would raise the learning rate.
  std::vector<float> log_ratio, std_ratio;  // 2 (old_log_std - log_std), and e^ of it
  float constant_log_prob = 0;              // the part that all rows have
  float clip, weight, value_weight;
  bool clip_values;

  void row(std::int64_t i, LossSums& sums) const {
    float log_prob = constant_log_prob;
    float kl = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t at = i * width + k;
      const float z = (actions[at] - mean[at]) * inverse_std[static_cast<std::size_t>(k)];
      const float moved = (old_means[at] - mean[at]) * inverse_std[static_cast<std::size_t>(k)];
      log_prob -= 0.5f * z * z;
      const auto column = static_cast<std::size_t>(k);
      kl += 0.5f * (std_ratio[column] + moved * moved - 1 - log_ratio[column]);
    }
    sums.kl += static_cast<double>(kl);
    const float ratio = std::exp(log_prob - old_log_probs[i]), advantage = advantages[i];
    const float bounded = std::clamp(ratio, 1 - clip, 1 + clip);
    const float free = -advantage * ratio, clipped = -advantage * bounded;
    sums.surrogate += static_cast<double>(free > clipped || std::isnan(free) ? free : clipped);
    // Within the bounds both are the same; beyond them the clipped one has no slope.
    const float slope = bounded == ratio || free > clipped ? free * weight : 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t at = i * width + k;
      const float inverse = inverse_std[static_cast<std::size_t>(k)], z = (actions[at] - mean[at]) * inverse;
      d_mean[at] = slope * z * inverse;
      sums.d_log_std[static_cast<std::size_t>(k)] += static_cast<double>(slope * (z * z - 1));
    }
    const float error = value[i] - returns[i], near = std::clamp(value[i] - old_values[i], -clip, clip);
    float square = error * error, d_square = 2 * error;
    if (clip_values && near != value[i] - old_values[i]) {
      const float near_error = old_values[i] + near - returns[i];
      if (near_error * near_error > square) square = near_error * near_error, d_square = 0;
    }
    sums.value += static_cast<double>(square);
    d_value[i] = d_square * value_weight;
  }
};

}  // namespace

FusedLosses fused_losses(const LossInputs& inputs, const PpoSettings& settings, ThreadTeam& team) {
  const at::NoGradGuard no_grad;
  const std::int64_t rows = inputs.value.numel(), width = inputs.log_std.numel();
  const auto whole = [](const at::Tensor& x) { return x.contiguous(); };
  const at::Tensor mean = whole(inputs.mean), value = whole(inputs.value), actions = whole(inputs.actions),
                   old_means = whole(inputs.old_means), old_log_probs = whole(inputs.old_log_probs),
                   old_values = whole(inputs.old_values), advantages = whole(inputs.advantages),
                   returns = whole(inputs.returns);
  FusedLosses result{.figures = {}, .d_mean = at::empty_like(mean), .d_value = at::empty_like(value), .d_log_std = {}};
  LossRows all{.mean = mean.const_data_ptr<float>(),
               .value = value.const_data_ptr<float>(),
               .actions = actions.const_data_ptr<float>(),
               .old_means = old_means.const_data_ptr<float>(),
               .old_log_probs = old_log_probs.const_data_ptr<float>(),
               .old_values = old_values.const_data_ptr<float>(),
               .advantages = advantages.const_data_ptr<float>(),
               .returns = returns.const_data_ptr<float>(),
               .d_mean = result.d_mean.mutable_data_ptr<float>(),
               .d_value = result.d_value.mutable_data_ptr<float>(),
               .width = width,
               .inverse_std = {},
               .log_ratio = {},
               .std_ratio = {},
               .clip = static_cast<float>(settings.clip_param),
               .weight = static_cast<float>(1.0 / static_cast<double>(rows)),
               .value_weight = static_cast<float>(settings.value_loss_coef / static_cast<double>(rows)),
               .clip_values = settings.use_clipped_value_loss};
  const auto* log_std = inputs.log_std.const_data_ptr<float>();
  const auto* old_log_std = inputs.old_log_std.const_data_ptr<float>();
  double entropy = 0;
  for (std::int64_t k = 0; k < width; ++k) {
    const auto now = static_cast<double>(log_std[k]);
    all.inverse_std.push_back(std::exp(-log_std[k]));
    all.log_ratio.push_back(2 * (old_log_std[k] - log_std[k]));
    all.std_ratio.push_back(std::exp(all.log_ratio.back()));
    all.constant_log_prob -= static_cast<float>(now + kLogRootTwoPi);
    entropy += now + 0.5 + kLogRootTwoPi;
  }
  const std::int64_t pieces = (rows + kLossRows - 1) / kLossRows;
  std::vector<LossSums> sums(static_cast<std::size_t>(pieces));
  team.for_each(pieces, [&](std::int64_t p, int) {
    LossSums& own = sums[static_cast<std::size_t>(p)];
    own.d_log_std.assign(static_cast<std::size_t>(width), 0.0);
    for (std::int64_t i = p * kLossRows; i < std::min(rows, (p + 1) * kLossRows); ++i) all.row(i, own);
  });
  LossSums total{.d_log_std = std::vector<double>(static_cast<std::size_t>(width), -settings.entropy_coef)};
  for (const LossSums& own : sums) {
    total.surrogate += own.surrogate, total.value += own.value, total.kl += own.kl;
    for (std::size_t k = 0; k < own.d_log_std.size(); ++k) total.d_log_std[k] += own.d_log_std[k];
  }
  const double share = 1.0 / static_cast<double>(rows), surrogate = total.surrogate * share,
               values = total.value * share;
  const double loss = surrogate + settings.value_loss_coef * values - settings.entropy_coef * entropy;
  result.figures = torch::tensor({loss, surrogate, values, entropy, total.kl * share}, at::kDouble).to(at::kFloat);
  result.d_log_std = torch::tensor(total.d_log_std, at::kDouble).to(at::kFloat);
  return result;
}

}  // namespace cohort::rl
