/// Gradients of a batch's pieces, of which several threads have one each, and their sum: in the order of the pieces,
/// whichever thread had them.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/thread_team.h"

namespace cohort::rl {

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
