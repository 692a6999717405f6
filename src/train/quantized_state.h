/// Optimizer states in 8 bits, as bitsandbytes keeps them: a state is cut into blocks of 256 numbers, each block is
/// divided by its largest magnitude (float32, one per block), and every number becomes the nearest of 256 values that lie
/// denser towards zero (dynamic quantisation: Dettmers, Lewis, Shleifer, Zettlemoyer 2022, arXiv 2110.02861).
///
///   QuantizedState mean = zero_state(parameter), variance = zero_state(parameter);
///   adamw_8bit(parameter, gradient, mean, variance, {.lr = 1e-4, .step = step});
///
/// 1.016 bytes a number instead of 4. Blocks follow the order of a tensor's memory.
#pragma once
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "train/quantized_blocks.h"

namespace cohort::train {

/// States of smaller parameters stay in 32 bits (bitsandbytes' min_8bit_size).
inline constexpr std::int64_t kSmallestQuantizedState = 4096;

/// The 256 values, ascending, float32 (256) on the CPU: bitsandbytes' create_dynamic_map. Signed: -0.99.. to 1, for the
/// mean of gradients; unsigned: 0 to 1, for the mean of their squares.
at::Tensor dynamic_map(bool is_signed);

struct QuantizedState {
  at::Tensor codes;   ///< uint8, the parameter's shape: positions in dynamic_map()
  at::Tensor scales;  ///< float32 (blocks): the largest magnitude of each block
};

/// All zero.
QuantizedState zero_state(const at::Tensor& parameter);
/// Of a contiguous float32 tensor. A negative number never becomes zero.
QuantizedState quantize_state(const at::Tensor& values, bool is_signed);

struct AdamW8bitStep {
  double lr = 0.0;
  at::Tensor lr_on_device;  ///< instead of lr, where defined: a scalar
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
  at::Tensor step;                       ///< scalar float32: this one's number, from 1
  std::optional<at::Tensor> grad_scale;  ///< scalar by which the gradient is divided
  std::optional<at::Tensor> found_inf;   ///< scalar; where it is 1, nothing changes
};

/// One step of AdamW (as torch.optim.AdamW) with both moments in 8 bits. The parameter is float32 and dense. On the CPU a
/// loop over blocks; elsewhere the tensor operations below.
void adamw_8bit(const at::Tensor& parameter, const at::Tensor& gradient, const QuantizedState& mean,
                const QuantizedState& variance, const AdamW8bitStep& step);
/// The same by tensor operations on any device, without waiting for it.
void adamw_8bit_by_tensors(const at::Tensor& parameter, const at::Tensor& gradient, const QuantizedState& mean,
                           const QuantizedState& variance, const AdamW8bitStep& step);

}  // namespace cohort::train
