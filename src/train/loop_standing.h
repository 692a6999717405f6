/// Where a rank stands, as ranks tell each other before they agree on a state to go on with, and the state as bytes
/// (loop_recovery.cpp, loop_parking.cpp).
#pragma once
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "core/config.h"
#include "core/error.h"
#include "parallel/parameter_hash.h"
#include "weights/named_tensors.h"

namespace cohort::train {

inline void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

inline void append(std::string& bytes, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  append(bytes, whole.const_data_ptr(), whole.nbytes());
}

/// Takes apart what was appended.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}
  void take(void* into, std::size_t size) {
    COHORT_THROW_UNLESS(rest_.size() >= size, "what a rank left for the one that takes its place is too short");
    std::memcpy(into, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  void take(at::Tensor& into) {
    at::Tensor whole =
        at::empty(into.sizes(), into.options().device(at::kCPU).memory_format(at::MemoryFormat::Contiguous));
    take(whole.mutable_data_ptr(), whole.nbytes());
    into.copy_(whole);
  }
  void end() const {
    COHORT_THROW_UNLESS(rest_.empty(), "what a rank left for the one that takes its place is too long");
  }

 private:
  std::string_view rest_;
};

inline std::uint64_t hash_of(const std::string& state, const weights::NamedTensors& tensors) {
  std::uint64_t hash = parallel::xxh64(state.data(), state.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor whole = tensor.detach().contiguous();
    hash = parallel::xxh64(whole.const_data_ptr(), whole.nbytes(), hash);
  }
  return hash;
}

/// Where a rank stands, as the others hear of it.
struct Standing {
  bool has_state = false;
  std::int64_t step = -1;
  int after = 0;
  std::uint64_t hash = 0;
};

inline config::Json to_json(const Standing& s) {
  return {{"has_state", s.has_state}, {"step", s.step}, {"after", s.after}, {"hash", s.hash}};
}

inline Standing standing_from(const std::string& text) {
  const config::Json json = config::Json::parse(text);
  return {json.at("has_state"), json.at("step"), json.at("after"), json.at("hash")};
}

/// Whose state all take. Rank 0 where it can be, as it writes the files; else one that has most left to do after the
/// step.
inline int giver_of(const std::vector<Standing>& ranks) {
  int giver = -1;
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const Standing& own = ranks[static_cast<std::size_t>(r)];
    if (!own.has_state) continue;
    if (giver < 0) {
      giver = r;
      continue;
    }
    const Standing& best = ranks[static_cast<std::size_t>(giver)];
    if (own.step > best.step || (own.step == best.step && giver != 0 && own.after < best.after)) giver = r;
  }
  return giver;
}

}  // namespace cohort::train
