#include "train/deterministic.h"

#include <cstdlib>

#include <ATen/Context.h>

namespace cohort::train {

void set_deterministic() {
  // cuBLAS is deterministic only with a workspace of fixed size (cuBLAS library documentation, "Results
  // reproducibility").
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Filling fresh memory with NaN is a debugging aid of the same switch that costs a pass over every buffer.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowTF32CuBLAS(false);
}

}  // namespace cohort::train
