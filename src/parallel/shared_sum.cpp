#include <algorithm>
#include <mutex>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "parallel/gradient_reduction.h"
#include "parallel/sum_floats.h"

namespace cohort::parallel {
namespace {

// Shares end at multiples of this many elements, so that two threads never write to one cache line.
constexpr std::int64_t kShareUnit = 64;

class SharedSum : public GradientReduction {
 public:
  explicit SharedSum(ReplicaParameters parameters) : parameters_(std::move(parameters)) {}

  void begin(std::size_t count, bool synchronise) override {
    count_ = count;
    synchronise_ = synchronise;
    prepared_ = false;
  }
  void backward_ended(std::size_t) override {}

  void reduce_share(std::size_t replica) override {
    if (!synchronise_) return;
    prepare();
    std::int64_t begin = total_ * static_cast<std::int64_t>(replica) / static_cast<std::int64_t>(count_);
    std::int64_t end = total_ * static_cast<std::int64_t>(replica + 1) / static_cast<std::int64_t>(count_);
    if (begin > 0) begin = round_up(begin);
    if (end < total_) end = std::min(total_, round_up(end));
    for (const Item& item : items_) {
      const std::int64_t from = std::max(begin, item.offset) - item.offset;
      const std::int64_t to = std::min(end, item.offset + item.count) - item.offset;
      if (from >= to) continue;
      for (const at::Tensor& source : item.sources) add(item.target, source, from, to);
    }
    // What cannot be cut into shares: whole tensors in turn.
    for (std::size_t i = replica; i < whole_.size(); i += count_)
      for (const at::Tensor& source : whole_[i].sources) whole_[i].target.add_(source);
  }

  void end() override {
    if (!synchronise_) return;
    items_.clear();
    // A sparse sum is a new tensor's content, hence assigned anew.
    for (const Whole& w : whole_) parameters_[0][w.parameter].mutable_grad() = w.target;
    whole_.clear();
    for (std::size_t r = 1; r < parameters_.size(); ++r)
      for (const at::Tensor& parameter : parameters_[r]) parameter.mutable_grad().reset();
  }

  void abandon() override {
    items_.clear();
    whole_.clear();
  }

 private:
  /// A gradient that is dense in memory, in the same layout on all replicas.
  struct Item {
    at::Tensor target;
    std::vector<at::Tensor> sources;
    std::int64_t offset;  // of its first element among those of all items
    std::int64_t count;
  };
  struct Whole {
    std::size_t parameter;
    at::Tensor target;
    std::vector<at::Tensor> sources;
  };

  static std::int64_t round_up(std::int64_t n) { return (n + kShareUnit - 1) / kShareUnit * kShareUnit; }

  static void add(const at::Tensor& target, const at::Tensor& source, std::int64_t from, std::int64_t to) {
    const auto count = static_cast<std::size_t>(to - from);
    if (target.scalar_type() == at::kFloat)
      add_to(target.mutable_data_ptr<float>() + from, source.const_data_ptr<float>() + from, count);
    else
      add_to(target.mutable_data_ptr<double>() + from, source.const_data_ptr<double>() + from, count);
  }

  /// Lists the gradients; the first thread that comes does it.
  void prepare() {
    const std::lock_guard lock(mutex_);
    if (prepared_) return;
    prepared_ = true;
    const at::NoGradGuard no_grad;
    items_.clear();
    whole_.clear();
    total_ = 0;
    for (std::size_t i = 0; i < parameters_[0].size(); ++i) {
      // A replica whose share of the batch did not use the parameter has no gradient. Replicas beyond count_ may still
      // hold one from an accumulation over larger batches.
      std::vector<at::Tensor> gradients;
      for (std::size_t r = 0; r < parameters_.size(); ++r)
        if (const at::Tensor& gradient = parameters_[r][i].grad(); gradient.defined()) gradients.push_back(gradient);
      if (gradients.empty()) continue;
      if (!parameters_[0][i].grad().defined()) parameters_[0][i].mutable_grad() = gradients.front();
      if (gradients.size() == 1) continue;
      const at::Tensor target = gradients.front();
      const std::vector<at::Tensor> sources(gradients.begin() + 1, gradients.end());
      const bool plain = target.layout() == at::kStrided && target.is_non_overlapping_and_dense() &&
                         (target.scalar_type() == at::kFloat || target.scalar_type() == at::kDouble) &&
                         std::all_of(sources.begin(), sources.end(), [&](const at::Tensor& s) {
                           return s.layout() == at::kStrided && s.strides() == target.strides() &&
                                  s.scalar_type() == target.scalar_type();
                         });
      if (plain) {
        items_.push_back({target, sources, total_, target.numel()});
        total_ += round_up(target.numel());
      } else {
        whole_.push_back({i, target, sources});
      }
    }
  }

  ReplicaParameters parameters_;
  std::size_t count_ = 0;
  bool synchronise_ = true;
  std::mutex mutex_;
  bool prepared_ = false;
  std::vector<Item> items_;
  std::vector<Whole> whole_;
  std::int64_t total_ = 0;
};

}  // namespace

std::unique_ptr<GradientReduction> make_shared_sum(ReplicaParameters parameters) {
  return std::make_unique<SharedSum>(std::move(parameters));
}

}  // namespace cohort::parallel
