// Float32 products of a linear layer, forward, for its input's gradient and for its weight's: as Cohort computes them and
// as LibTorch does by itself (at::cpu), one thread, in turns.
//
//   bench_matrix_product
#include "tensors/matrix_product.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <ATen/CPUFunctions.h>
#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/format.h"
#include "program.h"

namespace {
using namespace cohort;

double seconds(const std::function<void()>& work, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
}

/// GFLOP/s of the best of 20 rounds in turn: ours, LibTorch's.
std::string rates(double flop, const std::function<void()>& ours, const std::function<void()>& theirs) {
  const int times = std::max(1, static_cast<int>(2e8 / flop));
  double best[2] = {1e9, 1e9};
  for (int round = 0; round < 20; ++round) {
    best[0] = std::min(best[0], seconds(ours, times));
    best[1] = std::min(best[1], seconds(theirs, times));
  }
  return format("{:>4.0f} and {:>4.0f} ({:.2f})", 1e-9 * flop / best[0], 1e-9 * flop / best[1], best[1] / best[0]);
}

int run() {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  std::puts(tensors::speed_up_matrix_products() ? "GFLOP/s of oneDNN's kernels and of MKL's, and how many times as fast"
                                                : "both sides are LibTorch's own here; GFLOP/s");
  std::puts(" rows    in   out   forward             input's gradient    weight's gradient");
  struct Layer {
    std::int64_t rows, in, out;
  };
  for (const auto& [rows, in, out] : {Layer{1, 128, 128},
                                      {7, 512, 512},
                                      {16, 128, 128},
                                      {512, 128, 128},
                                      {4096, 64, 64},
                                      {512, 512, 256},
                                      {300, 2048, 2048},
                                      {1024, 1024, 4096}}) {
    const at::Tensor x = at::randn({rows, in}), weight = at::randn({out, in}), bias = at::randn({out}),
                     pull = at::randn({rows, out});
    at::Tensor y = at::empty({rows, out}), x_gradient = at::empty({rows, in}), weight_gradient = at::empty({out, in});
    const double flop = 2.0 * static_cast<double>(rows * in * out);
    std::puts(format("{:>5} {:>5} {:>5}   {}   {}   {}", rows, in, out,
                     rates(
                         flop, [&] { at::addmm_out(y, bias, x, weight.t()); },
                         [&] { at::cpu::addmm_out(y, bias, x, weight.t()); }),
                     rates(
                         flop, [&] { at::mm_out(x_gradient, pull, weight); },
                         [&] { at::cpu::mm_out(x_gradient, pull, weight); }),
                     rates(
                         flop, [&] { at::mm_out(weight_gradient, pull.t(), x); },
                         [&] { at::cpu::mm_out(weight_gradient, pull.t(), x); }))
                  .c_str());
  }
  return 0;
}

}  // namespace

int main() {
  return cohort::bench::run_program("matrix_product", run);
}
