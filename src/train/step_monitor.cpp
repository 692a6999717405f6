#include "train/step_monitor.h"

#include <cmath>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "train/grad_scaler.h"

namespace cohort::train {

void poison_gradient(const at::Tensor& loss) {
  loss.register_hook([value = loss.detach()](const at::Tensor& gradient) {
    // 0 x finite = 0, 0 x inf = 0 x NaN = NaN; a factor of exactly 1 changes no bit.
    return gradient * (value * 0 + 1).to(gradient.scalar_type());
  });
}

StepMonitor::StepMonitor(c10::Device device, bool skip_bad_steps, bool deferred)
    : skip_(skip_bad_steps), deferred_(deferred), numbers_(at::TensorOptions().device(device)) {
  numbers_ = numbers_.dtype(device.is_mps() ? at::kFloat : at::kDouble);
  if (!deferred_) return;
  steps_made_ = at::zeros({}, numbers_);
  step_loss_ = at::zeros({}, numbers_);
  table_ = at::zeros({4}, numbers_);
  is_bad_ = at::zeros({}, numbers_.dtype(at::kBool));
  bad_record_ = at::zeros({3}, numbers_);
  skipped_ = at::zeros({}, numbers_);
}

void StepMonitor::complete_norms(std::function<at::Tensor(const at::Tensor& own)> complete,
                                 std::vector<std::string> names) {
  complete_ = std::move(complete);
  all_names_ = std::move(names);
}

void StepMonitor::add_loss(const at::Tensor& loss, double weight) {
  const at::NoGradGuard no_grad;
  if (deferred_) {
    step_loss_.add_(loss.to(step_loss_.options()), weight);
  } else {
    loss_ += loss.item<double>() * weight;
  }
}

void StepMonitor::finish_step(const std::vector<at::Tensor>& gradients, const GradScaler* scaler) {
  const at::NoGradGuard no_grad;
  COHORT_THROW_UNLESS(!gradients.empty() || complete_,
                      "no parameter received a gradient: the loss does not depend on the model's trainable parameters");
  const auto type = !gradients.empty() && gradients.front().scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor norms =
      gradients.empty() ? at::empty({0}, numbers_.dtype(type)) : at::stack(at::_foreach_norm(gradients, 2, type));
  if (complete_) norms = complete_(norms);
  const at::Tensor norm = at::linalg_vector_norm(norms, 2);
  if (deferred_) {
    finish_deferred(norms, norm, scaler);
  } else {
    norms_ = norms;
    norm_ = norm;
    finish_at_once(scaler);
  }
}

void StepMonitor::finish_at_once(const GradScaler* scaler) {
  ++steps_;
  const double norm = norm_.item<double>();
  const double loss = std::exchange(loss_, 0.0);
  const bool bad = scaler ? !std::isfinite(loss) : !std::isfinite(norm);
  may_update_ = !bad;
  found_inf_ = scaler ? scaler->found_inf() : at::Tensor();
  if (bad || (scaler && found_inf_.item<float>() != 0.0f)) ++skipped_count_;
  if (bad && !skip_ && !bad_) {
    bad_ = BadStep{steps_, loss, norm, {}};
    bad_norms_ = norms_;
  }
  if (scaler) may_update_ = true;  // one rank's own observation: the agreed found_inf decides
  if (bad) return;
  sums_.interval_sum += loss;
  sums_.interval_count += 1.0;
  sums_.epoch_sum += loss;
  sums_.epoch_count += 1.0;
}

void StepMonitor::finish_deferred(const at::Tensor& norms, const at::Tensor& norm, const GradScaler* scaler) {
  if (!norms_.defined() || norms_.sizes() != norms.sizes()) {  // other parameters than before have gradients
    norms_ = at::empty_like(norms);
    norm_ = at::empty_like(norm);
    bad_norms_ = at::ones_like(norms);
  }
  norms_.copy_(norms);
  norm_.copy_(norm);
  steps_made_.add_(1);
  const at::Tensor bad = (scaler ? step_loss_ : norm_).isfinite().logical_not();
  if (!skip_) {
    const at::Tensor first = bad.logical_and(is_bad_.logical_not());
    bad_record_.copy_(at::where(first, at::stack({steps_made_, step_loss_, norm_.to(numbers_)}), bad_record_));
    bad_norms_.copy_(at::where(first, norms_, bad_norms_));
    is_bad_.logical_or_(bad);
  }
  const at::Tensor suppressed = (skip_ ? bad : is_bad_).to(at::kFloat);
  found_inf_ = scaler ? scaler->found_inf() : suppressed;
  skipped_.add_(scaler ? at::maximum(found_inf_, suppressed) : suppressed);
  const at::Tensor counts = bad.logical_not().to(numbers_);
  const at::Tensor loss = at::where(bad, at::zeros_like(step_loss_), step_loss_);
  table_.add_(at::stack({loss, counts, loss, counts}));
  step_loss_.zero_();
}

void StepMonitor::clip(const std::vector<at::Tensor>& gradients, double max_norm) const {
  const at::NoGradGuard no_grad;
  const at::Tensor factor = (max_norm / (norm_ + 1e-6)).clamp_max(1.0);
  if (gradients.empty() || (!deferred_ && factor.item<double>() == 1.0)) return;
  if (gradients.front().scalar_type() == factor.scalar_type()) {
    at::_foreach_mul_(gradients, factor);
  } else {
    for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
  }
}

StepMonitor::Reading StepMonitor::read(const Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  Reading reading;
  if (deferred_) {
    const at::Tensor norm = norm_.defined() ? norm_.to(numbers_) : at::zeros({}, numbers_);
    const at::Tensor all =
        at::cat({table_, bad_record_, at::stack({skipped_, norm, is_bad_.to(numbers_)})}).cpu().to(at::kDouble);
    const auto* v = all.const_data_ptr<double>();
    reading.sums = {v[0], v[1], v[2], v[3]};
    if (v[9] != 0.0) bad_ = BadStep{static_cast<std::int64_t>(v[4]), v[5], v[6], {}};
    reading.skipped = v[7];
    reading.grad_norm = v[8];
  } else {
    reading.sums = sums_;
    reading.skipped = skipped_count_;
    reading.grad_norm = norm_.defined() ? norm_.item<double>() : 0.0;
  }
  if (bad_) {
    const at::Tensor norms = bad_norms_.cpu().to(at::kDouble);
    const auto& positions = optimizer.gradient_positions();
    const auto name_of = [&](std::size_t i) {
      if (complete_) return i < all_names_.size() ? all_names_[i] : std::string();
      return i < positions.size() ? optimizer.parameters()[positions[i]].first : std::string();
    };
    for (std::int64_t i = 0; i < norms.numel(); ++i) {
      if (std::isfinite(norms.const_data_ptr<double>()[i])) continue;
      bad_->parameter = name_of(static_cast<std::size_t>(i));
      break;
    }
    reading.bad = bad_;
  }
  return reading;
}

void StepMonitor::begin_at(std::int64_t step) {
  steps_ = step;
  if (deferred_) steps_made_.fill_(static_cast<double>(step));
}

void StepMonitor::begin_interval() {
  if (deferred_) {
    table_.narrow(0, 0, 2).zero_();
  } else {
    sums_.interval_sum = sums_.interval_count = 0.0;
  }
}

void StepMonitor::begin_epoch() {
  if (deferred_) {
    table_.narrow(0, 2, 2).zero_();
  } else {
    sums_.epoch_sum = sums_.epoch_count = 0.0;
  }
}

void StepMonitor::restore(const weights::LossSums& sums) {
  if (deferred_) {
    table_.copy_(
        torch::tensor({sums.interval_sum, sums.interval_count, sums.epoch_sum, sums.epoch_count}, at::kDouble));
    step_loss_.zero_();
  } else {
    sums_ = sums;
    loss_ = 0.0;
  }
}

weights::LossSums StepMonitor::sums_with(double loss) const {
  COHORT_CHECK(!deferred_, "the sums lie on the device");
  weights::LossSums sums = sums_;
  const double whole = loss_ + loss;
  if (!std::isfinite(whole)) return sums;
  sums.interval_sum += whole;
  sums.interval_count += 1.0;
  sums.epoch_sum += whole;
  sums.epoch_count += 1.0;
  return sums;
}

}  // namespace cohort::train
