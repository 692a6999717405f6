/// Gradients of a batch's pieces, of which several threads have one each, and their sum: in the order of the pieces,
/// whichever thread had them. Whatever a piece is computed by must not depend on the thread either: compute_alone().
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/thread_team.h"

namespace cohort::rl {

/// From now on LibTorch uses no threads of its own within the team's, the caller's among them. A new thread has OpenMP's
/// number, not the one that at::set_num_threads gave its maker, and a product shared by two threads has other bits.
void compute_alone(ThreadTeam& team);

struct PieceGradient {
  at::Tensor flat;             ///< all side by side
  std::vector<at::Tensor> of;  ///< of each parameter: views of it
  /// Makes it zeros, one for each number of `parameters`.
  void match(const std::vector<at::Tensor>& parameters);
};

/// Adds the sum over the pieces to .grad of each parameter. Uses up the first piece's.
void add_piece_gradients(std::vector<PieceGradient>& pieces, const std::vector<at::Tensor>& parameters,
                         ThreadTeam& team);

}  // namespace cohort::rl
