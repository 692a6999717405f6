/// NCCL between the GPUs of one process, for DataParallel.
#pragma once
#include <memory>
#include <vector>

#include "dist/cuda_plugin.h"

namespace cohort::dist {

/// Communicators are LibTorch's: one set per list of devices, made with ncclCommInitAll on first use and kept for good.
std::unique_ptr<DeviceReducer> make_nccl_device_reducer(const std::vector<int>& devices, std::size_t buckets);

}  // namespace cohort::dist
