#include "parallel/single_device.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "parallel/module_layout.h"
#include "parallel/replica_step.h"
#include "tensors/convert.h"

namespace cohort::parallel {

SingleDevice::SingleDevice(std::shared_ptr<torch::nn::Module> model, DeviceId device)
    : model_(std::move(model)), device_(device) {
  COHORT_CHECK(model_ != nullptr, "SingleDevice needs a model");
  check_on_device(*model_, tensors::to_torch_device(device_));
}

SingleDevice::~SingleDevice() = default;

torch::nn::Module& SingleDevice::module() {
  return *model_;
}

void SingleDevice::zero_grad() {
  drop_gradients(*model_);
}

at::Tensor SingleDevice::forward_backward(const Batch& batch, const LossFunction& loss,
                                          const BackwardOptions& options) {
  try {
    const at::Tensor value = checked_loss(loss, *model_, place_batch(batch, tensors::to_torch_device(device_)));
    backward_weighted(value, options.weight, options.loss_scale);
    return value.detach();
  } catch (const std::exception& problem) {
    rethrow_plain(problem);
  }
}

}  // namespace cohort::parallel
