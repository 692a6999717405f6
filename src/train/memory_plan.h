/// What the training of an RDT would keep on a device, from the shapes of its tensors alone: for models that do not fit
/// the machine one plans on, such as RDT-1B on one GPU of 24 GB. `cohort estimate rdt --shapes`.
///
///   const MemoryPlan plan = plan_memory(rdt_settings, {.train = settings.train, .zero = 2, .devices = 2});
///   plan.parts.total();      // bytes on the fullest device
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "policies/rdt/rdt_policy.h"
#include "train/estimate.h"

namespace cohort::train {

/// Elements of each parameter of an RDT policy.
struct RdtShapes {
  std::vector<std::int64_t> trained, frozen;
  std::int64_t buffers = 0;  ///< elements of float32 buffers, in all
};
RdtShapes rdt_shapes(const models::RdtSettings& model);

struct PlanRequest {
  TrainSettings train;
  int zero = 0;
  int devices = 1;
};

struct MemoryPlan {
  MemoryParts parts;  ///< with train.batch_size samples a device; no loader, no checkpoint (they are the host's)
  double activations_fixed = 0, activations_per_sample = 0;
  std::int64_t largest_batch = 0;  ///< for plan_memory's limit
};

/// Weights, gradients, moments and averages are counted. Activations are what autograd saves of each layer and the
/// most that one block needs beside (up to a fifth off, see tests/train/memory_plan_test.cpp); instructions whose length
/// is not known are as long as they may be. `limit`: bytes of a device; `program`: what a process takes beside tensors.
MemoryPlan plan_memory(const models::RdtSettings& model, const PlanRequest& request, double limit = 0,
                       double program = 0);

/// The plan on 1, 2, 4 and 8 devices, as text; `limit` in bytes.
std::string shapes_text(const models::RdtSettings& model, const TrainSettings& train, int zero, double limit);

}  // namespace cohort::train
