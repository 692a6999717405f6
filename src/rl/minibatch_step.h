/// What follows a minibatch's gradients: they are clipped, the learning rate adapts itself, the optimizer steps, and losses add up.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "rl/settings.h"
#include "train/optimizer.h"

namespace cohort::rl {

/// Of a minibatch, in this order: losses, and the norms of the gradients before clipping.
enum Figure : std::int64_t { kLoss, kSurrogate, kValue, kEntropy, kKl, kActorNorm, kCriticNorm, kFigures };

/// Of an update: means over its minibatches, and what it leaves.
struct UpdateFigures {
  double mean[kFigures] = {};
  double last_kl = 0, learning_rate = 0;
  /// Something was not finite: from there on nothing was changed. The figures of that minibatch.
  bool diverged = false;
  double bad[kFigures] = {};
};

/// Steps of one update. Both kinds have one rule, and but for the roundings of a step one result.
class MinibatchSteps {
 public:
  struct Parts {
    const PpoSettings& settings;
    train::Optimizer& optimizer;
    const std::vector<at::Tensor>& actor;  ///< parameters
    const std::vector<at::Tensor>& critic;
  };
  /// Numbers are read as they come: where the gradients were computed by the caller's own thread.
  static std::unique_ptr<MinibatchSteps> at_once(const Parts& parts, double learning_rate);
  /// Numbers stay on the device until the update is over, so that no minibatch waits for the host.
  static std::unique_ptr<MinibatchSteps> on_device(const Parts& parts, double learning_rate, at::Device device);
  virtual ~MinibatchSteps() = default;

  /// losses: (5) float64, kLoss to kKl, on the device. false: it diverged, and the update may end.
  virtual bool step(const at::Tensor& losses) = 0;
  /// Once, after the last step.
  virtual UpdateFigures figures() = 0;
};

}  // namespace cohort::rl
