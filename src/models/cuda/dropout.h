/// Dropout on a CUDA device by the same definition (models/dropout_mask.h). Plain pointers: neither CUDA's nor
/// LibTorch's headers are needed here. Where no CUDA compiler was found, cuda/absent.cpp stands in for cuda/dropout.cu.
#pragma once
#include <cstdint>

namespace cohort::models::cuda {

enum class Element : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

/// out = residual + (keep ? in * scale : 0) for all elements of all samples; without a residual, 0 + ….
/// Arithmetic is float32. in, residual and out may be the same memory.
struct DropoutBatch {
  std::int64_t n_sample;
  std::int64_t per_sample;         ///< elements of one sample
  const std::int64_t* sample_ids;  ///< (n_sample) in device memory
  std::uint64_t seed, step;
  std::uint32_t layer;
  std::uint32_t threshold;  ///< dropout_threshold(p)
  float scale;              ///< dropout_scale(threshold)
  Element in_type, residual_type,
      out_type;          ///< residual is of in's type or float32; out of in's, residual's, or in is float32
  const void* in;        ///< (n_sample, per_sample) in device memory
  const void* residual;  ///< (n_sample, per_sample) or null
  void* out;             ///< (n_sample, per_sample)
};

/// True when this build has the kernels.
bool available();

/// Launches on `stream` (a cudaStream_t) of the current device. Returns null, or why it could not.
const char* dropout(const DropoutBatch& batch, void* stream);

}  // namespace cohort::models::cuda
