#include "parallel/parameter_hash.h"

#include <bit>
#include <cstring>
#include <map>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "parallel/module_layout.h"
#include "parallel/strategy.h"

namespace cohort::parallel {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ULL;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ULL;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ULL;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ULL;

template <class T>
T load(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  const unsigned char* const end = p + bytes;
  std::uint64_t hash = seed + kPrime5;
  if (bytes >= 32) {
    std::uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; end - p >= 32; p += 32)
      for (int i = 0; i < 4; ++i) lanes[i] = round_of(lanes[i], load<std::uint64_t>(p + 8 * i));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = merge(hash, lane);
  }
  hash += bytes;
  for (; end - p >= 8; p += 8) hash = std::rotl(hash ^ round_of(0, load<std::uint64_t>(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    hash = std::rotl(hash ^ (load<std::uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p != end; ++p) hash = std::rotl(hash ^ (*p * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
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
