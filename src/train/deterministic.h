/// The same bits in every run on one machine, also on a GPU.
#pragma once

namespace cohort::train {

/// Deterministic algorithms only (an operation without one throws), no cuDNN benchmarking, no TF32. Sets
/// CUBLAS_WORKSPACE_CONFIG when it is unset; call it before the first CUDA operation. Process-wide.
void set_deterministic();

}  // namespace cohort::train
