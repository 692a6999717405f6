#include "train/parameter_hash.h"

#include <bit>
#include <cstring>

#include <torch/torch.h>

#include "parallel/strategy.h"

namespace cohort::train {
namespace {

// Odd constants with well-spread bits: fractional parts of the golden ratio and of square roots of primes.
constexpr std::uint64_t kMultiplier[4] = {0x9E3779B97F4A7C15u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu,
                                          0xA54FF53A5F1D36F1u};

std::uint64_t finish(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  return x ^ x >> 33;
}

}  // namespace

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = seed ^ kMultiplier[i];
  std::size_t position = 0;
  const auto absorb = [&](const unsigned char* block) {
    for (int i = 0; i < 4; ++i) {
      std::uint64_t word;
      std::memcpy(&word, block + 8 * i, 8);
      lanes[i] = std::rotl(lanes[i] + word * kMultiplier[i], 29) * kMultiplier[(i + 1) % 4];
    }
  };
  for (; position + 32 <= size; position += 32) absorb(bytes + position);
  if (position < size) {
    unsigned char tail[32] = {};
    std::memcpy(tail, bytes + position, size - position);
    absorb(tail);
  }
  std::uint64_t hash = finish(seed ^ size);
  for (const std::uint64_t lane : lanes) hash = finish(hash ^ lane) * kMultiplier[0];
  return finish(hash);
}

std::uint64_t hash_tensors(const NamedTensors& tensors) {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor host = tensor.detach().cpu().contiguous();
    hash = hash_bytes(host.sizes().data(), host.sizes().size() * sizeof(std::int64_t), hash);
    hash = hash_bytes(host.const_data_ptr(), host.nbytes(), hash);
  }
  return hash;
}

bool equal_on_all_ranks(parallel::Strategy& strategy, std::uint64_t hash) {
  if (strategy.world_size() == 1) return true;
  // Halves of 32 bits are exact in a double; the largest and the smallest (as the largest negative) are equal only if
  // all are.
  const double high = static_cast<double>(hash >> 32), low = static_cast<double>(hash & 0xFFFFFFFFu);
  at::Tensor bounds = torch::tensor({high, low, -high, -low}, at::kDouble);
  strategy.max_over_ranks(bounds);
  const auto* b = bounds.const_data_ptr<double>();
  return b[0] == -b[2] && b[1] == -b[3];
}

}  // namespace cohort::train
