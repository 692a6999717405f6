/// The keys that ProbSparse attention samples to rank its queries.
#pragma once
#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace cohort::models {

/// One ProbSparse layer of a model.
struct ProbSparseLayer {
  std::uint32_t id = 0;  ///< LayerIds: keys the draw
  int position = 0;      ///< 0, 1, ... among the model's ProbSparse layers, in the order of the forward pass
  int factor = 5;
  std::uint64_t eval_seed = 0;  ///< InformerSettings::eval_sampling_seed
};

/// factor·ceil(ln length), at most length: how many keys are sampled, or how many queries attend.
std::int64_t prob_sparse_count(int factor, std::int64_t length);

/// (n_query, n_sample) int64 on the CPU, uniform in [0, n_key): one draw for all samples and heads of a call. In
/// training it is keyed by the RandomContext's seed and step, so that all ranks and replicas draw the same in a step;
/// in evaluation by eval_seed and step 0, so that it needs no context and always gives the same result.
at::Tensor draw_key_samples(const ProbSparseLayer& layer, std::int64_t n_query, std::int64_t n_sample,
                            std::int64_t n_key, bool training);

/// While one lives, the key samples of all threads of this process come from `give` instead of being drawn: for tests
/// against other implementations. give(position, n_query, n_sample, n_key) returns what draw_key_samples would; it may
/// be called by several threads at once. At most one lives at a time.
class KeySampleOverride {
 public:
  using Give = std::function<at::Tensor(int position, std::int64_t n_query, std::int64_t n_sample, std::int64_t n_key)>;
  explicit KeySampleOverride(Give give);
  ~KeySampleOverride();
  KeySampleOverride(const KeySampleOverride&) = delete;
  KeySampleOverride& operator=(const KeySampleOverride&) = delete;
};

}  // namespace cohort::models
