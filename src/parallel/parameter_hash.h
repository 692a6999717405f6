/// A number that tells whether the ranks still train the same model.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cohort::parallel {

class Strategy;

/// XXH64 of a block of bytes (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed = 0);

/// Hash of all parameters' bytes in order of definition, wherever they lie. Equal exactly when all bits are (but for
/// one chance in 2^64). Copies parameters on a GPU to the host.
std::uint64_t parameter_hash(const torch::nn::Module& module);

struct HashCheck {
  std::uint64_t hash = 0;      ///< this rank's
  std::vector<int> differing;  ///< ranks whose hash is not that of the majority (on a tie: of rank 0); empty: all equal
  /// "parameters a1b2c3d4e5f60718, equal on 4 ranks", or which ranks differ.
  std::string text;
};
/// Compares the hashes of all processes' models. Collective.
HashCheck check_parameters_equal(Strategy& strategy);

}  // namespace cohort::parallel
