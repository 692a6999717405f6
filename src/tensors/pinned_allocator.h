/// Page-locked host memory for the loader: copies from it to a GPU run at full speed and beside the computation.
#pragma once
#include "core/allocator.h"

namespace cohort::tensors {

/// The allocator that suits the device on which batches will be used: page-locked memory for a CUDA device, from
/// LibTorch's caching host allocator; plain aligned memory otherwise, also when CUDA cannot be used. Lives as long as
/// the process.
Allocator& batch_allocator(bool for_cuda);

}  // namespace cohort::tensors
