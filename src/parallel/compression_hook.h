/// Gradients in 16 bits on the wire.
#pragma once
#include <memory>

#include <torch/csrc/distributed/c10d/comm.hpp>

namespace cohort::parallel {

/// A hook that sends each bucket as `type` (kHalf or kBFloat16), divided by the number of ranks before the sum, so that
/// it does not overflow, and converts back. As PyTorch's fp16_compress_hook and bf16_compress_hook.
std::unique_ptr<c10d::CommHookInterface> make_compression_hook(const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                                               at::ScalarType type);

}  // namespace cohort::parallel
