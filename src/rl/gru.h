/// Memory of a network: gated recurrent units (Cho et al., "Learning phrase representations using RNN encoder-decoder",
/// 2014, arXiv 1406.1078), in torch.nn.GRU's form, weights under its names: weight_ih_l0 (3H, in), weight_hh_l0 (3H, H),
/// bias_ih_l0, bias_hh_l0 (3H), ...; gates in the order reset, update, new.
///
///   Gru gru(in, 128, 1);
///   at::Tensor state = gru.begin(n);                          // (layers, n, H), zeros
///   const at::Tensor out = gru.step(x, state);                // (n, in) -> (n, H), and the state of after it
///   gru.forward(x, state, keep);                              // T steps at once, with autograd
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/initialise.h"

namespace cohort::rl {

class Gru : public torch::nn::Module, public models::Initialised {
 public:
  struct Layer {
    at::Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  Gru(std::int64_t in, std::int64_t hidden, std::int64_t layers);

  std::int64_t hidden_width() const { return hidden_; }
  const std::vector<Layer>& layers() const { return layers_; }
  /// The state of who has seen nothing: zeros on the weights' device.
  at::Tensor begin(std::int64_t n) const;

  /// One step, without autograd. On the CPU what a row gets does not depend on the others, as long as their number is a
  /// multiple of 16.
  at::Tensor step(const at::Tensor& x, at::Tensor& state) const;
  /// x (T, B, in), state (layers, B, H) before the first step, keep (T, B): 0 where everything is forgotten before a
  /// step, 1 elsewhere. (T, B, H).
  at::Tensor forward(const at::Tensor& x, const at::Tensor& state, const at::Tensor& keep) const;

  void initialise(models::Initialiser& initialiser) override;

 private:
  std::int64_t hidden_;
  std::vector<Layer> layers_;
};

/// One step of n rows on the CPU, of what the weights have made of input and state, both (n, 3H): `state` (n, H) before
/// it gives `out` (n, H). gates, where it is not null: (n, 4H), reset, update, new, and the state's part of new.
void gru_cell(const float* of_input, const float* of_state, const float* state, float* out, float* gates,
              std::int64_t n, std::int64_t hidden);

/// Its derivative: from that of `out` (n, H) to those of of_input and of_state, and by what `out` has of `state` alone
/// to d_state.
void gru_cell_backward(const float* d_out, const float* gates, const float* state, float* d_of_input, float* d_of_state,
                       float* d_state, std::int64_t n, std::int64_t hidden);

}  // namespace cohort::rl
