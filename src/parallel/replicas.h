/// The copies of a model that DataParallel keeps, one per device.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/array_view.h"
#include "parallel/gradient_reduction.h"

namespace torch::nn {
class Module;
}

namespace cohort::parallel {

/// Builds a module like the wrapped one, with any weights, on the CPU.
using ModuleFactory = std::function<std::shared_ptr<torch::nn::Module>()>;

class Replicas {
 public:
  /// Replica 0 is `model` itself, which lies on devices[0]. The others come from `factory`, or from model->clone()
  /// (models that derive from torch::nn::Cloneable). The state of LibTorch's random generator is as before afterwards.
  /// `share_memory`: parameters of all replicas are the same memory (all devices are the CPU), so that an optimizer's
  /// step needs no copies; otherwise parameters lie in flat buffers that are copied in one go. Throws Error when a
  /// replica cannot be made, or differs in names or shapes.
  Replicas(std::shared_ptr<torch::nn::Module> model, std::vector<DeviceId> devices, const ModuleFactory& factory,
           bool share_memory);

  std::size_t size() const { return modules_.size(); }
  torch::nn::Module& operator[](std::size_t replica) { return *modules_[replica]; }
  const std::vector<DeviceId>& devices() const { return devices_; }

  /// Parameters that need gradients, per replica; and which of them get sparse ones.
  ReplicaParameters trainable() const;
  std::vector<bool> sparse() const;

  /// Sees to it that all replicas have replica 0's parameter values. With shared memory that is only a check for
  /// parameters whose memory was replaced.
  void follow_parameters(dist::DeviceReducer* reducer);

  /// Copies replica 0's buffers to `replica`, in that replica's thread, before replica 0 starts its forward pass.
  /// Buffers whose name ends with one of `constant` are left alone.
  void follow_buffers(std::size_t replica, const std::vector<std::string>& constant);
  bool has_buffers_to_follow(const std::vector<std::string>& constant) const;

  /// Training or evaluation mode, layer by layer, as replica 0.
  void follow_mode();

 private:
  void share_parameters();
  void flatten_parameters();

  std::vector<DeviceId> devices_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<std::vector<at::Tensor>> parameters_;  // [replica][i], all of them
  std::vector<bool> sparse_;                         // of all parameters
  bool share_memory_;
  std::vector<std::vector<at::Tensor>> flat_;  // [element type][replica]; empty with shared memory
  std::vector<const void*> flat_positions_;    // where replica 0's parameters were put
};

}  // namespace cohort::parallel
