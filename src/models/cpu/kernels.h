/// Kernels that are compiled several times for different instruction sets and picked once at run time. Every build
/// gives the same bits: lanes are written out, sums are kept in 16 partial sums on every machine, contraction is off.
#pragma once
#include <cstdint>

#include "models/dropout_mask.h"

namespace cohort::models::cpu {

enum class Element : std::uint8_t { kFloat32, kBFloat16 };

/// Some tiles of one sample: out = residual + (keep ? in * scale : 0); without a residual, 0 + ….
/// Arithmetic is float32; bfloat16 is rounded to nearest even on the way out. in, residual and out may be the same
/// memory.
struct DropoutTiles {
  RandomStream::Fixed stream;  ///< RandomStream(seed, kDropout, sample id, step).fixed()
  std::uint32_t layer;         ///< of the model
  std::uint32_t threshold;     ///< dropout_threshold(p)
  float scale;                 ///< dropout_scale(threshold)
  Element in_type;             ///< element type of in
  Element residual_type;       ///< element type of residual
  Element out_type;            ///< element type of out
  std::int64_t first_tile;     ///< tiles [first_tile, last_tile) of the sample are written
  std::int64_t last_tile;
  std::int64_t count;    ///< elements of the sample; the last tile may be partly filled
  const void* in;        ///< (count) the sample's elements
  const void* residual;  ///< (count) or null
  void* out;             ///< (count)
};

/// ProbSparse measurement of some queries of one (batch, head):
/// out[i] = max_j q_i·k[samples[i][j]] - sum_j q_i·k[samples[i][j]] / n_key.
struct SparsityRows {
  const float* q;               ///< (n_query, width), row stride q_stride
  const float* k;               ///< (n_key, width), row stride k_stride
  const std::int64_t* samples;  ///< (n_query, n_sample)
  std::int64_t n_query, n_key, n_sample, width;
  std::int64_t q_stride, k_stride;  ///< elements
  float* out;                       ///< (n_query)
};

struct Kernels {
  const char* name;  ///< "avx512", "avx2", "portable"
  void (*dropout)(const DropoutTiles&);
  void (*sparsity)(const SparsityRows&);
};

/// The fastest build that this processor runs.
const Kernels& kernels();

/// All builds that this processor runs, fastest first; tests compare them.
struct KernelList {
  const Kernels* const* begin_;
  int size_;
  const Kernels* const* begin() const { return begin_; }
  const Kernels* const* end() const { return begin_ + size_; }
};
KernelList all_kernels();

}  // namespace cohort::models::cpu
