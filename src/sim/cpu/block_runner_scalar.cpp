#include "sim/cpu/block_runner_impl.h"
#include "sim/kernels/lane.h"

namespace cohort::sim {

const BlockRunner& scalar_block_runner() {
  using R = RunnerOf<ScalarLane>;
  static const BlockRunner runner{ScalarLane::kWidth, R::workspace_bytes, R::step, R::forward, R::inverse_weights};
  return runner;
}

}  // namespace cohort::sim
