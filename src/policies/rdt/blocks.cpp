#include "policies/rdt/blocks.h"

#include <cmath>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/module_list.h"

namespace cohort::models {
namespace {

constexpr double kNormEpsilon = 1e-6;
constexpr std::int64_t kFrequencies = 128;

/// A layer of ScalarEmbedder.
class EmbedderLinear final : public Linear {
 public:
  using Linear::Linear;
  void initialise(Initialiser& initialiser) override {
    initialiser.normal(weight(), 0.02);
    initialiser.constant(bias(), 0.0);
  }
};

class ZeroLinear final : public Linear {
 public:
  using Linear::Linear;
  void initialise(Initialiser& initialiser) override {
    initialiser.constant(weight(), 0.0);
    initialiser.constant(bias(), 0.0);
  }
};

/// (B, N, k·D) -> k tensors (B, H, N, D/H).
std::vector<at::Tensor> split_heads(const at::Tensor& x, std::int64_t parts, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), parts, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
}

at::Tensor attend_to(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask_BL) {
  std::optional<at::Tensor> mask;
  if (mask_BL.defined()) mask = mask_BL.view({mask_BL.size(0), 1, 1, mask_BL.size(1)}).expand({-1, -1, q.size(2), -1});
  return at::scaled_dot_product_attention(q, k, v.to(q.scalar_type()), mask).transpose(1, 2).flatten(2);
}

}  // namespace

DeviationNorm::DeviationNorm(std::int64_t width) : weight_(register_parameter("weight", at::empty({width}))) {}

at::Tensor DeviationNorm::forward(const at::Tensor& x) const {
  return x * at::rsqrt(at::var(x, at::OptionalIntArrayRef(-1), std::optional<at::Scalar>(1), true) + kNormEpsilon) *
         weight_;
}

void DeviationNorm::initialise(Initialiser& initialiser) {
  initialiser.constant(weight_, 1.0);
}

void XavierLinear::initialise(Initialiser& initialiser) {
  initialiser.uniform(weight(), std::sqrt(6.0 / static_cast<double>(weight().size(0) + weight().size(1))));
  initialiser.constant(bias(), 0.0);
}

ScalarEmbedder::ScalarEmbedder(std::int64_t width) {
  const auto mlp = register_module("mlp", std::make_shared<ModuleList>());
  first_ = mlp->append(std::make_shared<EmbedderLinear>(2 * kFrequencies, width));
  mlp->append(std::make_shared<ModuleList>());  // SiLU
  second_ = mlp->append(std::make_shared<EmbedderLinear>(width, width));
}

at::Tensor ScalarEmbedder::forward(const at::Tensor& t_B) const {
  // In float32, as the reference computes them whatever the type of its weights.
  const at::Tensor rates =
      (at::arange(kFrequencies, t_B.options().dtype(at::kFloat)) * (-std::log(10000.0) / kFrequencies)).exp();
  const at::Tensor angles = t_B.to(at::kFloat).unsqueeze(1) * rates.unsqueeze(0);
  const at::Tensor waves = at::cat({angles.cos(), angles.sin()}, -1).to(first_->weight().scalar_type());
  return second_->forward(at::silu(first_->forward(waves)));
}

RdtMlp::RdtMlp(std::int64_t width, std::int64_t out, bool zero_out)
    : fc1_(register_module("fc1", std::make_shared<XavierLinear>(width, width))) {
  if (zero_out)
    fc2_ = register_module("fc2", std::make_shared<ZeroLinear>(width, out));
  else
    fc2_ = register_module("fc2", std::make_shared<XavierLinear>(width, out));
}

at::Tensor RdtMlp::forward(const at::Tensor& x) const {
  return fc2_->forward(at::gelu(fc1_->forward(x), "tanh"));
}

RdtSelfAttention::RdtSelfAttention(std::int64_t width, std::int64_t heads)
    : heads_(heads),
      qkv_(register_module("qkv", std::make_shared<XavierLinear>(width, 3 * width))),
      proj_(nullptr),
      q_norm_(register_module("q_norm", std::make_shared<DeviationNorm>(width / heads))),
      k_norm_(register_module("k_norm", std::make_shared<DeviationNorm>(width / heads))) {
  proj_ = register_module("proj", std::make_shared<XavierLinear>(width, width));
}

at::Tensor RdtSelfAttention::forward(const at::Tensor& x_BND) const {
  const std::vector<at::Tensor> parts = split_heads(qkv_->forward(x_BND), 3, heads_);
  return proj_->forward(attend_to(q_norm_->forward(parts[0]), k_norm_->forward(parts[1]), parts[2], {}));
}

RdtCrossAttention::RdtCrossAttention(std::int64_t width, std::int64_t heads)
    : heads_(heads),
      q_(register_module("q", std::make_shared<XavierLinear>(width, width))),
      kv_(register_module("kv", std::make_shared<XavierLinear>(width, 2 * width))),
      proj_(nullptr),
      q_norm_(register_module("q_norm", std::make_shared<DeviationNorm>(width / heads))),
      k_norm_(register_module("k_norm", std::make_shared<DeviationNorm>(width / heads))) {
  proj_ = register_module("proj", std::make_shared<XavierLinear>(width, width));
}

at::Tensor RdtCrossAttention::forward(const at::Tensor& x_BND, const at::Tensor& condition_BLD,
                                      const at::Tensor& mask_BL) const {
  const std::int64_t conditions = condition_BLD.size(0);
  // Queries do not see each other, so those of all samples of a condition stand side by side.
  const at::Tensor x = x_BND.reshape({conditions, -1, x_BND.size(2)});
  const at::Tensor q = split_heads(q_->forward(x), 1, heads_)[0];
  const std::vector<at::Tensor> kv = split_heads(kv_->forward(condition_BLD), 2, heads_);
  return proj_->forward(attend_to(q_norm_->forward(q), k_norm_->forward(kv[0]), kv[1], mask_BL)).view(x_BND.sizes());
}

RdtBlock::RdtBlock(std::int64_t width, std::int64_t heads)
    : norm1_(register_module("norm1", std::make_shared<DeviationNorm>(width))),
      norm2_(nullptr),
      norm3_(nullptr),
      attn_(register_module("attn", std::make_shared<RdtSelfAttention>(width, heads))),
      cross_attn_(register_module("cross_attn", std::make_shared<RdtCrossAttention>(width, heads))) {
  norm2_ = register_module("norm2", std::make_shared<DeviationNorm>(width));
  ffn_ = register_module("ffn", std::make_shared<RdtMlp>(width, width, false));
  norm3_ = register_module("norm3", std::make_shared<DeviationNorm>(width));
}

at::Tensor RdtBlock::forward(const at::Tensor& x_BND, const at::Tensor& condition_BLD,
                             const at::Tensor& mask_BL) const {
  at::Tensor x = attn_->forward(norm1_->forward(x_BND)) + x_BND;
  x = cross_attn_->forward(norm2_->forward(x), condition_BLD, mask_BL) + x;
  return ffn_->forward(norm3_->forward(x)) + x;
}

at::Tensor sines_and_cosines(const std::vector<double>& positions, std::int64_t width) {
  COHORT_CHECK(width % 2 == 0, "a table of sines and cosines has an even width, not {}", width);
  const auto rows = static_cast<std::int64_t>(positions.size());
  at::Tensor table = at::empty({rows, width}, at::kDouble);
  double* out = table.mutable_data_ptr<double>();
  for (std::int64_t p = 0; p < rows; ++p)
    for (std::int64_t i = 0; i < width / 2; ++i) {
      const double rate = 1.0 / std::pow(10000.0, static_cast<double>(i) / (static_cast<double>(width) / 2.0));
      const double angle = positions[static_cast<std::size_t>(p)] * rate;
      out[p * width + i] = std::sin(angle);
      out[p * width + width / 2 + i] = std::cos(angle);
    }
  return table.to(at::kFloat);
}

namespace {

std::vector<double> counted(std::int64_t n) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

}  // namespace

at::Tensor sequence_positions(std::int64_t horizon, std::int64_t width) {
  const at::Tensor kinds = sines_and_cosines(counted(4), width / 2);
  const at::Tensor first = sines_and_cosines({0.0}, width / 2),
                   actions = sines_and_cosines(counted(horizon), width / 2);
  std::vector<at::Tensor> rows;
  for (std::int64_t kind = 0; kind < 3; ++kind) rows.push_back(at::cat({kinds.narrow(0, kind, 1), first}, 1));
  rows.push_back(at::cat({kinds.narrow(0, 3, 1).expand({horizon, -1}), actions}, 1));
  return at::cat(rows);
}

at::Tensor image_positions(std::int64_t history, std::int64_t cameras, std::int64_t patches, std::int64_t width) {
  at::Tensor table = at::zeros({history, cameras, patches, width});
  const std::int64_t kinds = (history > 1 ? 1 : 0) + (cameras > 1 ? 1 : 0);
  if (kinds > 0) {
    const std::int64_t columns = width / kinds / 2 * 2;
    std::int64_t begin = 0;
    if (history > 1) {
      table.narrow(3, begin, columns) += sines_and_cosines(counted(history), columns).view({history, 1, 1, columns});
      begin += columns;
    }
    if (cameras > 1)
      table.narrow(3, begin, columns) += sines_and_cosines(counted(cameras), columns).view({1, cameras, 1, columns});
  }
  return table.view({-1, width});
}

at::Tensor language_positions(std::int64_t length, std::int64_t width) {
  return sines_and_cosines({0.0}, width).expand({length, -1}).contiguous();
}

}  // namespace cohort::models
