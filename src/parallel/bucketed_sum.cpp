#include <algorithm>
#include <atomic>
#include <mutex>

#include <torch/autograd.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "parallel/gradient_reduction.h"

namespace cohort::parallel {
namespace {

/// Where gradients of a bucket lie: one flat tensor per replica, and in it one view per parameter.
struct Bucket {
  std::vector<std::size_t> parameters;
  std::vector<at::Tensor> flat;                // [replica]
  std::vector<std::vector<at::Tensor>> views;  // [replica][position in `parameters`]
  std::vector<std::size_t> pending;            // [replica] parameters whose gradient has not come yet
  std::size_t replicas_pending = 0;
};

/// A tensor over part of `flat`, with the layout of `like`. Not a view in autograd's sense: optimizers' zero_grad may
/// detach it.
at::Tensor part_of(const at::Tensor& flat, std::int64_t offset, const at::Tensor& like) {
  std::vector<std::int64_t> strides = like.strides().vec();
  if (!like.is_non_overlapping_and_dense()) strides = at::empty(like.sizes(), at::kMeta).strides().vec();
  return at::empty({0}, flat.options()).set_(flat.storage(), flat.storage_offset() + offset, like.sizes(), strides);
}

class BucketedSum : public GradientReduction {
 public:
  BucketedSum(ReplicaParameters parameters, const std::vector<bool>& sparse, const BucketSettings& settings,
              const ReducerFactory& make_reducer)
      : parameters_(std::move(parameters)), used_(parameters_[0].size()) {
    COHORT_THROW_UNLESS(
        std::find(sparse.begin(), sparse.end(), true) == sparse.end(),
        "DataParallel over GPUs has no sparse gradients; make the Embedding layers dense (sparse(false)), or use "
        "one process per GPU");
    make_buckets(settings);
    reducer_ = make_reducer(buckets_.size());
    seen_.assign(parameters_.size(), std::vector<char>(parameters_[0].size(), 0));
    hook_parameters();
  }

  ~BucketedSum() override {
    for (auto& [accumulator, key] : hooks_) accumulator->del_post_hook(key);
  }

  void begin(std::size_t count, bool synchronise) override {
    active_ = synchronise;
    if (!synchronise) return;
    for (Bucket& bucket : buckets_) {
      bucket.pending.assign(parameters_.size(), bucket.parameters.size());
      bucket.replicas_pending = parameters_.size();
    }
    for (auto& flags : seen_) std::fill(flags.begin(), flags.end(), 0);
    for (std::atomic<bool>& flag : used_) flag = false;
    // Replicas that have no share of this batch may hold gradients from an accumulation over larger ones.
    for (std::size_t replica = count; replica < parameters_.size(); ++replica) backward_ended(replica);
  }

  void backward_ended(std::size_t replica) override {
    if (!active_) return;
    for (std::size_t i = 0; i < parameters_[replica].size(); ++i)
      if (seen_[replica][i] == 0) gradient_ready(replica, i);
  }

  void reduce_share(std::size_t) override {}

  void end() override {
    if (!active_) return;
    reducer_->finish();
    for (std::size_t i = 0; i < used_.size(); ++i) {
      parameters_[0][i].mutable_grad() = used_[i] ? view(0, i) : at::Tensor();
      for (std::size_t r = 1; r < parameters_.size(); ++r) parameters_[r][i].mutable_grad().reset();
    }
    active_ = false;
  }

  void abandon() override {
    active_ = false;
    reducer_->finish();
  }

 private:
  void make_buckets(const BucketSettings& settings) {
    // Gradients arrive roughly in the reverse order of definition; the first bucket is small, so that sums start early.
    std::vector<at::Tensor> reversed(parameters_[0].rbegin(), parameters_[0].rend());
    const auto [groups, limits] =
        c10d::compute_bucket_assignment_by_size(reversed, {settings.first_bucket_bytes, settings.bucket_bytes});
    place_.resize(reversed.size());
    for (const auto& group : groups) {
      Bucket bucket;
      std::int64_t count = 0;
      for (const std::size_t position : group) {
        const std::size_t i = reversed.size() - 1 - position;
        place_[i] = {buckets_.size(), bucket.parameters.size()};
        bucket.parameters.push_back(i);
        count += parameters_[0][i].numel();
      }
      for (const auto& replica : parameters_) {
        bucket.flat.push_back(at::empty({count}, replica[bucket.parameters[0]].options().requires_grad(false)));
        std::vector<at::Tensor> views;
        std::int64_t offset = 0;
        for (const std::size_t i : bucket.parameters) {
          views.push_back(part_of(bucket.flat.back(), offset, replica[i]));
          offset += replica[i].numel();
        }
        bucket.views.push_back(std::move(views));
      }
      buckets_.push_back(std::move(bucket));
    }
  }

  void hook_parameters() {
    for (std::size_t replica = 0; replica < parameters_.size(); ++replica)
      for (std::size_t i = 0; i < parameters_[replica].size(); ++i) {
        auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[replica][i]);
        const auto key = accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [this, replica, i](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
              if (active_) gradient_ready(replica, i);
              return outputs;
            }));
        hooks_.emplace_back(std::move(accumulator), key);
      }
  }

  const at::Tensor& view(std::size_t replica, std::size_t i) const {
    return buckets_[place_[i].first].views[replica][place_[i].second];
  }

  void gradient_ready(std::size_t replica, std::size_t i) {
    COHORT_THROW_UNLESS(
        seen_[replica][i] == 0,
        "the gradient of parameter {} arrived twice in one backward pass (re-entrant checkpointing of a shared "
        "layer?); use one process per device instead",
        i);
    seen_[replica][i] = 1;
    const at::NoGradGuard no_grad;
    at::Tensor& gradient = parameters_[replica][i].mutable_grad();
    at::Tensor target = view(replica, i);
    if (gradient.defined()) {
      used_[i] = true;
      if (gradient.data_ptr() != target.data_ptr()) {
        target.copy_(gradient);
        gradient = target;
      }
    } else {
      target.zero_();
    }
    const std::size_t index = place_[i].first;
    Bucket& bucket = buckets_[index];
    if (--bucket.pending[replica] > 0) return;
    reducer_->mark_ready(index, replica);
    const std::lock_guard lock(mutex_);
    if (--bucket.replicas_pending == 0) reducer_->reduce(index, bucket.flat);
  }

  ReplicaParameters parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<std::size_t, std::size_t>> place_;  // parameter -> bucket, position in it
  std::vector<std::vector<char>> seen_;                     // [replica][parameter]: came in this pass; its thread's own
  std::vector<std::atomic<bool>> used_;                     // by any replica
  std::vector<std::pair<std::shared_ptr<torch::autograd::Node>, std::uintptr_t>> hooks_;
  std::atomic<bool> active_ = false;
  std::mutex mutex_;  // replicas_pending, and the order of sums
  std::unique_ptr<dist::DeviceReducer> reducer_;
};

class HostReducer : public dist::DeviceReducer {
 public:
  void mark_ready(std::size_t, std::size_t) override {}
  void reduce(std::size_t, const std::vector<at::Tensor>& buffers) override {
    at::Tensor sum = buffers[0];
    for (std::size_t r = 1; r < buffers.size(); ++r) sum.add_(buffers[r]);
  }
  void finish() override {}
  void broadcast(const std::vector<at::Tensor>& buffers) override {
    for (std::size_t r = 1; r < buffers.size(); ++r) at::Tensor(buffers[r]).copy_(buffers[0]);
  }
};

}  // namespace

std::unique_ptr<GradientReduction> make_bucketed_sum(ReplicaParameters parameters, const std::vector<bool>& sparse,
                                                     const BucketSettings& settings,
                                                     const ReducerFactory& make_reducer) {
  return std::make_unique<BucketedSum>(std::move(parameters), sparse, settings, make_reducer);
}

std::unique_ptr<dist::DeviceReducer> make_host_reducer() {
  return std::make_unique<HostReducer>();
}

}  // namespace cohort::parallel
