/// Parts of a forward pass that gradient checkpointing may recompute. A model hands each of its layers to run_segment,
/// which calls it directly unless a runner is installed; the training loop installs one that keeps the inputs alone and
/// calls the segment again during backward (with RandomContext::recomputing set, so that running statistics are not
/// updated twice).
#pragma once
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cohort::models {

/// Inputs and output carry gradients; parameters are captured. It may be called after the forward pass has returned: it
/// captures by value, or what lives as long as the model.
using Segment = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// `part` is the module whose parameters and buffers the segment uses.
using SegmentRunner = std::function<at::Tensor(const torch::nn::Module& part, const Segment& segment,
                                               const std::vector<at::Tensor>& inputs)>;

/// Installs a runner for this thread's forward passes; restores the former one at the end of the scope. A segment that
/// a runner calls runs its own inner segments directly.
class SegmentRunnerGuard {
 public:
  explicit SegmentRunnerGuard(SegmentRunner runner);
  ~SegmentRunnerGuard();
  SegmentRunnerGuard(const SegmentRunnerGuard&) = delete;
  SegmentRunnerGuard& operator=(const SegmentRunnerGuard&) = delete;

 private:
  SegmentRunner former_;
};

at::Tensor run_segment(const torch::nn::Module& part, const Segment& segment, const std::vector<at::Tensor>& inputs);

}  // namespace cohort::models
