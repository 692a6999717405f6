/// Random controls of a batch of environments.
#pragma once
#include <span>
#include <vector>

#include "core/array_view.h"
#include "sim/host/model_info.h"
#include "sim/kernels/lane/control_range.h"

namespace cohort::sim {

/// Uniform in each control's range, [-1, 1] where it has none: number `control` of the stream (seed, kAction, global
/// environment id, step), which no other environment, thread or batch has a part in.
class RandomControls {
 public:
  RandomControls() = default;
  explicit RandomControls(std::span<const ActuatorInfo> actuators);
  /// Writes ctrl (environments, nu), float or double, in host memory.
  void draw(const ArrayView& ctrl, const ControlDraw& draw) const;
  /// By their indices.
  std::span<const ControlRange> ranges() const { return ranges_; }

 private:
  template <class T>
  void draw_as(const ArrayView& ctrl, const ControlDraw& draw) const;
  std::vector<ControlRange> ranges_;
};

}  // namespace cohort::sim
