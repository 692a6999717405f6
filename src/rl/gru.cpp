#include "rl/gru.h"

#include <cmath>
#include <string>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "models/linear.h"
#include "rl/wide_loops.h"

namespace cohort::rl {
namespace {

COHORT_WIDE void cell_row(const float* __restrict i, const float* __restrict s, const float* __restrict state,
                          float* __restrict out, float* __restrict gates, std::int64_t hidden) {
  for (std::int64_t k = 0; k < hidden; ++k) {
    const float reset = fast_sigmoid(i[k] + s[k]), update = fast_sigmoid(i[hidden + k] + s[hidden + k]),
                of_state = s[2 * hidden + k], fresh = fast_tanh(i[2 * hidden + k] + reset * of_state);
    out[k] = (1 - update) * fresh + update * state[k];
    gates[k] = reset, gates[hidden + k] = update, gates[2 * hidden + k] = fresh, gates[3 * hidden + k] = of_state;
  }
}

COHORT_WIDE void cell_row_backward(const float* __restrict d_out, const float* __restrict gates,
                                   const float* __restrict state, float* __restrict d_i, float* __restrict d_s,
                                   float* __restrict d_state, std::int64_t hidden) {
  for (std::int64_t k = 0; k < hidden; ++k) {
    const float reset = gates[k], update = gates[hidden + k], fresh = gates[2 * hidden + k],
                of_state = gates[3 * hidden + k];
    const float d_fresh = d_out[k] * (1 - update) * (1 - fresh * fresh);
    const float d_update = d_out[k] * (state[k] - fresh) * update * (1 - update);
    const float d_reset = d_fresh * of_state * reset * (1 - reset);
    d_i[k] = d_s[k] = d_reset;
    d_i[hidden + k] = d_s[hidden + k] = d_update;
    d_i[2 * hidden + k] = d_fresh;
    d_s[2 * hidden + k] = d_fresh * reset;
    d_state[k] = d_out[k] * update;
  }
}

}  // namespace

void gru_cell(const float* of_input, const float* of_state, const float* state, float* out, float* gates,
              std::int64_t n, std::int64_t hidden) {
  // Where nobody keeps them they go over each other: the loop has no condition.
  thread_local std::vector<float> not_kept;
  if (!gates) not_kept.resize(4 * hidden);
  for (std::int64_t r = 0; r < n; ++r)
    cell_row(of_input + 3 * hidden * r, of_state + 3 * hidden * r, state + hidden * r, out + hidden * r,
             gates ? gates + 4 * hidden * r : not_kept.data(), hidden);
}

void gru_cell_backward(const float* d_out, const float* gates, const float* state, float* d_of_input, float* d_of_state,
                       float* d_state, std::int64_t n, std::int64_t hidden) {
  for (std::int64_t r = 0; r < n; ++r)
    cell_row_backward(d_out + hidden * r, gates + 4 * hidden * r, state + hidden * r, d_of_input + 3 * hidden * r,
                      d_of_state + 3 * hidden * r, d_state + hidden * r, hidden);
}

Gru::Gru(std::int64_t in, std::int64_t hidden, std::int64_t layers) : hidden_(hidden) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "_l" + std::to_string(i);
    layers_.push_back({register_parameter("weight_ih" + name, at::empty({3 * hidden, i == 0 ? in : hidden})),
                       register_parameter("weight_hh" + name, at::empty({3 * hidden, hidden})),
                       register_parameter("bias_ih" + name, at::empty({3 * hidden})),
                       register_parameter("bias_hh" + name, at::empty({3 * hidden}))});
  }
}

at::Tensor Gru::begin(std::int64_t n) const {
  return at::zeros({std::ssize(layers_), n, hidden_}, layers_[0].weight_hh.options().requires_grad(false));
}

at::Tensor Gru::step(const at::Tensor& x, at::Tensor& state) const {
  const at::NoGradGuard no_grad;
  const models::RowsAloneGuard rows_alone;
  at::Tensor out = x, next = at::empty_like(state);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const at::Tensor before = state.select(0, static_cast<std::int64_t>(i));
    at::Tensor after = next.select(0, static_cast<std::int64_t>(i));
    if (before.is_cpu()) {
      const at::Tensor of_input = models::linear(out, layer.weight_ih, layer.bias_ih).contiguous(),
                       of_state = models::linear(before, layer.weight_hh, layer.bias_hh).contiguous();
      gru_cell(of_input.const_data_ptr<float>(), of_state.const_data_ptr<float>(), before.const_data_ptr<float>(),
               after.mutable_data_ptr<float>(), nullptr, before.size(0), hidden_);
    } else {
      after.copy_(at::gru_cell(out, before, layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh));
    }
    out = after;
  }
  state = next;
  return out;
}

at::Tensor Gru::forward(const at::Tensor& x, const at::Tensor& state, const at::Tensor& keep) const {
  at::Tensor in = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    at::Tensor now = state.select(0, static_cast<std::int64_t>(i));
    std::vector<at::Tensor> rows;
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      now = at::gru_cell(in[t], now * keep[t].unsqueeze(-1), layer.weight_ih, layer.weight_hh, layer.bias_ih,
                         layer.bias_hh);
      rows.push_back(now);
    }
    in = at::stack(rows);
  }
  return in;
}

void Gru::initialise(models::Initialiser& initialiser) {
  // As PyTorch's: U(±1 / sqrt H).
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_));
  for (const Layer& layer : layers_)
    for (const at::Tensor& parameter : {layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh})
      initialiser.uniform(parameter, bound);
}

}  // namespace cohort::rl
