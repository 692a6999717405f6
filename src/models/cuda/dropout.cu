// Dropout for CUDA. A thread makes one Philox call, which decides eight elements of one sample that lie 16 apart: the
// 16 threads of a tile read and write 16 neighbouring elements at a time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "models/cuda/dropout.h"
#include "models/dropout_mask.h"

namespace cohort::models::cuda {
namespace {

__device__ inline float to_float(float v) {
  return v;
}
__device__ inline float to_float(__nv_bfloat16 v) {
  return __bfloat162float(v);
}
__device__ inline float to_float(__half v) {
  return __half2float(v);
}
__device__ inline void put(float* p, float v) {
  *p = v;
}
__device__ inline void put(__nv_bfloat16* p, float v) {
  *p = __float2bfloat16_rn(v);
}
__device__ inline void put(__half* p, float v) {
  *p = __float2half_rn(v);
}

constexpr int kThreads = 256;

/// Philox calls of one sample: its tiles, 16 each.
__host__ __device__ inline std::int64_t calls_per_sample(std::int64_t per_sample) {
  return (per_sample + kDropoutTile - 1) / kDropoutTile * kDropoutLanes;
}

template <class In, class Residual, class Out>
__global__ void dropout_kernel(std::int64_t n_call, DropoutBatch b) {
  const std::int64_t call = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (call >= n_call) return;
  const std::int64_t per_sample = calls_per_sample(b.per_sample);
  const std::int64_t sample = call / per_sample;
  const std::int64_t within = call % per_sample;
  const std::int64_t tile = within / kDropoutLanes;
  const auto lane = static_cast<std::uint32_t>(within % kDropoutLanes);
  const RandomStream stream(b.seed, RandomPurpose::kDropout, static_cast<std::uint64_t>(b.sample_ids[sample]), b.step);
  const Philox4 random = stream.at(dropout_index(b.layer, static_cast<std::uint64_t>(tile), lane));
  const auto* in = static_cast<const In*>(b.in) + sample * b.per_sample;
  const auto* residual = static_cast<const Residual*>(b.residual) + sample * b.per_sample;
  auto* out = static_cast<Out*>(b.out) + sample * b.per_sample;
  for (int slot = 0; slot < kDropoutTile / kDropoutLanes; ++slot) {
    const std::int64_t i = tile * kDropoutTile + slot * kDropoutLanes + lane;
    if (i >= b.per_sample) return;
    const float kept = dropout_bits(random, slot) >= b.threshold ? to_float(in[i]) * b.scale : 0.0f;
    put(out + i, b.residual == nullptr ? kept : to_float(residual[i]) + kept);
  }
}

template <class In, class Residual, class Out>
const char* launch(const DropoutBatch& batch, cudaStream_t stream) {
  const std::int64_t n_call = batch.n_sample * calls_per_sample(batch.per_sample);
  if (n_call == 0) return nullptr;
  const std::int64_t blocks = (n_call + kThreads - 1) / kThreads;
  dropout_kernel<In, Residual, Out><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(n_call, batch);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

template <class Low>
const char* launch_low(const DropoutBatch& batch, Element low, cudaStream_t stream) {
  const bool in_low = batch.in_type == low, out_low = batch.out_type == low;
  const bool residual_low = batch.residual != nullptr && batch.residual_type == low;
  if (in_low && out_low && (residual_low || batch.residual == nullptr)) return launch<Low, Low, Low>(batch, stream);
  if (in_low && !out_low && !residual_low) return launch<Low, float, float>(batch, stream);
  if (!in_low && out_low && batch.residual == nullptr) return launch<float, float, Low>(batch, stream);
  return "no kernel for this combination of element types";
}

}  // namespace

bool available() {
  return true;
}

const char* dropout(const DropoutBatch& batch, void* stream_pointer) {
  auto* stream = static_cast<cudaStream_t>(stream_pointer);
  const auto uses = [&](Element type) {
    return batch.in_type == type || batch.out_type == type ||
           (batch.residual != nullptr && batch.residual_type == type);
  };
  if (uses(Element::kBFloat16)) return launch_low<__nv_bfloat16>(batch, Element::kBFloat16, stream);
  if (uses(Element::kFloat16)) return launch_low<__half>(batch, Element::kFloat16, stream);
  return launch<float, float, float>(batch, stream);
}

}  // namespace cohort::models::cuda
