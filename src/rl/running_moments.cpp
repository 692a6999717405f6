#include "rl/running_moments.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"

namespace cohort::rl {
namespace {

constexpr double kSmallestDeviation = 1e-2;  // added, so that what hardly moves is not blown up

}  // namespace

RunningMoments::RunningMoments(std::int64_t width)
    : count_(register_buffer("count", at::zeros({}, at::kDouble))),
      mean_(register_buffer("mean", at::zeros({width}, at::kDouble))),
      m2_(register_buffer("m2", at::zeros({width}, at::kDouble))) {
  refresh();
}

void RunningMoments::refresh() {
  const at::NoGradGuard no_grad;
  const double count = count_.item<double>();
  shift_ = mean_.to(at::kFloat);
  divisor_ = count > 0 ? ((m2_ / count).sqrt() + kSmallestDeviation).to(at::kFloat) : at::ones_like(shift_);
}

at::Tensor RunningMoments::normalize(const at::Tensor& x) const {
  return (x - shift_) / divisor_;
}

void RunningMoments::merge(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  COHORT_CHECK(x.size(-1) == mean_.size(0), "{} observations where {} are kept", x.size(-1), mean_.size(0));
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).to(at::kDouble);
  const double added = static_cast<double>(rows.size(0)), before = count_.item<double>(), total = before + added;
  if (added == 0) return;
  const at::Tensor mean = rows.mean(0);
  const at::Tensor m2 = (rows - mean).square().sum(0);
  const at::Tensor delta = mean - mean_;
  m2_.add_(m2 + delta.square() * (before * added / total));
  mean_.add_(delta * (added / total));
  count_.fill_(total);
  refresh();
}

}  // namespace cohort::rl
