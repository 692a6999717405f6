/// What randomness inside a model's forward pass is keyed by. A training loop sets it per replica thread before each
/// forward; layers (dropout, ProbSparse sampling) read it. No generator state: the same sample meets the same mask on
/// any rank, replica, or recomputation under gradient checkpointing, and a resumed run needs nothing restored but
/// `step`.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cohort::models {

struct RandomContext {
  std::uint64_t seed = 0;
  /// Optimizer steps since the start of training. The micro-batches, replicas and ranks of one step share it, so that
  /// two ranks draw the same numbers as one process that accumulates the same two halves.
  std::uint64_t step = 0;
  /// (n_sample) int64 on the CPU: ids of the samples in the batch; undefined = 0..n_sample-1.
  at::Tensor sample_ids;
  /// Set while gradient checkpointing runs a part of the forward pass a second time: running statistics (batch norm)
  /// have already seen this batch and stay as they are.
  bool recomputing = false;
};

/// The calling thread's context. Layers throw Error in training mode where none was set.
const RandomContext& random_context();
bool has_random_context();

/// Sets the context of this thread for a scope; restores the former one at its end.
class RandomContextGuard {
 public:
  explicit RandomContextGuard(RandomContext context);
  ~RandomContextGuard();
  RandomContextGuard(const RandomContextGuard&) = delete;
  RandomContextGuard& operator=(const RandomContextGuard&) = delete;

 private:
  RandomContext former_;
  bool had_former_;
};

}  // namespace cohort::models
