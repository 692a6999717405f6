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

at::Tensor RunningMoments::normalize(const at::Tensor& x, const at::Tensor& columns) const {
  return (x - shift_.index_select(0, columns)) / divisor_.index_select(0, columns);
}

void RunningMoments::merge(const at::Tensor& x) {
  COHORT_CHECK(x.size(-1) == mean_.size(0), "{} observations where {} are kept", x.size(-1), mean_.size(0));
  if (x.numel() == 0) return;
  const at::Tensor rows = x.reshape({1, -1, x.size(-1)});
  merge(moments_of(rows, {.environments = rows.size(1)}));
}

void RunningMoments::merge(const Moments& moments) {
  const at::NoGradGuard no_grad;
  Moments all{count_.item<double>(), mean_.cpu().clone(), m2_.cpu().clone()};
  all.merge(moments);
  count_.fill_(all.count);
  mean_.copy_(all.mean);
  m2_.copy_(all.m2);
  refresh();
}

}  // namespace cohort::rl
