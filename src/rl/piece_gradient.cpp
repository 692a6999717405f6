#include "rl/piece_gradient.h"

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "rl/wide_loops.h"

namespace cohort::rl {
namespace {

COHORT_WIDE void add_floats(float* sum, const float* more, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += more[i];
}

// Floats of a share: fewer are not worth a thread.
constexpr std::int64_t kLeastShare = 4096;

}  // namespace

void compute_alone(ThreadTeam& team) {
  team.run([](int) {
    // A thread's first question sets it to LibTorch's global number, which would undo ours.
    (void)at::get_num_threads();
    at::set_num_threads(1);
  });
}

void PieceGradient::match(const std::vector<at::Tensor>& parameters) {
  if (flat.defined()) {
    flat.zero_();
    return;
  }
  std::int64_t total = 0;
  for (const at::Tensor& parameter : parameters) total += parameter.numel();
  flat = at::zeros({total}, parameters.front().options().requires_grad(false));
  std::int64_t place = 0;
  for (const at::Tensor& parameter : parameters) {
    of.push_back(flat.narrow(0, place, parameter.numel()).view(parameter.sizes()));
    place += parameter.numel();
  }
}

void add_piece_gradients(std::vector<PieceGradient>& pieces, const std::vector<at::Tensor>& parameters,
                         ThreadTeam& team) {
  const at::NoGradGuard no_grad;
  PieceGradient& sum = pieces.front();
  const std::int64_t total = sum.flat.numel(), shares = std::clamp<std::int64_t>(total / kLeastShare, 1, team.size());
  auto* to = sum.flat.mutable_data_ptr<float>();
  team.for_each(shares, [&](std::int64_t i, int) {
    const std::int64_t first = total * i / shares, count = total * (i + 1) / shares - first;
    for (std::size_t p = 1; p < pieces.size(); ++p)
      add_floats(to + first, pieces[p].flat.const_data_ptr<float>() + first, count);
  });
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor& grad = parameters[i].mutable_grad();
    if (grad.defined())
      grad.add_(sum.of[i]);
    else
      grad = sum.of[i].clone();
  }
}

}  // namespace cohort::rl
