/// What a kernel launch on another device needs besides tensors.
#pragma once
#include <ATen/core/Tensor.h>

namespace cohort::models {

/// `ids` ((n) int64 on the CPU) on `device`. The last copy of each thread is kept: the dropout layers of one forward
/// pass ask for the same ids some ten times, and one copy per batch is enough.
at::Tensor ids_on_device(const at::Tensor& ids, at::Device device);

/// The stream that operations of this thread use on `device`: a cudaStream_t for CUDA.
void* current_stream(at::Device device);

}  // namespace cohort::models
