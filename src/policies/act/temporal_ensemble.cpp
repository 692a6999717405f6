#include "policies/act/temporal_ensemble.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/linear.h"

namespace cohort::models {

TemporalEnsemble::TemporalEnsemble(const PolicyNetwork& policy, int rows, double coefficient,
                                   std::function<at::Tensor(const Observations&)> draw)
    : policy_(policy), rows_(rows), draw_(std::move(draw)) {
  float sum = 0;
  for (int i = 0; i < rows; ++i) {
    weights_.push_back(static_cast<float>(std::exp(-coefficient * i)));
    sums_.push_back(sum += weights_.back());
  }
}

at::Tensor TemporalEnsemble::act(const std::vector<std::uint64_t>& environments, const Observations& frame) {
  const at::NoGradGuard no_grad;
  std::optional<RowsAloneGuard> rows_alone;
  if (exact()) rows_alone.emplace();
  COHORT_CHECK(!policy_.is_training(), "a policy acts in evaluation mode: call eval() first");
  check_frame(policy_.observations(), frame, static_cast<std::int64_t>(environments.size()));
  Observations seen;
  for (const ObservationSettings& o : policy_.observations())
    seen[o.name] = padded_rows(frame.at(o.name).unsqueeze(1), block());
  const at::Tensor drawn = draw_(seen);
  const at::Device device = drawn.device();
  const at::Tensor chunks = drawn.to(at::kCPU, at::kFloat);
  std::vector<at::Tensor> actions;
  for (std::size_t e = 0; e < environments.size(); ++e) {
    Environment& own = environments_[environments[e]];
    at::Tensor mean = chunks[static_cast<std::int64_t>(e)].clone();
    std::vector<std::int64_t> count(static_cast<std::size_t>(rows_), 1);
    const std::int64_t width = mean.size(1);
    auto* value = mean.mutable_data_ptr<float>();
    if (own.mean.defined()) {
      const float* former = own.mean.const_data_ptr<float>();
      for (std::size_t row = 0; row < own.count.size(); ++row) {
        const auto n = static_cast<std::size_t>(own.count[row]);
        // A row of a chunk meets at most `rows` chunks: it is then executed.
        for (std::int64_t k = 0; k < width; ++k) {
          float& x = value[static_cast<std::int64_t>(row) * width + k];
          x = (former[static_cast<std::int64_t>(row) * width + k] * sums_[n - 1] + x * weights_[n]) / sums_[n];
        }
        count[row] = std::min<std::int64_t>(own.count[row] + 1, rows_);
      }
    }
    actions.push_back(mean[0].clone());
    own.mean = mean.narrow(0, 1, rows_ - 1).contiguous();
    own.count.assign(count.begin() + 1, count.end());
  }
  return at::stack(actions).to(device);
}

}  // namespace cohort::models
