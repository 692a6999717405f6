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

/// While one exists, linear() in this thread gives a row of x the same bits wherever it stands among a multiple of 16
/// rows, and however many there are (float32 on a CPU). MKL's kernels for few outputs begin each row at the next whole
/// register, so that rows which begin at different places in memory are summed in different orders; and the choice
/// between MKL and oneDNN depends on the number of rows. Costs a copy where the width is no multiple of 16.
class RowsAloneGuard {
 public:
  RowsAloneGuard();
  ~RowsAloneGuard();
  RowsAloneGuard(const RowsAloneGuard&) = delete;
  RowsAloneGuard& operator=(const RowsAloneGuard&) = delete;

 private:
  bool former_;
};

}  // namespace cohort::models
