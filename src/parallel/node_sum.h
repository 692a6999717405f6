/// Gradients of ranks on one machine, added up through memory that they share: a fraction of the time of sockets, and
/// in the order of ranks, whatever bucket an element lies in.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "dist/node_memory.h"

namespace cohort::dist {
class Group;
}

namespace cohort::parallel {

class NodeSum {
 public:
  /// Collective. Null on every rank where NodeMemory::open is.
  static std::shared_ptr<NodeSum> open(dist::Group& group);

  /// values[i] becomes factor * (values[i] of rank 0) + factor * (that of rank 1) + ..., the same bits on every rank.
  /// Collective; `factor` is each rank's own. Throws as NodeMemory::meet does; `values` is then in part a sum.
  void sum(float* values, std::size_t count, float factor);

  /// Seconds in sum() so far: waiting for the others included.
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)); }

 private:
  NodeSum(std::unique_ptr<dist::NodeMemory> memory, int rank, int world_size)
      : memory_(std::move(memory)), rank_(rank), world_size_(world_size) {}

  std::unique_ptr<dist::NodeMemory> memory_;
  int rank_;
  int world_size_;
  std::atomic<std::int64_t> nanoseconds_ = 0;
};

/// A hook that sums each bucket (float32, dense, on the CPU) in backward's own thread. `factor` is asked for every
/// bucket: 1 / ranks, or what join() wants.
std::unique_ptr<c10d::CommHookInterface> make_node_sum_hook(std::shared_ptr<NodeSum> sum,
                                                            std::function<float()> factor);

}  // namespace cohort::parallel
