/// The shapes of an RDT policy's tensors, and what a training step keeps of its activations.
#pragma once
#include "policies/memory_shapes.h"
#include "policies/rdt/rdt_policy.h"

namespace cohort::policies {

/// Activations are what autograd saves of each layer and the most that one block needs beside; instructions whose length
/// is not known are as long as they may be.
MemoryShapes rdt_shapes(const models::RdtSettings& model);

}  // namespace cohort::policies
