/// A model in a device's memory: one piece, its arrays one behind the other.
#pragma once
#include "sim/backends/cuda/memory.h"
#include "sim/host/model.h"

namespace cohort::sim::cuda {

/// Bytes of the model on a device.
std::size_t model_bytes(const Model& model);

/// Copies the arrays; `view` gets the model's sizes and pointers into the returned memory.
DeviceMemory upload_model(const Model& model, int device, void* stream, ModelView& view);

}  // namespace cohort::sim::cuda
