#include "rl/fused_mlp.h"

#include <algorithm>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "rl/wide_loops.h"

namespace cohort::rl {
namespace {

// Rows that go through all layers together: 512 x 128 floats are a quarter of a core's second-level cache.
constexpr std::int64_t kBlockRows = 512;
// Pieces have a gradient each, and every thread adds up a share of all. 48 are a whole number for most numbers of cores;
// below 256 rows a product costs more than it brings.
constexpr std::int64_t kMostPieces = 48, kLeastRows = 256;

COHORT_WIDE void elu(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = fast_elu(x[i]);
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

}  // namespace

std::optional<FusedMlp::Activation> FusedMlp::activation(const std::string& name) {
  if (name == "elu") return Activation::kElu;
  if (name == "relu") return Activation::kRelu;
  if (name == "tanh") return Activation::kTanh;
  return std::nullopt;
}

FusedMlp::FusedMlp(std::vector<std::pair<at::Tensor, at::Tensor>> layers, Activation activation,
                   std::shared_ptr<ThreadTeam> team)
    : layers_(std::move(layers)),
      activation_(activation),
      team_(std::move(team)),
      scratch_(static_cast<std::size_t>(team_->size())),
      hidden_(layers_.size() - 1) {
  compute_alone(*team_);
  for (const auto& [weight, bias] : layers_) {
    COHORT_CHECK(weight.is_cpu() && weight.scalar_type() == at::kFloat && weight.is_contiguous(),
                 "a fused MLP computes in float32 on the CPU");
    parameters_.push_back(weight);
    parameters_.push_back(bias);
    widest_ = std::max(widest_, weight.size(1));
  }
}

FusedMlp::FusedMlp(std::vector<std::pair<at::Tensor, at::Tensor>> layers, Activation activation, int threads)
    : FusedMlp(std::move(layers), activation, std::make_shared<ThreadTeam>(threads)) {}

void FusedMlp::divide(std::int64_t rows) {
  const std::int64_t count = std::clamp<std::int64_t>(rows / kLeastRows, 1, kMostPieces);
  pieces_.resize(static_cast<std::size_t>(count));
  gradients_.resize(pieces_.size());
  for (std::int64_t i = 0; i < count; ++i) {
    Piece& piece = pieces_[static_cast<std::size_t>(i)];
    piece.first = rows * i / count;
    piece.rows = rows * (i + 1) / count - piece.first;
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
  team_->for_each(std::ssize(pieces_), [&](std::int64_t i, int) {
    // Nor are versions counted: together a third of a small product's time.
    const at::AutoDispatchBelowADInplaceOrView none;
    forward_piece(pieces_[static_cast<std::size_t>(i)], out);
  });
  return out;
}

void FusedMlp::forward_piece(const Piece& piece, at::Tensor& out) {
  for (std::int64_t done = 0; done < piece.rows; done += kBlockRows) {
    const std::int64_t first = piece.first + done, rows = std::min(kBlockRows, piece.rows - done);
    at::Tensor in = x_.narrow(0, first, rows);
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

void FusedMlp::backward(const at::Tensor& gradient, at::Tensor* x_gradient) {
  const at::NoGradGuard no_grad;
  const at::Tensor own = gradient.contiguous();
  COHORT_CHECK(own.size(0) == x_.size(0), "gradients of {} rows where {} went forward", own.size(0), x_.size(0));
  if (x_gradient) *x_gradient = at::empty_like(x_);
  team_->for_each(std::ssize(pieces_), [&](std::int64_t i, int thread) {
    const at::AutoDispatchBelowADInplaceOrView none;
    const auto piece = static_cast<std::size_t>(i);
    gradients_[piece].match(parameters_);
    backward_piece(pieces_[piece], gradients_[piece], own, x_gradient, thread);
  });
  add_piece_gradients(gradients_, parameters_, *team_);
}

void FusedMlp::backward_piece(const Piece& piece, PieceGradient& sums, const at::Tensor& gradient,
                              at::Tensor* x_gradient, int thread) {
  // A thread's own, from block to block: taken anew each time it would cost more than the products.
  auto& scratch = scratch_[static_cast<std::size_t>(thread)];
  for (at::Tensor& buffer : scratch)
    if (!buffer.defined()) buffer = at::empty({kBlockRows * widest_}, x_.options());
  for (std::int64_t done = 0; done < piece.rows; done += kBlockRows) {
    const std::int64_t first = piece.first + done, rows = std::min(kBlockRows, piece.rows - done);
    at::Tensor behind = gradient.narrow(0, first, rows);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const at::Tensor in = (i == 0 ? x_ : hidden_[i - 1]).narrow(0, first, rows);
      sums.of[2 * i].addmm_(behind.t(), in);
      sums.of[2 * i + 1].add_(behind.sum(0));
      const at::Tensor& weight = layers_[i].first;
      if (i == 0) {
        if (!x_gradient) break;
        at::Tensor out = x_gradient->narrow(0, first, rows);
        at::mm_out(out, behind, weight);
        break;
      }
      at::Tensor before = scratch[i % 2].narrow(0, 0, rows * weight.size(1)).view({rows, weight.size(1)});
      at::mm_out(before, behind, weight);
      activate_backward(activation_, before, in);
      behind = before;
    }
  }
}

}  // namespace cohort::rl
