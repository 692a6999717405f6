#include "models/linear.h"

#include <cstdint>
#include <vector>

#include <ATen/autocast_mode.h>
#include <torch/types.h>

namespace cohort::models {
namespace {

thread_local bool rows_stand_alone = false;

/// x (rows, in) with every row at a whole cache line.
at::Tensor aligned_rows(const at::Tensor& x) {
  constexpr std::int64_t kLine = 16;  // floats
  const std::int64_t in = x.size(1), stride = (in + kLine - 1) / kLine * kLine;
  const bool at_a_line = reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % (kLine * sizeof(float)) == 0;
  if (at_a_line && x.stride(1) == 1 && x.stride(0) % kLine == 0) return x;
  const at::Tensor aligned = at::empty({x.size(0), stride}, x.options()).narrow(1, 0, in);
  aligned.copy_(x);
  return aligned;
}

}  // namespace

RowsAloneGuard::RowsAloneGuard() : former_(rows_stand_alone) {
  rows_stand_alone = true;
}

RowsAloneGuard::~RowsAloneGuard() {
  rows_stand_alone = former_;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool plain = x.device().is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
                     !at::autocast::is_autocast_enabled(at::kCPU);
  if (!rows_stand_alone || !plain) return at::linear(x, weight, bias);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return at::linear(aligned_rows(x.reshape({-1, x.size(-1)})), weight, bias).view(shape);
}

}  // namespace cohort::models
