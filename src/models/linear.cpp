#include "models/linear.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "core/error.h"

namespace cohort::models {
namespace {

/// Multiply-adds from which oneDNN's fixed cost of some ten microseconds does not show.
constexpr std::int64_t kLargeProduct = std::int64_t{1} << 24;

using OneDnnLinear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                std::string_view, c10::List<std::optional<at::Scalar>>,
                                std::optional<std::string_view>);

/// LibTorch's operator around oneDNN's inner product, or nothing where it was built without.
const std::optional<c10::TypedOperatorHandle<OneDnnLinear>>& one_dnn() {
  static const auto handle = []() -> std::optional<c10::TypedOperatorHandle<OneDnnLinear>> {
    const auto schema = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!schema || !at::globalContext().hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return std::nullopt;
    return schema->typed<OneDnnLinear>();
  }();
  return handle;
}

at::Tensor multiply(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  return one_dnn()->call(x, weight, bias, "none", c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

class LinearByOneDnn : public torch::autograd::Function<LinearByOneDnn> {
 public:
  /// x (rows, in)
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    context->save_for_backward({x, weight});
    return multiply(x, weight, bias);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    COHORT_CHECK(!at::GradMode::is_enabled(), "linear layers of the models can be differentiated once only");
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor grad_x, grad_weight, grad_bias;
    if (context->needs_input_grad(0)) grad_x = multiply(gradient, saved[1].t(), std::nullopt);
    if (context->needs_input_grad(1)) grad_weight = at::mm(gradient.t(), saved[0]);
    if (context->needs_input_grad(2)) grad_bias = gradient.sum(0);
    return {grad_x, grad_weight, grad_bias};
  }
};

thread_local bool rows_stand_alone = false;

/// x (rows, in) with every row at a whole cache line.
at::Tensor aligned_rows(const at::Tensor& x) {
  constexpr std::int64_t kLine = 16;  // floats
  const std::int64_t in = x.size(1), stride = (in + kLine - 1) / kLine * kLine;
  const bool at_a_line = reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % (kLine * sizeof(float)) == 0;
  if (at_a_line && x.stride(1) == 1 && x.stride(0) % kLine == 0) return x;
  const at::Tensor aligned = at::empty({x.size(0), stride}, x.options()).narrow(1, 0, in);
  aligned.copy_(x);
  return aligned;
}

}  // namespace

RowsAloneGuard::RowsAloneGuard() : former_(rows_stand_alone) {
  rows_stand_alone = true;
}

RowsAloneGuard::~RowsAloneGuard() {
  rows_stand_alone = former_;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool plain = x.device().is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
                     !at::autocast::is_autocast_enabled(at::kCPU);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  if (rows_stand_alone && plain) return at::linear(aligned_rows(x.reshape({-1, x.size(-1)})), weight, bias).view(shape);
  const bool large = x.numel() * weight.size(0) >= kLargeProduct;
  if (!large || !plain || !one_dnn()) return at::linear(x, weight, bias);
  return LinearByOneDnn::apply(x.reshape({-1, x.size(-1)}), weight, bias).view(shape);
}

}  // namespace cohort::models
