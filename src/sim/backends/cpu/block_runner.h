/// What a lane width offers to the CPU engine: sizes, and functions that run blocks. One table per build of
/// block_runner_impl.h.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

struct BlockRunner {
  int width;  ///< environments per block
  /// Bytes of a thread's workspace.
  unsigned long long (*workspace_bytes)(const ModelView& m);
  /// Steps the environments [first, last), both multiples of 16, `steps` times. workspace: 64-byte aligned.
  void (*step)(const ModelView& m, const DataView& d, int first, int last, int steps, void* workspace);
  /// Computes the derived fields of [first, last).
  void (*forward)(const ModelView& m, const DataView& d, int first, int last, void* workspace);
  /// Writes the inverse weights (inverse_weights.h) of one environment's parameters, one float at a time; null
  /// for the wider ones. inverse: nv * nv values of scratch.
  void (*inverse_weights)(const ModelView& m, const DataView& d, int env, void* workspace, float* inverse, float* out);
};

const BlockRunner& scalar_block_runner();
/// nullptr where this build lacks the width (CMake's COHORT_LANES).
const BlockRunner* avx2_block_runner();
const BlockRunner* avx512_block_runner();

}  // namespace cohort::sim
