/// Which sample goes where: PyTorch's DistributedSampler, index for index, and the global order that it deals out.
#pragma once
#include <cstdint>
#include <vector>

namespace cohort::data {

/// torch.randperm(n, generator=torch.Generator().manual_seed(seed)) on the CPU: a Fisher-Yates shuffle driven by
/// MT19937. n < 2^32 / 20, beyond which PyTorch draws 64-bit numbers; throws Error for more.
std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed);

struct SamplerSettings {
  std::int64_t world_size = 1;  ///< ranks that share the data
  std::int64_t rank = 0;
  bool shuffle = true;     ///< a new permutation per epoch, from seed + epoch
  bool drop_last = false;  ///< false: the order is filled up from its beginning until it divides by world_size
  std::uint64_t seed = 0;
};

/// What one rank reads in (the rest of) an epoch.
struct EpochShare {
  std::vector<std::int64_t> indices;  ///< into the data set, in order
  std::vector<std::int64_t>
      sample_ids;           ///< unique over the run: place in the global order of all epochs; keys randomness
  std::int64_t padded = 0;  ///< how many of the indices are repeats that fill up the order
};

/// An epoch is one global order of all samples: a function of seed and epoch only. Rank r reads places r, r +
/// world_size, r + 2 world_size, ... of it, so that every global step consumes the next world_size × batch places,
/// however many ranks there are.
class DistributedSampler {
 public:
  /// Throws Error for an empty data set or a rank outside [0, world_size).
  DistributedSampler(std::int64_t dataset_size, SamplerSettings settings);

  /// Samples per rank and epoch: len(sampler) in PyTorch.
  std::int64_t size() const { return share_size(0); }

  /// The whole epoch's order over the data set, without padding.
  std::vector<std::int64_t> global_order(std::uint64_t epoch) const;

  /// This rank's share of the places [start, end) of the epoch. With start = 0, share(e).indices is what PyTorch's
  /// sampler yields after set_epoch(e). A run that stopped after `start` samples (over all ranks) continues with it on
  /// any number of ranks. Throws Error for a start outside [0, dataset size].
  EpochShare share(std::uint64_t epoch, std::int64_t start = 0) const;

 private:
  std::int64_t share_size(std::int64_t start) const;

  std::int64_t dataset_size_;
  SamplerSettings settings_;
};

}  // namespace cohort::data
