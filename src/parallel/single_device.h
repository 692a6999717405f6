/// One process on one device: the plain training step behind the common interface.
#pragma once
#include <memory>

#include "core/array_view.h"
#include "parallel/strategy.h"

namespace cohort::parallel {

class SingleDevice : public Strategy {
 public:
  /// The model lies on `device` already; throws Error naming the parameter that does not.
  SingleDevice(std::shared_ptr<torch::nn::Module> model, DeviceId device);
  ~SingleDevice() override;

  at::Tensor forward_backward(const Batch& batch, const LossFunction& loss, const BackwardOptions& options) override;
  torch::nn::Module& module() override;
  void zero_grad() override;
  void parameters_changed() override {}
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int replicas() const override { return 1; }
  void mean_over_ranks(at::Tensor&) override {}
  void max_over_ranks(at::Tensor&) override {}
  void barrier() override {}

 private:
  std::shared_ptr<torch::nn::Module> model_;
  DeviceId device_;
};

}  // namespace cohort::parallel
