/// The matrix product behind every linear layer of the models.
#pragma once
#include <ATen/core/Tensor.h>

namespace cohort::models {

/// x Wᵀ + b over the last dimension: x (..., in), weight (out, in), bias (out).
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// While one exists, linear() in this thread gives a row of x the same bits wherever it stands among a multiple of 16
/// rows, and however many there are (float32 on a CPU). MKL's kernels for few outputs begin each row at the next whole
/// register, so that rows which begin at different places in memory are summed in different orders. Costs a copy where
/// the width is no multiple of 16.
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
