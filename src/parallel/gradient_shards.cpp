#include "parallel/gradient_shards.h"

#include <algorithm>
#include <map>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

/// Buckets that may be under way: bounds the memory of gradients that nobody keeps.
constexpr std::size_t kUnderWay = 2;

}  // namespace

struct GradientShards::Hook : torch::autograd::PostAccumulateGradHook {
  Hook(GradientShards& all, std::size_t own) : shards(all), parameter(own) {}
  void operator()(const torch::autograd::Variable&) override { shards.arrived(parameter); }
  GradientShards& shards;
  std::size_t parameter;
};

GradientShards::GradientShards(const ParameterShards& shards, std::shared_ptr<dist::Group> group,
                               GradientShardSettings settings)
    : group_(std::move(group)),
      parameters_(shards.parameters().rbegin(), shards.parameters().rend()),
      waits_(tensors::to_torch_device(group_->options().device)) {
  bucket_of_.resize(parameters_.size());
  has_arrived_.resize(parameters_.size());
  std::vector<Bucket> made;
  std::map<std::pair<int, at::ScalarType>, std::size_t> open;  // the bucket of an owner and a type that has room
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& p = parameters_[i].tensor;
    COHORT_THROW_UNLESS(!parameters_[i].sparse_gradient,
                        "parallel.zero=2: '{}' has a sparse gradient; choose parallel.zero=1", parameters_[i].name);
    const at::ScalarType type = p.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const std::pair<int, at::ScalarType> key(shards.owner(p), type);
    if (!open.contains(key)) {
      open[key] = made.size();
      made.push_back({.owner = key.first, .type = type});
    }
    Bucket& bucket = made[open[key]];
    bucket.members.push_back(i);
    bucket.elements += p.numel();
    if (bucket.elements * static_cast<std::int64_t>(at::elementSize(type)) >= settings.bucket_bytes) open.erase(key);
  }
  // In the order in which they become full.
  std::stable_sort(made.begin(), made.end(),
                   [](const Bucket& a, const Bucket& b) { return a.members.back() < b.members.back(); });
  buckets_ = std::move(made);
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const std::size_t i : buckets_[b].members) bucket_of_[i] = b;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, std::make_unique<Hook>(*this, i));
  const bool on_cpu = group_->options().device.kind == DeviceKind::kCpu;
  const bool floats =
      std::all_of(buckets_.begin(), buckets_.end(), [](const Bucket& b) { return b.type == at::kFloat; });
  if (on_cpu && floats && !settings.through_sockets && group_->world_size() > 1) node_sum_ = NodeSum::open(*group_);
}

GradientShards::~GradientShards() {
  for (const NamedTensor& p : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(p.tensor, nullptr);
}

void GradientShards::begin() {
  for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
  for (const NamedTensor& p : parameters_) p.tensor.mutable_grad().reset();
  std::fill(has_arrived_.begin(), has_arrived_.end(), false);
  next_ = 0;
  pending_.clear();
  active_ = true;
}

/// In the thread of the backward pass, one gradient after the other.
void GradientShards::arrived(std::size_t parameter) {
  if (!active_) return;
  COHORT_THROW_UNLESS(!has_arrived_[parameter],
                      "'{}' gets its gradient twice in one backward pass, which parallel.zero=2 cannot sum while it "
                      "runs; choose parallel.zero=1",
                      parameters_[parameter].name);
  has_arrived_[parameter] = true;
  --buckets_[bucket_of_[parameter]].missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) send(next_++);
}

void GradientShards::send(std::size_t index) {
  const at::NoGradGuard no_grad;
  Bucket& bucket = buckets_[index];
  const at::Tensor& first = parameters_[bucket.members.front()].tensor;
  at::Tensor values = at::empty({bucket.elements}, first.options().dtype(bucket.type).requires_grad(false));
  std::int64_t position = 0;
  for (const std::size_t i : bucket.members) {
    const at::Tensor& p = parameters_[i].tensor;
    values.narrow(0, position, p.numel()).view(p.sizes()).copy_(p.grad());
    position += p.numel();
    p.mutable_grad().reset();
  }
  const int ranks = group_->world_size();
  c10::intrusive_ptr<c10d::Work> work;
  if (node_sum_) {
    node_sum_->sum(values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel()),
                   1.0F / static_cast<float>(ranks));
  } else if (ranks > 1) {
    values.div_(ranks);
    std::vector<at::Tensor> tensors{values};
    c10d::ReduceOptions options;
    options.rootRank = bucket.owner;
    work = group_->process_group()->reduce(tensors, options);
  }
  pending_.push_back({index, std::move(values), std::move(work)});
  while (pending_.size() > (work ? kUnderWay : 0)) receive();
}

void GradientShards::receive() {
  Pending done = std::move(pending_.front());
  pending_.pop_front();
  if (done.work) {
    waits_.begin();
    done.work->wait();
    waits_.end();
  }
  Bucket& bucket = buckets_[done.bucket];
  if (bucket.owner != group_->rank()) return;
  const at::NoGradGuard no_grad;
  if (bucket.kept.defined())
    bucket.kept.add_(done.values);
  else
    bucket.kept = std::move(done.values);
}

void GradientShards::end(bool last) {
  active_ = false;
  if (next_ < buckets_.size()) {
    std::string names;  // in order of definition
    for (std::size_t i = parameters_.size(); i-- > 0;)
      if (!has_arrived_[i]) names += (names.empty() ? "'" : ", '") + parameters_[i].name + "'";
    throw Error(
        format("the loss of the last step did not depend on these parameters: {}. Every rank must give all of them a "
               "gradient: let the loss use them, or freeze them (requires_grad(false))",
               names));
  }
  while (!pending_.empty()) receive();
  if (!last) return;
  const at::NoGradGuard no_grad;
  for (Bucket& bucket : buckets_) {
    if (bucket.owner != group_->rank()) continue;
    std::int64_t position = 0;
    for (const std::size_t i : bucket.members) {
      const at::Tensor& p = parameters_[i].tensor;
      const at::Tensor values = bucket.kept.narrow(0, position, p.numel()).view(p.sizes());
      // Kernels walk through a parameter and its gradient side by side.
      p.mutable_grad() =
          p.is_contiguous()
              ? values
              : at::empty_like(p, p.options().dtype(bucket.type), at::MemoryFormat::Preserve).copy_(values);
      position += p.numel();
    }
  }
}

void GradientShards::drop() {
  for (Bucket& bucket : buckets_) bucket.kept.reset();
  for (const NamedTensor& p : parameters_) p.tensor.mutable_grad().reset();
}

double GradientShards::seconds() const {
  return node_sum_ ? node_sum_->seconds() : waits_.seconds();
}

}  // namespace cohort::parallel
