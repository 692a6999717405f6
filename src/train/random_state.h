/// LibTorch's random generators: seeding, saving, restoring. Cohort's own layers do not use them (see core/philox.h);
/// models that users bring may.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "weights/named_tensors.h"

namespace cohort::parallel {
class Strategy;
}

namespace cohort::train {

/// Seeds the generators for a rank's training: another stream on each rank, and after `step` steps another than at the
/// start.
void seed_rank(std::uint64_t seed, int rank, std::int64_t step);

/// States of the generators that work on `device` may use: "cpu", and "cuda" for a CUDA device. uint8 on the CPU.
weights::NamedTensors random_state(c10::Device device);
/// Sets what random_state(device) returned; "cuda" is left out where `device` is none.
void restore_random_state(const weights::NamedTensors& state, c10::Device device);

/// Byte strings of the same length from all processes, in rank order. Collective.
std::vector<std::string> gather_over_ranks(parallel::Strategy& strategy, const std::string& bytes);

}  // namespace cohort::train
