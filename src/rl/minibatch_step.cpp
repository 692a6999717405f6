#include "rl/minibatch_step.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

namespace cohort::rl {
namespace {

constexpr double kLowestRate = 1e-5, kHighestRate = 1e-2;  // of the adaptive schedule, as rsl_rl's
constexpr std::int64_t kLosses = kActorNorm;

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  return gradients;
}

at::Tensor norm_of(const std::vector<at::Tensor>& gradients) {
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2);
}

double share_of(const PpoSettings& settings) {
  return 1.0 / (settings.num_learning_epochs * settings.num_mini_batches);
}

class AtOnce : public MinibatchSteps {
 public:
  AtOnce(const Parts& parts, double learning_rate) : parts_(parts) { found_.learning_rate = learning_rate; }

  bool step(const at::Tensor& losses) override {
    double figure[kFigures];
    std::copy_n(losses.const_data_ptr<double>(), kLosses, figure);
    figure[kActorNorm] = clip(parts_.actor);
    figure[kCriticNorm] = clip(parts_.critic);
    if (!std::isfinite(figure[kLoss]) || !std::isfinite(figure[kActorNorm]) || !std::isfinite(figure[kCriticNorm])) {
      found_.diverged = true;
      std::copy_n(figure, kFigures, found_.bad);
      return false;
    }
    found_.last_kl = figure[kKl];
    adapt(figure[kKl]);
    parts_.optimizer.step(found_.learning_rate);
    for (std::int64_t i = 0; i < kFigures; ++i) found_.mean[i] += figure[i] * share_of(parts_.settings);
    return true;
  }
  UpdateFigures figures() override { return found_; }

 private:
  /// As torch.nn.utils.clip_grad_norm_; returns the norm before.
  double clip(const std::vector<at::Tensor>& parameters) const {
    const std::vector<at::Tensor> gradients = gradients_of(parameters);
    const double norm = norm_of(gradients).item<double>(), most = parts_.settings.max_grad_norm;
    if (norm > most) at::_foreach_mul_(gradients, most / (norm + 1e-6));
    return norm;
  }
  void adapt(double kl) {
    if (parts_.settings.schedule != "adaptive") return;
    double& rate = found_.learning_rate;
    if (kl > 2 * parts_.settings.desired_kl)
      rate = std::max(kLowestRate, rate / 1.5);
    else if (kl > 0 && kl < parts_.settings.desired_kl / 2)
      rate = std::min(kHighestRate, rate * 1.5);
  }

  Parts parts_;
  UpdateFigures found_;
};

class OnDevice : public MinibatchSteps {
 public:
  OnDevice(const Parts& parts, double learning_rate, at::Device device)
      : parts_(parts),
        real_(at::TensorOptions(device).dtype(at::kDouble)),
        rate_(at::full({}, learning_rate, real_)),
        sums_(at::zeros({kFigures}, real_)),
        last_kl_(at::zeros({}, real_)),
        bad_(at::zeros({kFigures}, real_)),
        diverged_(at::zeros({}, real_.dtype(at::kBool))) {}

  bool step(const at::Tensor& losses) override {
    const at::Tensor norms = at::stack({clip(parts_.actor), clip(parts_.critic)});
    const at::Tensor figures = at::cat({losses, norms});
    const at::Tensor sound = at::isfinite(losses[kLoss]).logical_and(at::isfinite(norms).all());
    bad_ = at::where(sound.logical_or(diverged_), bad_, figures);
    diverged_ = diverged_.logical_or(sound.logical_not());
    last_kl_ = at::where(diverged_, last_kl_, losses[kKl]);
    rate_ = at::where(diverged_, rate_, adapted(losses[kKl]));
    // Of a float the kernels of a GPU read the rate themselves. Where something is not finite nothing changes any more.
    parts_.optimizer.step(rate_.is_cuda() ? rate_.to(at::kFloat) : rate_, diverged_.to(at::kFloat));
    sums_ = sums_ + at::where(diverged_, at::zeros_like(figures), figures * share_of(parts_.settings));
    return true;
  }

  UpdateFigures figures() override {
    const at::Tensor all = at::cat({sums_, bad_, at::stack({last_kl_, rate_, diverged_.to(at::kDouble)})}).cpu();
    const auto* number = all.const_data_ptr<double>();
    UpdateFigures found;
    std::copy_n(number, kFigures, found.mean);
    std::copy_n(number + kFigures, kFigures, found.bad);
    number += 2 * kFigures;
    found.last_kl = number[0], found.learning_rate = number[1], found.diverged = number[2] != 0;
    return found;
  }

 private:
  at::Tensor clip(const std::vector<at::Tensor>& parameters) const {
    const std::vector<at::Tensor> gradients = gradients_of(parameters);
    const at::Tensor norm = norm_of(gradients).to(at::kDouble);
    const double most = parts_.settings.max_grad_norm;
    const at::Tensor factor = at::where(norm > most, most / (norm + 1e-6), 1.0);
    at::_foreach_mul_(gradients, factor.to(gradients.front().scalar_type()));
    return norm;
  }
  at::Tensor adapted(const at::Tensor& kl) const {
    if (parts_.settings.schedule != "adaptive") return rate_;
    const at::Tensor small = (kl > 0).logical_and(kl < parts_.settings.desired_kl / 2);
    return at::where(kl > 2 * parts_.settings.desired_kl, (rate_ / 1.5).clamp_min(kLowestRate),
                     at::where(small, (rate_ * 1.5).clamp_max(kHighestRate), rate_));
  }

  Parts parts_;
  at::TensorOptions real_;
  at::Tensor rate_, sums_, last_kl_, bad_, diverged_;
};

}  // namespace

std::unique_ptr<MinibatchSteps> MinibatchSteps::at_once(const Parts& parts, double learning_rate) {
  return std::make_unique<AtOnce>(parts, learning_rate);
}

std::unique_ptr<MinibatchSteps> MinibatchSteps::on_device(const Parts& parts, double learning_rate, at::Device device) {
  return std::make_unique<OnDevice>(parts, learning_rate, device);
}

}  // namespace cohort::rl
