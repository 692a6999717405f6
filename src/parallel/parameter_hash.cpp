#include "parallel/parameter_hash.h"

#include <map>

#define XXH_INLINE_ALL  // the header alone: nothing to link
#include <xxhash.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "parallel/module_layout.h"
#include "parallel/strategy.h"

namespace cohort::parallel {

std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed) {
  return XXH64(data, bytes, seed);
}

std::uint64_t parameter_hash(const torch::nn::Module& module) {
  std::uint64_t hash = 0;
  for (const NamedTensor& p : parameters_of(module)) {
    const at::Tensor host = p.tensor.detach().cpu().contiguous();
    hash = xxh64(host.const_data_ptr(), host.nbytes(), hash);
  }
  return hash;
}

HashCheck check_parameters_equal(Strategy& strategy) {
  HashCheck check;
  check.hash = parameter_hash(strategy.module());
  // Every rank fills its own row, as halves of 32 bits, which are exact in a double; the maximum gathers them.
  const int world = strategy.world_size();
  at::Tensor halves = at::full({world, 2}, -1.0, at::kDouble);
  double* const own = halves.data_ptr<double>() + 2 * strategy.rank();
  own[0] = static_cast<double>(check.hash >> 32);
  own[1] = static_cast<double>(check.hash & 0xFFFFFFFFU);
  strategy.max_over_ranks(halves);
  std::vector<std::uint64_t> hashes;
  const double* row = halves.const_data_ptr<double>();
  for (int rank = 0; rank < world; ++rank, row += 2)
    hashes.push_back((static_cast<std::uint64_t>(row[0]) << 32) + static_cast<std::uint64_t>(row[1]));
  std::map<std::uint64_t, int> votes;
  for (const std::uint64_t h : hashes) ++votes[h];
  std::uint64_t common = hashes[0];
  for (const auto& [h, count] : votes)
    if (count > votes[common]) common = h;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank)
    if (hashes[rank] != common) check.differing.push_back(static_cast<int>(rank));
  if (check.differing.empty()) {
    check.text = format("parameters {:016x}, equal on {} rank{}", common, hashes.size(), hashes.size() == 1 ? "" : "s");
  } else {
    check.text = format("parameters DIFFER: most ranks have {:016x}, but", common);
    for (const int rank : check.differing)
      check.text += format(" rank {} has {:016x}", rank, hashes[static_cast<std::size_t>(rank)]);
  }
  return check;
}

}  // namespace cohort::parallel
