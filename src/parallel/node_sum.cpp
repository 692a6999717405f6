#include "parallel/node_sum.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "dist/group.h"
#include "parallel/sum_floats.h"

namespace cohort::parallel {
namespace {

// Floats that go through the memory at a time. What ranks write stays in the processor's caches, and fits the 64 MiB
// that containers give to /dev/shm.
constexpr std::size_t kPiece = 128 * 1024;

constexpr const char* kOperation = "the all-reduce of gradients";

struct NodeSumState {
  std::shared_ptr<NodeSum> sum;
  std::function<float()> factor;
};

class NodeSumHook : public c10d::CppCommHookInterface<NodeSumState> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    at::Tensor& whole = bucket.getBufferRef();
    COHORT_CHECK(whole.is_cpu() && whole.scalar_type() == at::kFloat && whole.is_contiguous(), "a bucket of {}",
                 whole.toString());
    state_.sum->sum(whole.mutable_data_ptr<float>(), static_cast<std::size_t>(whole.numel()), state_.factor());
    auto done = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
    done->markCompleted(c10::IValue(whole));
    return done;
  }
};

}  // namespace

std::shared_ptr<NodeSum> NodeSum::open(dist::Group& group) {
  auto memory = dist::NodeMemory::open(group, 2 * kPiece * sizeof(float));
  if (!memory) return nullptr;
  return std::shared_ptr<NodeSum>(new NodeSum(std::move(memory), group.rank(), group.world_size()));
}

void NodeSum::sum(float* values, std::size_t count, float factor) {
  const auto started = std::chrono::steady_clock::now();
  const auto ranks = static_cast<std::size_t>(world_size_);
  const auto own = static_cast<std::size_t>(rank_);
  // A rank's part: its terms for the others' shares, then the total of its own share.
  const auto terms = [&](std::size_t r) { return reinterpret_cast<float*>(memory_->part(static_cast<int>(r))); };
  const auto total = [&](std::size_t r) { return terms(r) + kPiece; };
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    const std::size_t size = std::min(kPiece, count - begin);
    float* const piece = values + begin;
    const auto first = [&](std::size_t share) { return size * share / ranks; };
    const auto length = [&](std::size_t share) { return first(share + 1) - first(share); };
    for (std::size_t s = 0; s < ranks; ++s)
      scale_to((s == own ? piece : terms(own)) + first(s), piece + first(s), factor, length(s));
    memory_->meet(kOperation);
    // Rank s adds up share s, in the order of ranks.
    const auto term = [&](std::size_t r) { return (r == own ? piece : terms(r)) + first(own); };
    std::copy_n(term(0), length(own), total(own));
    for (std::size_t r = 1; r < ranks; ++r) add_to(total(own), term(r), length(own));
    memory_->meet(kOperation);
    for (std::size_t s = 0; s < ranks; ++s) std::copy_n(total(s), length(s), piece + first(s));
    // No third meeting: terms are written before a first meeting and read before the second; totals are written before
    // a second meeting and read before the next first one.
  }
  const auto taken = std::chrono::steady_clock::now() - started;
  nanoseconds_.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count(),
                         std::memory_order_relaxed);
}

std::unique_ptr<c10d::CommHookInterface> make_node_sum_hook(std::shared_ptr<NodeSum> sum,
                                                            std::function<float()> factor) {
  return std::make_unique<NodeSumHook>(NodeSumState{std::move(sum), std::move(factor)});
}

}  // namespace cohort::parallel
