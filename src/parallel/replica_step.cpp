#include "parallel/replica_step.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"

namespace cohort::parallel {

Batch place_batch(const Batch& batch, c10::Device device) {
  COHORT_THROW_UNLESS(batch.size() > 0, "the batch is empty");
  bool there = true;
  for (const auto& [name, tensor] : batch.fields) {
    const bool same =
        tensor.device().type() == device.type() && (device.is_cpu() || tensor.device().index() == device.index());
    COHORT_THROW_UNLESS(
        same || tensor.is_cpu(),
        "field '{}' of the batch lies on {}, but it is needed on {}; leave it on the CPU, or move it there", name,
        tensor.device().str(), device.str());
    there = there && same;
  }
  return there ? batch : batch.to(device, /*non_blocking=*/true);
}

at::Tensor checked_loss(const LossFunction& loss, torch::nn::Module& model, const Batch& batch) {
  at::Tensor value = loss(model, batch);
  COHORT_THROW_UNLESS(value.defined(), "the loss function returned no tensor");
  COHORT_THROW_UNLESS(
      value.numel() == 1 && value.is_floating_point(),
      "the loss function returned {} values of type {}; it must return one floating-point number, the mean over "
      "the batch",
      value.numel(), c10::toString(value.scalar_type()));
  COHORT_THROW_UNLESS(
      value.requires_grad(),
      "the loss does not depend on any trainable parameter (is everything frozen, or gradients switched off?)");
  return value.dim() == 0 ? value : value.reshape({});
}

void backward_weighted(const at::Tensor& loss, double factor, const at::Tensor& loss_scale) {
  at::Tensor weighted = factor == 1.0 ? loss : loss * factor;
  if (loss_scale.defined()) weighted = weighted * loss_scale.to(loss.device(), /*non_blocking=*/true);
  weighted.backward();
}

void rethrow_plain(const std::exception& problem) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&problem))
    throw Error(torch_error->what_without_backtrace());
  throw;
}

void drop_gradients(torch::nn::Module& model) {
  for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
}

}  // namespace cohort::parallel
