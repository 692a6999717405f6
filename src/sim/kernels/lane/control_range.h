/// A random control as the host and a device's threads make it of a uniform number.
#pragma once
#include "sim/kernels/lane/device.h"

namespace cohort::sim {

struct ControlRange {
  int index;           ///< of the control
  float lower, width;  ///< its range, [-1, 1] where it has none
  /// uniform in [0, 1)
  COHORT_DEVICE float at(float uniform) const { return lower + width * uniform; }
  bool operator==(const ControlRange& other) const {
    return index == other.index && lower == other.lower && width == other.width;
  }
};

/// Whose controls, and when.
struct ControlDraw {
  unsigned long long seed;
  long long first_environment;  ///< global id of the batch's first one
  long long step;
};

}  // namespace cohort::sim
