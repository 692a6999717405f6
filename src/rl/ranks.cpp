#include "rl/ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "dist/group.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/single_device.h"
#include "rl/rollout.h"

namespace cohort::rl {
namespace {

constexpr std::int64_t kMostBlocks = 48;  // divides by 2, 3, 4, 6, 8, 12, 16, 24

bool divide_over(std::int64_t n_envs, std::int64_t steps, std::int64_t minibatches, std::int64_t ranks) {
  return n_envs % ranks == 0 && block_count(n_envs, steps, minibatches, ranks) % ranks == 0;
}

}  // namespace

std::shared_ptr<parallel::Strategy> Ranks::strategy(std::shared_ptr<torch::nn::Module> model, DeviceId device) {
  return std::make_shared<parallel::SingleDevice>(std::move(model), device);
}

int GroupRanks::rank() const {
  return group_->rank();
}
int GroupRanks::size() const {
  return group_->world_size();
}
void GroupRanks::mean(at::Tensor& tensor) {
  waits_.begin();
  group_->all_reduce(tensor, dist::Reduction::kMean);
  waits_.end();
}
std::vector<at::Tensor> GroupRanks::gather(const at::Tensor& tensor) {
  waits_.begin();
  std::vector<at::Tensor> all = group_->all_gather(tensor);
  waits_.end();
  return all;
}
std::shared_ptr<parallel::Strategy> GroupRanks::strategy(std::shared_ptr<torch::nn::Module> model, DeviceId device) {
  COHORT_CHECK(device == group_->options().device, "the networks do not lie on the device of the ranks' group");
  // Observations' moments, the only buffers, are merged alike on every rank.
  auto made = std::make_shared<parallel::DistributedDataParallel>(std::move(model), group_,
                                                                  parallel::DdpSettings{.broadcast_buffers = false});
  strategy_ = made;
  return made;
}
double GroupRanks::exchange_seconds() const {
  const auto strategy = strategy_.lock();
  return waits_.seconds() + (strategy ? strategy->exchange_seconds() : 0.0);
}

bool divides_as_one_rank(std::int64_t ranks) {
  return kMostBlocks % ranks == 0;
}

std::int64_t block_count(std::int64_t n_envs, std::int64_t steps, std::int64_t minibatches, std::int64_t ranks) {
  const bool as_one = divides_as_one_rank(ranks);
  for (std::int64_t blocks = std::max(kMostBlocks, ranks); blocks > 1; --blocks)
    if ((as_one ? kMostBlocks % blocks : blocks % ranks) == 0 && n_envs % blocks == 0 &&
        steps * (n_envs / blocks) % minibatches == 0)
      return blocks;
  return 1;
}

Shares share_environments(std::int64_t n_envs, std::int64_t steps, std::int64_t minibatches, Ranks& ranks) {
  const std::int64_t size = ranks.size();
  if (!divide_over(n_envs, steps, minibatches, size)) {
    std::int64_t below = n_envs, above = n_envs;
    while (below > 0 && !divide_over(below, steps, minibatches, size)) --below;
    while (!divide_over(above, steps, minibatches, size)) ++above;
    throw Error(format("n_envs = {} do not divide over {} ranks with {} minibatches each; the nearest that do: {}{}",
                       n_envs, size, minibatches, below > 0 ? format("{} and ", below) : std::string(), above));
  }
  const std::int64_t blocks = block_count(n_envs, steps, minibatches, size) / size;
  return {.environments = n_envs / size, .blocks = blocks, .first_block = blocks * ranks.rank(), .ranks = &ranks};
}

void Moments::merge(const Moments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = {other.count, other.mean.clone(), other.m2.clone()};
    return;
  }
  const double total = count + other.count;
  const at::Tensor delta = other.mean - mean;
  m2 = m2 + other.m2 + delta.square() * (count * other.count / total);
  mean = mean + delta * (other.count / total);
  count = total;
}

Moments moments_of(const at::Tensor& x, const Shares& shares) {
  const at::NoGradGuard no_grad;
  const std::int64_t width = x.size(-1), size = shares.block_size();
  const auto rows_of_block = static_cast<double>(x.size(0) * size);
  // (blocks, 2, W): mean and M2 of each.
  at::Tensor own = at::empty({shares.blocks, 2, width}, x.options().dtype(at::kDouble));
  for (std::int64_t b = 0; b < shares.blocks; ++b) {
    const at::Tensor rows = x.narrow(1, b * size, size).reshape({-1, width}).to(at::kDouble);
    const at::Tensor mean = rows.mean(0);
    own[b][0].copy_(mean);
    own[b][1].copy_((rows - mean).square().sum(0));
  }
  own = own.cpu();
  const at::Tensor all = shares.ranks ? at::cat(shares.ranks->gather(own), 0) : own;
  Moments sum;
  for (std::int64_t b = 0; b < all.size(0); ++b) sum.merge({rows_of_block, all[b][0], all[b][1]});
  return sum;
}

at::Tensor minibatch_order(const Shares& shares, std::int64_t steps, std::int64_t minibatches, std::uint64_t seed,
                           std::int64_t pass) {
  const std::int64_t size = shares.block_size(), of_block = steps * size, share = of_block / minibatches;
  COHORT_CHECK(share * minibatches == of_block, "{} transitions of a block and {} minibatches", of_block, minibatches);
  at::Tensor order = at::empty({steps * shares.environments}, at::kLong);
  auto* places = order.mutable_data_ptr<std::int64_t>();
  for (std::int64_t b = 0; b < shares.blocks; ++b) {
    const at::Tensor own = shuffled_order(of_block, seed, pass, static_cast<std::uint64_t>(shares.first_block + b));
    const auto* drawn = own.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < of_block; ++i) {
      const std::int64_t t = drawn[i] / size, env = b * size + drawn[i] % size;
      const std::int64_t minibatch = i / share;
      places[(minibatch * shares.blocks + b) * share + i % share] = t * shares.environments + env;
    }
  }
  return order;
}

}  // namespace cohort::rl
