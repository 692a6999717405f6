#include "sim/backends/cpu/block_runner.h"

#if defined(__AVX512F__)
#include "sim/backends/cpu/block_runner_impl.h"
#include "sim/kernels/lane/lane_avx512.h"

namespace cohort::sim {

const BlockRunner* avx512_block_runner() {
  using R = RunnerOf<Avx512Lane>;
  static const BlockRunner runner{Avx512Lane::kWidth, R::workspace_bytes, R::step, R::forward, nullptr};
  return &runner;
}

}  // namespace cohort::sim
#else
namespace cohort::sim {

const BlockRunner* avx512_block_runner() {
  return nullptr;
}

}  // namespace cohort::sim
#endif
