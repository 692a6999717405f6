/// Random controls of a batch of environments.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/array_view.h"
#include "sim/model_info.h"

namespace cohort::sim {

/// Uniform in each control's range, [-1, 1] where it has none: number `control` of the stream (seed, kAction, global
/// environment id, step), which no other environment, thread or batch has a part in.
class RandomControls {
 public:
  RandomControls() = default;
  explicit RandomControls(std::span<const ActuatorInfo> actuators);
  /// Writes ctrl (environments, nu), float or double, in host memory. first_environment: global id of its first row.
  void draw(const ArrayView& ctrl, std::uint64_t seed, std::int64_t first_environment, std::int64_t step) const;

 private:
  struct Control {
    int index;
    float lower, width;
  };
  template <class T>
  void draw_as(const ArrayView& ctrl, std::uint64_t seed, std::int64_t first_environment, std::int64_t step) const;
  std::vector<Control> controls_;  ///< by their indices
};

}  // namespace cohort::sim
