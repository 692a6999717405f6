/// Losses and gradient norms of a training, and the guard against NaN and inf, without a host synchronisation per step.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "train/optimizer.h"
#include "weights/trainer_state.h"

namespace cohort::train {

class GradScaler;

/// The first step that went wrong.
struct BadStep {
  std::int64_t step = 0;
  double loss = 0.0;  ///< of this rank
  double grad_norm = 0.0;
  std::string parameter;  ///< first one whose gradient holds a NaN or an inf; empty: none
};

/// On a device, everything stays there until read(); with error policy all updates from the bad step on are suppressed
/// there, so that the weights are those before it. On the CPU reading costs nothing, and a bad step is known at once.
///
/// Ranks decide alike without talking: a bad loss on one rank makes its gradients NaN (poison_gradient), the reduction
/// carries that to all, and only the norm of the reduced gradients decides. With a GradScaler, where overflowing
/// gradients are an everyday matter, only the loss is bad; that is a rank's own observation, to be agreed on after
/// read().
class StepMonitor {
 public:
  /// deferred: keep everything on the device (for the CPU: as if it were one).
  StepMonitor(c10::Device device, bool skip_bad_steps, bool deferred);

  /// Where each process has the gradients of its own parameters only: `complete` takes their norms (in the order of the
  /// gradients) and returns those of all parameters, whose names are `names`.
  void complete_norms(std::function<at::Tensor(const at::Tensor& own)> complete, std::vector<std::string> names);

  /// The loss of a micro-batch and its part of the step's loss.
  void add_loss(const at::Tensor& loss, double weight);

  /// After the last backward pass of a step (and after scaler->unscale): judges loss and gradients. When deferred, a
  /// recorded step does the same again: everything that lasts stays where it is, and steps are counted on the device.
  void finish_step(const std::vector<at::Tensor>& gradients, const GradScaler* scaler);

  /// Scales the gradients down to a 2-norm of at most max_norm, as torch.nn.utils.clip_grad_norm_ does.
  void clip(const std::vector<at::Tensor>& gradients, double max_norm) const;

  /// False when the host knows that this step must not update.
  bool may_update() const { return may_update_; }
  /// For the optimizer: undefined, or 1 where this step must not update.
  const at::Tensor& found_inf() const { return found_inf_; }

  struct Reading {
    weights::LossSums sums;
    double grad_norm = 0.0;  ///< of the last step
    double skipped = 0.0;    ///< steps without an update since the start of this process
    std::optional<BadStep> bad;
  };
  /// Waits for the device. `optimizer` names the parameters.
  Reading read(const Optimizer& optimizer);

  /// Steps that have been made before the next one.
  void begin_at(std::int64_t step);
  void begin_interval();
  void begin_epoch();
  /// Also drops what a step that was not finished has added.
  void restore(const weights::LossSums& sums);
  /// The sums once the present step, with this further loss, is finished; only where nothing is deferred.
  weights::LossSums sums_with(double loss) const;

 private:
  void finish_at_once(const GradScaler* scaler);
  void finish_deferred(const at::Tensor& norms, const at::Tensor& norm, const GradScaler* scaler);

  std::function<at::Tensor(const at::Tensor& own)> complete_;
  std::vector<std::string> all_names_;
  bool skip_, deferred_;
  at::TensorOptions numbers_;  // the widest floating-point type of the device
  bool may_update_ = true;
  at::Tensor found_inf_;
  at::Tensor norm_;   // of all gradients, scalar
  at::Tensor norms_;  // of each gradient

  // At once.
  std::int64_t steps_ = 0;
  double loss_ = 0.0;
  weights::LossSums sums_;
  double skipped_count_ = 0.0;
  std::optional<BadStep> bad_;
  at::Tensor bad_norms_;  // also when deferred

  // Deferred: scalars on the device, but for the table (interval sum, interval count, epoch sum, epoch count).
  at::Tensor steps_made_, step_loss_, table_, is_bad_, bad_record_, skipped_;
};

/// Makes the gradient of `loss` NaN when the loss is NaN or inf, and leaves it as it is, to the bit, when not. The loss
/// itself is unchanged.
void poison_gradient(const at::Tensor& loss);

}  // namespace cohort::train
