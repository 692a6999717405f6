/// Loss scaling for fp16 (Micikevicius et al. 2018), as torch.amp.GradScaler does it: the same defaults, the same
/// states.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "weights/trainer_state.h"

namespace cohort::train {

struct GradScalerSettings {
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< steps without overflow after which the scale grows

  void validate() const;
};

void describe(config::Fields& fields, GradScalerSettings& settings);

/// For one device, CPU or CUDA. Per step: the loss is multiplied by scale() before backward; unscale(gradients); an
/// optimizer step that is given found_inf(); update(). Nothing here waits for the device.
///
/// All ranks must take the same decision. They do when unscale() sees gradients that have been reduced over the ranks:
/// an overflow on one of them is an inf or a NaN in the mean on all.
class GradScaler {
 public:
  GradScaler(const GradScalerSettings& settings, c10::Device device);

  /// float32 scalar on the device.
  const at::Tensor& scale() const { return scale_; }
  /// Divides the gradients by the scale, in place, and notes whether one holds an inf or a NaN.
  /// Throws Error for fp16 gradients: parameters must be float32 under autocast.
  void unscale(const std::vector<at::Tensor>& gradients);
  /// float32 scalar: 1 when the last unscale() met an inf or a NaN.
  const at::Tensor& found_inf() const { return found_inf_; }
  /// Shrinks the scale after an overflow, lets it grow after growth_interval steps without one.
  void update();

  /// Waits for the device.
  weights::GradScalerState state() const;
  /// Throws Error for values out of range.
  void load_state(const weights::GradScalerState& state);

 private:
  GradScalerSettings settings_;
  at::Tensor scale_, growth_tracker_, found_inf_, inverse_;
};

}  // namespace cohort::train
