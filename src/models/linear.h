/// The matrix product behind every linear layer of the models.
#pragma once
#include <ATen/core/Tensor.h>

namespace cohort::models {

/// x Wᵀ + b over the last dimension: x (..., in), weight (out, in), bias (out).
///
/// For large float32 products on a CPU this asks oneDNN, through the operator that LibTorch registers for it, instead
/// of MKL as at::linear does: 10 to 15 % faster on processors with AVX-512 that are not Intel's
/// (bench/models/README.md). Everything else (other types and devices, autocast, small products, a LibTorch without
/// oneDNN) is at::linear. Differentiable once.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace cohort::models
