/// c10d::Reducer behind an interface of our own: its constructor changes between versions of LibTorch, and only
/// reducer_adapter.cpp knows it (LibTorch 2.11).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace cohort::parallel {

struct ReducerSettings {
  std::int64_t bucket_bytes = 25 * 1024 * 1024;
  std::int64_t first_bucket_bytes = 1024 * 1024;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  /// The buckets hold the parameters in the order given from the first iteration on; false: from the second, in the
  /// order in which gradients arrived in the first.
  bool buckets_fixed_at_start = true;
  bool broadcast_buffers = true;  ///< for LibTorch's usage log only
  std::string model_name;         ///< likewise
};

/// The reducer and its logger; the logger is destroyed first, as it refers to the reducer.
struct ReducerPair {
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
};

/// Hooks every parameter's gradient accumulator. `parameters` are leaves on one device, all requiring gradients,
/// without duplicates, in the order in which their gradients are expected; `sparse[i]` says whether parameter i gets a
/// sparse gradient; `names[i]` is for messages.
ReducerPair make_reducer(const std::vector<at::Tensor>& parameters, const std::vector<bool>& sparse,
                         const std::vector<std::string>& names, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                         const ReducerSettings& settings);

}  // namespace cohort::parallel
