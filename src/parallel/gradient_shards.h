/// Gradients of which each process keeps those of its own parameters (ZeRO 2). While the backward pass runs, gradients
/// go into buckets of one owner each; a full bucket is summed over all processes, its owner keeps the mean, and everybody
/// frees the rest. Buckets hold float32 (float64 for such parameters), so that 16-bit weights lose nothing in the sum.
///
///   GradientShards gradients(shards, group, settings);
///   gradients.begin();
///   loss.backward();
///   gradients.end(/*last=*/true);      // .grad of the parameters that this process owns; the others have none
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "parallel/exchange_timer.h"
#include "parallel/node_sum.h"
#include "parallel/parameter_shards.h"

namespace cohort::parallel {

struct GradientShardSettings {
  std::int64_t bucket_bytes = 25 * 1024 * 1024;
  bool through_sockets = false;  ///< CPU: never through shared memory
};

class GradientShards {
 public:
  /// Hooks the gradients of all parameters of `shards`, which must outlive this. Collective.
  GradientShards(const ParameterShards& shards, std::shared_ptr<dist::Group> group, GradientShardSettings settings);
  ~GradientShards();
  GradientShards(const GradientShards&) = delete;
  GradientShards& operator=(const GradientShards&) = delete;

  /// Before a backward pass. Gradients add up over several until drop().
  void begin();
  /// After it. Throws Error naming the parameters that got no gradient. last: own parameters get theirs.
  void end(bool last);
  /// Forgets all gradients.
  void drop();

  /// Seconds in sums; of those that run beside the backward pass, the wait for them.
  double seconds() const;

 private:
  struct Bucket {
    int owner = 0;
    at::ScalarType type = at::kFloat;
    std::vector<std::size_t> members;  // in parameters_
    std::int64_t elements = 0;
    std::size_t missing = 0;  // gradients that have not come yet
    at::Tensor kept;          // the owner's
  };
  struct Pending {
    std::size_t bucket = 0;
    at::Tensor values;
    c10::intrusive_ptr<c10d::Work> work;
  };
  struct Hook;

  void arrived(std::size_t parameter);
  void send(std::size_t bucket);
  void receive();

  std::shared_ptr<dist::Group> group_;
  std::vector<NamedTensor> parameters_;  // in the order in which gradients are expected
  std::vector<std::size_t> bucket_of_;
  std::vector<Bucket> buckets_;
  std::vector<bool> has_arrived_;
  std::size_t next_ = 0;  // bucket that is summed next: the same order on all ranks
  bool active_ = false;
  std::deque<Pending> pending_;
  std::shared_ptr<NodeSum> node_sum_;
  ExchangeTimer waits_;  // for sums through c10d
};

}  // namespace cohort::parallel
