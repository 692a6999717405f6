/// LibTorch's random generators: seeding, saving, restoring. Cohort's own layers do not use them (see core/philox.h);
/// models that users bring may.
#pragma once
#include <cstdint>

#include "train/named_tensors.h"

namespace cohort::parallel {
class Strategy;
}

namespace cohort::train {

/// Seeds all of LibTorch's generators. Before a model is made: the same seed on every rank.
void seed_everything(std::uint64_t seed);

/// Seeds the generators for a rank's training: another stream on each rank, and after `step` steps another than at the
/// start.
void seed_rank(std::uint64_t seed, int rank, std::int64_t step);

/// States of this process's generators: "cpu", and "cuda_<i>" for every visible device when `with_cuda`. uint8 on the
/// CPU.
NamedTensors random_state(bool with_cuda);
/// Sets what random_state() returned; states of devices that are absent are ignored.
void restore_random_state(const NamedTensors& state);

/// Byte strings of the same length from all processes: row r of the result, (world_size, n) uint8 on the CPU, is rank
/// r's. Collective.
at::Tensor gather_over_ranks(parallel::Strategy& strategy, const at::Tensor& bytes);

}  // namespace cohort::train
