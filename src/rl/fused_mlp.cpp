#include "rl/fused_mlp.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/threads.h"

namespace cohort::rl {
namespace {

// Rows that go through all layers together: 512 x 128 floats are a quarter of a core's second-level cache.
constexpr std::int64_t kBlockRows = 512;
// Pieces have a gradient each; more of them would cost more to add up than threads gain.
constexpr std::int64_t kMostPieces = 8, kLeastRows = 64;

// The loops below are compiled for several processors, of which the widest that runs is chosen at the start.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define COHORT_WIDE __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COHORT_WIDE
#endif

/// e^x - 1 for x <= 0, to 1e-7: e^x = 2^n e^r with |r| <= ln 2 / 2 and Taylor's polynomial of e^r - 1.
[[gnu::always_inline]] inline float expm1_below_zero(float x) {
  constexpr float kRound = 12582912;  // 1.5 * 2^23: what is added to it becomes a whole number
  const float bounded = x < -20 ? -20 : x;
  const float shifted = bounded * 1.44269504f + kRound, n = shifted - kRound;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  const float less =
      r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040)))))));
  // The whole number stands in the lowest bits of the sum.
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127) << 23);
  return power * less + (power - 1);
}

COHORT_WIDE void elu(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float below = expm1_below_zero(x[i] > 0 ? 0 : x[i]);
    x[i] = x[i] > 0 ? x[i] : below;
  }
}
/// grad times the derivative, from what came out: 1 above zero, out + 1 below.
COHORT_WIDE void elu_backward(float* grad, const float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) grad[i] *= out[i] > 0 ? 1 : out[i] + 1;
}
COHORT_WIDE void relu(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}
COHORT_WIDE void relu_backward(float* grad, const float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) grad[i] = out[i] > 0 ? grad[i] : 0;
}
COHORT_WIDE void tanh_backward(float* grad, const float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) grad[i] *= 1 - out[i] * out[i];
}

void activate(FusedMlp::Activation activation, at::Tensor& x) {
  auto* data = x.mutable_data_ptr<float>();
  if (activation == FusedMlp::Activation::kElu)
    elu(data, x.numel());
  else if (activation == FusedMlp::Activation::kRelu)
    relu(data, x.numel());
  else
    x.tanh_();
}

void activate_backward(FusedMlp::Activation activation, at::Tensor& gradient, const at::Tensor& out) {
  auto* data = gradient.mutable_data_ptr<float>();
  const auto* came = out.const_data_ptr<float>();
  if (activation == FusedMlp::Activation::kElu)
    elu_backward(data, came, gradient.numel());
  else if (activation == FusedMlp::Activation::kRelu)
    relu_backward(data, came, gradient.numel());
  else
    tanh_backward(data, came, gradient.numel());
}

void add_to_grad(const at::Tensor& parameter, const at::Tensor& gradient) {
  at::Tensor& grad = parameter.mutable_grad();
  if (grad.defined())
    grad.add_(gradient);
  else
    grad = gradient.clone();
}

}  // namespace

std::optional<FusedMlp::Activation> FusedMlp::activation(const std::string& name) {
  if (name == "elu") return Activation::kElu;
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  return std::nullopt;
}

FusedMlp::FusedMlp(std::vector<std::pair<at::Tensor, at::Tensor>> layers, Activation activation, int threads)
    : layers_(std::move(layers)), activation_(activation), threads_(threads), hidden_(layers_.size() - 1) {
  for (const auto& [weight, bias] : layers_)
    COHORT_CHECK(weight.is_cpu() && weight.scalar_type() == at::kFloat && weight.is_contiguous(),
                 "a fused MLP computes in float32 on the CPU");
}

void FusedMlp::divide(std::int64_t rows) {
  const std::int64_t count = std::clamp<std::int64_t>(rows / kLeastRows, 1, kMostPieces);
  pieces_.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Piece& piece = pieces_[static_cast<std::size_t>(i)];
    piece.first = rows * i / count;
    piece.rows = rows * (i + 1) / count - piece.first;
    if (!piece.weight_grad.empty()) continue;
    for (const auto& [weight, bias] : layers_) {
      piece.weight_grad.push_back(at::empty(weight.sizes(), weight.options().requires_grad(false)));
      piece.bias_grad.push_back(at::empty(bias.sizes(), bias.options().requires_grad(false)));
    }
  }
}

at::Tensor FusedMlp::forward(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  x_ = x.contiguous();
  const std::int64_t rows = x.size(0);
  divide(rows);
  for (std::size_t i = 0; i < hidden_.size(); ++i)
    if (!hidden_[i].defined() || hidden_[i].size(0) != rows)
      hidden_[i] = at::empty({rows, layers_[i].first.size(0)}, x_.options());
  at::Tensor out = at::empty({rows, layers_.back().first.size(0)}, x_.options());
  parallel_for(static_cast<std::int64_t>(pieces_.size()), threads_, [&](std::int64_t i) {
    const at::NoGradGuard none;
    forward_piece(pieces_[static_cast<std::size_t>(i)], x_, out);
  });
  return out;
}

void FusedMlp::forward_piece(const Piece& piece, const at::Tensor& x, at::Tensor& out) {
  for (std::int64_t done = 0; done < piece.rows; done += kBlockRows) {
    const std::int64_t first = piece.first + done, rows = std::min(kBlockRows, piece.rows - done);
    at::Tensor in = x.narrow(0, first, rows);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto& [weight, bias] = layers_[i];
      const bool last = i + 1 == layers_.size();
      at::Tensor next = (last ? out : hidden_[i]).narrow(0, first, rows);
      at::addmm_out(next, bias, in, weight.t());
      if (!last) activate(activation_, next);
      in = next;
    }
  }
}

void FusedMlp::backward(const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const at::Tensor own = gradient.contiguous();
  COHORT_CHECK(own.size(0) == x_.size(0), "gradients of {} rows where {} went forward", own.size(0), x_.size(0));
  parallel_for(static_cast<std::int64_t>(pieces_.size()), threads_, [&](std::int64_t i) {
    const at::NoGradGuard none;
    backward_piece(pieces_[static_cast<std::size_t>(i)], own);
  });
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (std::size_t p = 1; p < pieces_.size(); ++p) {
      pieces_[0].weight_grad[i].add_(pieces_[p].weight_grad[i]);
      pieces_[0].bias_grad[i].add_(pieces_[p].bias_grad[i]);
    }
    add_to_grad(layers_[i].first, pieces_[0].weight_grad[i]);
    add_to_grad(layers_[i].second, pieces_[0].bias_grad[i]);
  }
}

void FusedMlp::backward_piece(Piece& piece, const at::Tensor& gradient) {
  for (std::size_t i = 0; i < layers_.size(); ++i) piece.weight_grad[i].zero_(), piece.bias_grad[i].zero_();
  for (std::int64_t done = 0; done < piece.rows; done += kBlockRows) {
    const std::int64_t first = piece.first + done, rows = std::min(kBlockRows, piece.rows - done);
    at::Tensor behind = gradient.narrow(0, first, rows);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const at::Tensor in = (i == 0 ? x_ : hidden_[i - 1]).narrow(0, first, rows);
      piece.weight_grad[i].addmm_(behind.t(), in);
      piece.bias_grad[i].add_(behind.sum(0));
      if (i == 0) break;
      at::Tensor before = at::mm(behind, layers_[i].first);
      activate_backward(activation_, before, in);
      behind = before;
    }
  }
}

}  // namespace cohort::rl
