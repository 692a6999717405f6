/// How DataParallel brings the replicas' gradients together in the first replica's parameters.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dist/cuda_plugin.h"

namespace cohort::parallel {

class GradientReduction {
 public:
  virtual ~GradientReduction() = default;
  /// Before the backward passes of `count` replicas; synchronise = false leaves every replica's gradients where they
  /// are.
  virtual void begin(std::size_t count, bool synchronise) = 0;
  /// In the replica's thread, after its backward pass.
  virtual void backward_ended(std::size_t replica) = 0;
  /// In the replica's thread, after all backward passes have ended: this replica's share of the remaining work.
  virtual void reduce_share(std::size_t replica) = 0;
  /// After all shares: gradients lie in the first replica's parameters; the other replicas have none.
  virtual void end() = 0;
  /// After a failure in a backward pass: forgets what was begun.
  virtual void abandon() = 0;
};

/// parameters[replica][i]: the replicas' versions of parameter i, in the same order.
using ReplicaParameters = std::vector<std::vector<at::Tensor>>;

/// For replicas on the CPU: once all backward passes have ended, every replica's thread adds up an equal share of all
/// elements. The cores are busy until then, so that there is nothing to overlap with, and the gradients need not be
/// copied into buckets. The order of additions is that of the replicas, whatever the threads do.
std::unique_ptr<GradientReduction> make_shared_sum(ReplicaParameters parameters);

struct BucketSettings {
  std::size_t bucket_bytes = 25 * 1024 * 1024;
  std::size_t first_bucket_bytes = 1024 * 1024;
};

/// Makes what sums the buckets, for a number of buckets.
using ReducerFactory = std::function<std::unique_ptr<dist::DeviceReducer>(std::size_t buckets)>;

/// For replicas on GPUs: gradients are gathered in flat buckets while the backward passes run, and a bucket is summed
/// as soon as it is complete on all replicas. Throws Error for parameters with sparse gradients.
std::unique_ptr<GradientReduction> make_bucketed_sum(ReplicaParameters parameters, const std::vector<bool>& sparse,
                                                     const BucketSettings& settings,
                                                     const ReducerFactory& make_reducer);

/// A DeviceReducer in host memory: sums where it is called. The same numbers as NCCL's for two replicas; lets the
/// bucketed path run without a GPU.
std::unique_ptr<dist::DeviceReducer> make_host_reducer();

}  // namespace cohort::parallel
