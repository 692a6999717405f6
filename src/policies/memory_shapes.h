/// What the training of a policy keeps on a device, as far as the shapes of its tensors say it (train/memory_plan.h).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace cohort::policies {

/// What the bytes of activations depend on beside shapes.
struct ActivationTypes {
  bool bf16_weights = false;
  double product_bytes = 4;  ///< of an element that matrix products take
  bool gradient_checkpointing = false;
};

struct MemoryShapes {
  std::vector<std::int64_t> trained, frozen;  ///< elements of each parameter
  std::int64_t buffers = 0;                   ///< elements of float32 buffers, in all
  /// Bytes of a sample's activations.
  std::function<double(const ActivationTypes&)> activations_of_sample;
};

}  // namespace cohort::policies
