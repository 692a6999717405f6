#include "rl/fused_gru.h"

#include <algorithm>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"

namespace cohort::rl {
namespace {

// A step's product has as many rows as its piece has environments.
constexpr std::int64_t kMostGruPieces = 48, kLeastEnvironments = 32;

enum Parameter : std::size_t { kWeightIh, kWeightHh, kBiasIh, kBiasHh };

void make_room(at::Tensor& tensor, at::IntArrayRef sizes, const at::TensorOptions& options) {
  if (!tensor.defined() || tensor.sizes() != sizes) tensor = at::empty(sizes, options);
}

}  // namespace

FusedGru::FusedGru(const Gru& gru, std::shared_ptr<ThreadTeam> team)
    : hidden_(gru.hidden_width()), team_(std::move(team)) {
  for (const Gru::Layer& layer : gru.layers()) {
    COHORT_CHECK(layer.weight_ih.is_cpu() && layer.weight_ih.scalar_type() == at::kFloat,
                 "a fused GRU computes in float32 on the CPU");
    layers_.push_back({{layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh}, {}, {}});
  }
}

at::Tensor FusedGru::forward(const at::Tensor& x, const at::Tensor& state, const at::Tensor& keep) {
  const at::NoGradGuard no_grad;
  const std::int64_t steps = x.size(0), n = x.size(1),
                     count = std::clamp<std::int64_t>(n / kLeastEnvironments, 1, kMostGruPieces);
  at::Tensor in = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerPass& layer = layers_[i];
    layer.pieces.resize(static_cast<std::size_t>(count));
    layer.gradients.resize(layer.pieces.size());
    const at::Tensor begin = state.select(0, static_cast<std::int64_t>(i));
    at::Tensor out = at::empty({steps, n, hidden_}, begin.options());
    team_->for_each(count, [&](std::int64_t p, int) {
      const at::AutoDispatchBelowADInplaceOrView none;
      Piece& piece = layer.pieces[static_cast<std::size_t>(p)];
      piece.first = n * p / count;
      piece.count = n * (p + 1) / count - piece.first;
      forward_piece(layer, piece, in, begin, keep, out);
    });
    in = out;
  }
  return in;
}

void FusedGru::forward_piece(const LayerPass& layer, Piece& piece, const at::Tensor& x, const at::Tensor& state,
                             const at::Tensor& keep, at::Tensor& out) {
  const std::int64_t steps = x.size(0), count = piece.count, rows = steps * count;
  const at::TensorOptions options = state.options();
  piece.x = x.narrow(1, piece.first, count).reshape({rows, x.size(2)});
  piece.keep = keep.narrow(1, piece.first, count).unsqueeze(-1).contiguous();
  make_room(piece.before, {rows, hidden_}, options);
  make_room(piece.of_input, {rows, 3 * hidden_}, options);
  make_room(piece.of_state, {count, 3 * hidden_}, options);
  make_room(piece.gates, {rows, 4 * hidden_}, options);
  make_room(piece.d_out, {count, hidden_}, options);
  const auto& w = layer.parameters;
  at::addmm_out(piece.of_input, w[kBiasIh], piece.x, w[kWeightIh].t());
  at::Tensor last = state.narrow(0, piece.first, count);
  at::Tensor& after = piece.d_out;  // room that only backward() needs
  for (std::int64_t t = 0; t < steps; ++t) {
    at::Tensor before = piece.before.narrow(0, t * count, count);
    at::mul_out(before, last, piece.keep[t]);
    at::addmm_out(piece.of_state, w[kBiasHh], before, w[kWeightHh].t());
    gru_cell(piece.of_input.const_data_ptr<float>() + 3 * hidden_ * t * count, piece.of_state.const_data_ptr<float>(),
             before.const_data_ptr<float>(), after.mutable_data_ptr<float>(),
             piece.gates.mutable_data_ptr<float>() + 4 * hidden_ * t * count, count, hidden_);
    out[t].narrow(0, piece.first, count).copy_(after);
    last = after;
  }
}

void FusedGru::backward(const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  at::Tensor behind = gradient;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    LayerPass& layer = layers_[i];
    at::Tensor before = i > 0 ? at::empty_like(behind, at::MemoryFormat::Contiguous) : at::Tensor();
    team_->for_each(std::ssize(layer.pieces), [&](std::int64_t p, int) {
      const at::AutoDispatchBelowADInplaceOrView none;
      const auto piece = static_cast<std::size_t>(p);
      layer.gradients[piece].match(layer.parameters);
      backward_piece(layer, layer.pieces[piece], layer.gradients[piece], behind, i > 0 ? &before : nullptr);
    });
    add_piece_gradients(layer.gradients, layer.parameters, *team_);
    behind = before;
  }
}

void FusedGru::backward_piece(const LayerPass& layer, Piece& piece, PieceGradient& sums, const at::Tensor& gradient,
                              at::Tensor* x_gradient) {
  const std::int64_t steps = gradient.size(0), count = piece.count, rows = steps * count;
  COHORT_CHECK(rows == piece.x.size(0), "gradients of {} rows where {} went forward", rows, piece.x.size(0));
  const at::TensorOptions options = piece.before.options();
  make_room(piece.d_of_input, {rows, 3 * hidden_}, options);
  make_room(piece.d_of_state, {rows, 3 * hidden_}, options);
  make_room(piece.d_state, {count, hidden_}, options);
  const auto& w = layer.parameters;
  piece.d_state.zero_();
  for (std::int64_t t = steps; t-- > 0;) {
    at::add_out(piece.d_out, gradient[t].narrow(0, piece.first, count), piece.d_state);
    gru_cell_backward(piece.d_out.const_data_ptr<float>(),
                      piece.gates.const_data_ptr<float>() + 4 * hidden_ * t * count,
                      piece.before.const_data_ptr<float>() + hidden_ * t * count,
                      piece.d_of_input.mutable_data_ptr<float>() + 3 * hidden_ * t * count,
                      piece.d_of_state.mutable_data_ptr<float>() + 3 * hidden_ * t * count,
                      piece.d_state.mutable_data_ptr<float>(), count, hidden_);
    piece.d_state.addmm_(piece.d_of_state.narrow(0, t * count, count), w[kWeightHh]);
    piece.d_state.mul_(piece.keep[t]);
  }
  sums.of[kWeightIh].addmm_(piece.d_of_input.t(), piece.x);
  sums.of[kWeightHh].addmm_(piece.d_of_state.t(), piece.before);
  sums.of[kBiasIh].add_(piece.d_of_input.sum(0));
  sums.of[kBiasHh].add_(piece.d_of_state.sum(0));
  if (!x_gradient) return;
  const at::Tensor of_piece = at::mm(piece.d_of_input, w[kWeightIh]);
  x_gradient->narrow(1, piece.first, count).copy_(of_piece.view({steps, count, of_piece.size(1)}));
}

}  // namespace cohort::rl
