/// The training pass of a Gru without autograd: environments are divided into pieces, each of which goes through all
/// steps of a layer and back on one thread, forwards with the gates kept, backwards through time by the chain rule.
///
///   FusedGru pass(gru, team);
///   const at::Tensor out = pass.forward(x, state, keep);    // as Gru::forward; on the CPU
///   pass.backward(d_loss_d_out);                            // (T, B, H); adds to .grad of the weights
///
/// The same bits for any number of threads (see FusedMlp).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/thread_team.h"
#include "rl/gru.h"
#include "rl/piece_gradient.h"

namespace cohort::rl {

class FusedGru {
 public:
  FusedGru(const Gru& gru, std::shared_ptr<ThreadTeam> team);

  at::Tensor forward(const at::Tensor& x, const at::Tensor& state, const at::Tensor& keep);
  /// Of the last forward(). What comes before its first step has no gradient, nor has x.
  void backward(const at::Tensor& gradient);

 private:
  /// A layer's part of the batch: environments [first, first + count), rows in the order (step, environment).
  struct Piece {
    std::int64_t first = 0, count = 0;
    at::Tensor x, keep;                    // (T count, in), (T, count, 1)
    at::Tensor before;                     // (T count, H): the state that a step begins with
    at::Tensor of_input, of_state, gates;  // (T count, 3H), (count, 3H), (T count, 4H)
    at::Tensor d_of_input, d_of_state;     // (T count, 3H)
    at::Tensor d_out, d_state;             // (count, H)
  };
  struct LayerPass {
    std::vector<at::Tensor> parameters;
    std::vector<Piece> pieces;
    std::vector<PieceGradient> gradients;
  };
  void forward_piece(const LayerPass& layer, Piece& piece, const at::Tensor& x, const at::Tensor& state,
                     const at::Tensor& keep, at::Tensor& out);
  void backward_piece(const LayerPass& layer, Piece& piece, PieceGradient& sums, const at::Tensor& gradient,
                      at::Tensor* x_gradient);

  std::int64_t hidden_;
  std::shared_ptr<ThreadTeam> team_;
  std::vector<LayerPass> layers_;
};

}  // namespace cohort::rl
