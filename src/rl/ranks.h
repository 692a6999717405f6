/// Whom a learner shares its environments with, and how the environments of all are divided so that no result depends
/// on how many share them.
///
///   Ranks alone;                                              // one process
///   GroupRanks ranks(dist::Group::create(environment));       // several, each with its share of the environments
///   const Shares shares = share_environments(2048, /*blocks=*/8, ranks);   // this rank's: 1024 of 2
///   shares.first_environment();                               // global id of this rank's first
///
/// Global environment ids form blocks of neighbours. Every rank has whole blocks; permutations are drawn and sums are
/// formed block by block, and blocks are joined in their order.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/array_view.h"
#include "parallel/exchange_timer.h"
#include "parallel/strategy.h"

namespace cohort::dist {
class Group;
}

namespace cohort::rl {

/// One process. Functions that communicate are called by all ranks in the same order.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  /// In place, over the ranks.
  virtual void mean(at::Tensor&) {}
  /// One of each rank, in their order; sizes may differ in the first dimension.
  virtual std::vector<at::Tensor> gather(const at::Tensor& tensor) { return {tensor}; }
  /// What averages the gradients of `model`, which lies on `device`, over the ranks.
  virtual std::shared_ptr<parallel::Strategy> strategy(std::shared_ptr<torch::nn::Module> model, DeviceId device);
  /// Seconds so far in mean(), gather() and the strategy: exchanging, and waiting for the others therein.
  virtual double exchange_seconds() const { return 0; }
};

class GroupRanks final : public Ranks {
 public:
  explicit GroupRanks(std::shared_ptr<dist::Group> group) : group_(std::move(group)) {}
  int rank() const override;
  int size() const override;
  void mean(at::Tensor& tensor) override;
  std::vector<at::Tensor> gather(const at::Tensor& tensor) override;
  /// DistributedDataParallel: `device` is the group's.
  std::shared_ptr<parallel::Strategy> strategy(std::shared_ptr<torch::nn::Module> model, DeviceId device) override;
  double exchange_seconds() const override;

 private:
  std::shared_ptr<dist::Group> group_;
  std::weak_ptr<parallel::Strategy> strategy_;
  parallel::ExchangeTimer waits_{at::kCPU};  // what is exchanged lies there
};

/// What a rank has of all environments.
struct Shares {
  std::int64_t environments = 1;  ///< of this rank
  std::int64_t blocks = 1;        ///< of this rank
  std::int64_t first_block = 0;   ///< among those of all ranks
  Ranks* ranks = nullptr;         ///< null: one process
  std::int64_t block_size() const { return environments / blocks; }
  std::int64_t first_environment() const { return first_block * block_size(); }
};

/// So many ranks form the minibatches, and with them the figures, that one rank forms: 1, 2, 3, 4, 6, 8, 12, 16, 24, 48.
bool divides_as_one_rank(std::int64_t ranks);

/// Into how many blocks n_envs environments of rollouts of `steps` steps are divided: the most of which each gives every
/// minibatch the same number of transitions; a divisor of 48, or where `ranks` is none, a multiple of `ranks`.
std::int64_t block_count(std::int64_t n_envs, std::int64_t steps, std::int64_t minibatches, std::int64_t ranks = 1);

/// Throws Error naming the nearest n_envs that do where they do not divide over the ranks.
Shares share_environments(std::int64_t n_envs, std::int64_t steps, std::int64_t minibatches, Ranks& ranks);

/// Count, mean and M2 (sum of squared differences from the mean) of numbers side by side.
struct Moments {
  double count = 0;
  at::Tensor mean, m2;  ///< (W) float64
  /// Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983.
  void merge(const Moments& other);
};

/// Of all rows of x (T, N, W), N this rank's environments, over all ranks, joined block by block.
Moments moments_of(const at::Tensor& x, const Shares& shares);

/// The order in which a pass takes this rank's transitions (step t of environment n at t N + n), (T N) int64, minibatch
/// after minibatch: every block is permuted for itself, keyed by seed, pass and block, and gives every minibatch as
/// many.
at::Tensor minibatch_order(const Shares& shares, std::int64_t steps, std::int64_t minibatches, std::uint64_t seed,
                           std::int64_t pass);

}  // namespace cohort::rl
