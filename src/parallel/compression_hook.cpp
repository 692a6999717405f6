#include "parallel/compression_hook.h"

#include <vector>

namespace cohort::parallel {
namespace {

struct CompressionState {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  at::ScalarType type;
};

class CompressionHook : public c10d::CppCommHookInterface<CompressionState> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor whole = bucket.getBuffer();
    std::vector<at::Tensor> compressed{whole.to(state_.type).div_(state_.group->getSize())};
    const auto sum = state_.group->allreduce(compressed);
    return sum->getFuture()->then(
        [whole](c10::ivalue::Future& done) {
          // Into the bucket itself: it is what the parameters' gradients are views of.
          at::Tensor target = whole;
          target.copy_(c10d::detail::parseCppCommHookResult(done.value()));
          return c10::IValue(target);
        },
        c10::TensorType::get());
  }
};

}  // namespace

std::unique_ptr<c10d::CommHookInterface> make_compression_hook(const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                                               at::ScalarType type) {
  return std::make_unique<CompressionHook>(CompressionState{group, type});
}

}  // namespace cohort::parallel
