#include "train/random_state.h"

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"
#include "parallel/strategy.h"

namespace cohort::train {
namespace {

// Six bytes fit the 53 bits of a double's mantissa, the only element type that a Strategy exchanges.
constexpr std::size_t kBytesPerDouble = 6;

at::Tensor state_of(const at::Generator& generator) {
  at::Generator locked = generator;
  const std::scoped_lock lock(locked.mutex());
  return locked.get_state();
}

void set_state_of(const at::Generator& generator, const at::Tensor& state) {
  at::Generator locked = generator;
  const std::scoped_lock lock(locked.mutex());
  locked.set_state(state);
}

}  // namespace

void seed_rank(std::uint64_t seed, int rank, std::int64_t step) {
  const RandomStream stream(seed, RandomPurpose::kModelInit, static_cast<std::uint64_t>(rank),
                            static_cast<std::uint64_t>(step));
  // Index 2^62 lies beyond any weight that is drawn for the same purpose.
  const Philox4 bits = stream.at(std::uint64_t{1} << 62);
  torch::manual_seed(std::uint64_t{bits.v[0]} << 32 | bits.v[1]);
}

weights::NamedTensors random_state(c10::Device device) {
  weights::NamedTensors result;
  result.emplace_back("cpu", state_of(at::detail::getDefaultCPUGenerator()));
  if (device.is_cuda()) result.emplace_back("cuda", state_of(at::globalContext().defaultGenerator(device)));
  return result;
}

void restore_random_state(const weights::NamedTensors& state, c10::Device device) {
  for (const auto& [name, bytes] : state) {
    const at::Tensor own = bytes.clone();  // generators want memory that is aligned and stays as it is
    if (name == "cpu") set_state_of(at::detail::getDefaultCPUGenerator(), own);
    if (name == "cuda" && device.is_cuda()) set_state_of(at::globalContext().defaultGenerator(device), own);
  }
}

std::vector<std::string> gather_over_ranks(parallel::Strategy& strategy, const std::string& bytes) {
  const std::size_t n = bytes.size();
  const std::size_t doubles = (n + kBytesPerDouble - 1) / kBytesPerDouble;
  const std::int64_t world = strategy.world_size();
  // Everyone fills its own row and zeros elsewhere; the maximum is the table.
  at::Tensor table = at::zeros({world, static_cast<std::int64_t>(doubles)}, at::kDouble);
  auto* row = table.mutable_data_ptr<double>() + static_cast<std::size_t>(strategy.rank()) * doubles;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t byte = static_cast<std::uint8_t>(bytes[i]);
    row[i / kBytesPerDouble] += static_cast<double>(byte << 8 * (i % kBytesPerDouble));
  }
  strategy.max_over_ranks(table);
  std::vector<std::string> result(static_cast<std::size_t>(world), std::string(n, '\0'));
  const auto* of_rank = table.const_data_ptr<double>();
  for (std::string& out : result) {
    for (std::size_t i = 0; i < n; ++i)
      out[i] = static_cast<char>(static_cast<std::uint64_t>(of_rank[i / kBytesPerDouble]) >> 8 * (i % kBytesPerDouble));
    of_rank += doubles;
  }
  return result;
}

}  // namespace cohort::train
