#include "sim/backends/cpu/block_runner.h"

#if defined(__AVX2__)
#include "sim/backends/cpu/block_runner_impl.h"
#include "sim/kernels/lane/lane_avx2.h"

namespace cohort::sim {

const BlockRunner* avx2_block_runner() {
  using R = RunnerOf<Avx2Lane>;
  static const BlockRunner runner{Avx2Lane::kWidth, R::workspace_bytes, R::step, R::forward, nullptr};
  return &runner;
}

}  // namespace cohort::sim
#else
namespace cohort::sim {

const BlockRunner* avx2_block_runner() {
  return nullptr;
}

}  // namespace cohort::sim
#endif
