/// A fingerprint of weights: the evidence that all ranks hold the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "train/named_tensors.h"

namespace cohort::parallel {
class Strategy;
}

namespace cohort::train {

/// 64-bit hash of bytes (multiply and rotate on four lanes of 64 bits; not cryptographic). Continues from `seed`.
std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed);

/// Hash of the tensors' shapes and bits, in order; names do not count. Tensors on a device are copied to the host one
/// by one.
std::uint64_t hash_tensors(const NamedTensors& tensors);

/// Compares a hash over all processes; every process gets the same answer. Collective.
bool equal_on_all_ranks(parallel::Strategy& strategy, std::uint64_t hash);

}  // namespace cohort::train
