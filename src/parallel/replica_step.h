/// Forward and backward of one replica: the part that all strategies share.
#pragma once
#include <exception>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "parallel/batch.h"
#include "parallel/strategy.h"

namespace cohort::parallel {

/// The batch on the replica's device. Tensors may lie there already or on the CPU; one on another accelerator is a
/// mistake of the caller's: Error naming the field.
Batch place_batch(const Batch& batch, c10::Device device);

/// Calls `loss` and checks what it returns: one floating-point number that depends on a parameter. Throws Error.
at::Tensor checked_loss(const LossFunction& loss, torch::nn::Module& model, const Batch& batch);

/// Backward of loss × factor × loss_scale (the latter when defined).
void backward_weighted(const at::Tensor& loss, double factor, const at::Tensor& loss_scale);

/// Throws LibTorch's exceptions as Error without their C++ stack, everything else as it is. To be called inside a catch
/// block.
[[noreturn]] void rethrow_plain(const std::exception& problem);

/// Drops the gradients of all parameters; the next backward pass makes new ones.
void drop_gradients(torch::nn::Module& model);

}  // namespace cohort::parallel
