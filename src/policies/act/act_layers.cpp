#include "policies/act/act_layers.h"

#include <cmath>
#include <numbers>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/linear.h"
#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {
namespace {

double xavier_bound(std::int64_t in, std::int64_t out) {
  return std::sqrt(6.0 / static_cast<double>(in + out));
}

at::Tensor plus(const at::Tensor& x, const at::Tensor& positions) {
  return positions.defined() ? x + positions : x;
}

}  // namespace

void ActLinear::initialise(Initialiser& initialiser) {
  if (xavier_)
    initialiser.uniform(weight(), xavier_bound(weight().size(1), weight().size(0)));
  else
    initialiser.fan_in_uniform(weight());
  if (zero_bias_)
    initialiser.constant(bias(), 0.0);
  else
    initialiser.fan_in_uniform_bias(bias(), weight());
}

ActAttention::ActAttention(const ActLayerSettings& s, LayerIds& ids)
    : width_(s.width),
      heads_(s.heads),
      dropout_{.p = s.dropout, .id = ids.next()},
      in_weight_(register_parameter("in_proj_weight", at::empty({3 * s.width, s.width}))),
      in_bias_(register_parameter("in_proj_bias", at::empty({3 * s.width}))),
      out_(register_module("out_proj", std::make_shared<ActLinear>(s.width, s.width, s.xavier, true))) {}

void ActAttention::initialise(Initialiser& initialiser) {
  initialiser.uniform(in_weight_, xavier_bound(width_, 3 * width_));
  initialiser.constant(in_bias_, 0.0);
}

at::Tensor ActAttention::forward(const at::Tensor& queries_BTD, const at::Tensor& keys_BSD,
                                 const at::Tensor& values_BSD, const at::Tensor& mask_BS) const {
  const auto project = [&](const at::Tensor& x, std::int64_t part, std::int64_t parts) {
    return linear(x, in_weight_.narrow(0, part * width_, parts * width_),
                  in_bias_.narrow(0, part * width_, parts * width_));
  };
  const auto by_head = [&](const at::Tensor& y) {
    return y.view({y.size(0), y.size(1), heads_, width_ / heads_}).transpose(1, 2);
  };
  at::Tensor q, k;
  if (queries_BTD.is_same(keys_BSD)) {
    const at::Tensor both = project(queries_BTD, 0, 2);
    const auto half = [&](std::int64_t part) {
      return both.narrow(2, part * width_, width_).unflatten(2, {heads_, width_ / heads_}).transpose(1, 2);
    };
    q = half(0);
    k = half(1);
  } else {
    q = by_head(project(queries_BTD, 0, 1));
    k = by_head(project(keys_BSD, 1, 1));
  }
  const at::Tensor v = by_head(project(values_BSD, 2, 1));
  const at::Tensor mask = mask_BS.defined() ? mask_BS.unsqueeze(1).unsqueeze(1) : mask_BS;  // (B, 1, 1, S)
  at::Tensor context;
  if (is_training() && dropout_.p > 0) {
    at::Tensor scores = at::matmul(q * (1.0 / std::sqrt(static_cast<double>(width_ / heads_))), k.transpose(2, 3));
    if (mask.defined()) scores = scores + mask;
    context = at::matmul(dropout(at::softmax(scores, -1), dropout_, true), v);
  } else {
    context = at::scaled_dot_product_attention(
        q, k, v,
        mask.defined() ? std::optional<at::Tensor>(mask.to(q.scalar_type()).expand({-1, -1, q.size(2), -1}))
                       : std::nullopt);
  }
  return out_->forward(context.transpose(1, 2).flatten(2));
}

ActLayer::ActLayer(const ActLayerSettings& s, bool crosses, LayerIds& ids) : pre_norm_(s.pre_norm), gelu_(s.gelu) {
  self_attention_ = register_module("self_attn", std::make_shared<ActAttention>(s, ids));
  if (crosses) cross_attention_ = register_module("multihead_attn", std::make_shared<ActAttention>(s, ids));
  expand_ = register_module("linear1", std::make_shared<ActLinear>(s.width, s.feed_forward, s.xavier, false));
  contract_ = register_module("linear2", std::make_shared<ActLinear>(s.feed_forward, s.width, s.xavier, false));
  norm1_ = register_module("norm1", std::make_shared<LayerNorm>(s.width));
  norm2_ = register_module("norm2", std::make_shared<LayerNorm>(s.width));
  if (crosses) norm3_ = register_module("norm3", std::make_shared<LayerNorm>(s.width));
  for (DropoutLayer* layer : {&inside_dropout_, &dropout1_, &dropout2_, &dropout3_})
    *layer = {.p = s.dropout, .id = ids.next()};
}

at::Tensor ActLayer::forward(const at::Tensor& x_BTD, const at::Tensor& positions, const at::Tensor& mask_BT,
                             const at::Tensor& memory_keys_BSD, const at::Tensor& memory_BSD) const {
  const bool training = is_training();
  // A part of the layer: its input is normalised before it, or its sum with what it is added to behind it.
  const auto add = [&](const at::Tensor& x, const LayerNorm& norm, const DropoutLayer& layer, const auto& part) {
    if (pre_norm_) return add_dropout(x, part(norm.forward(x)), layer, training);
    return norm.forward(add_dropout(x, part(x), layer, training));
  };
  at::Tensor x = add(x_BTD, *norm1_, dropout1_, [&](const at::Tensor& y) {
    const at::Tensor placed = plus(y, positions);
    return self_attention_->forward(placed, placed, y, mask_BT);
  });
  if (cross_attention_)
    x = add(x, *norm2_, dropout2_, [&](const at::Tensor& y) {
      return cross_attention_->forward(plus(y, positions), memory_keys_BSD, memory_BSD, {});
    });
  return add(x, norm3_ ? *norm3_ : *norm2_, norm3_ ? dropout3_ : dropout2_, [&](const at::Tensor& y) {
    const at::Tensor wide = expand_->forward(y);
    return contract_->forward(dropout(gelu_ ? at::gelu(wide) : at::relu(wide), inside_dropout_, training));
  });
}

ActStack::ActStack(int layers, const ActLayerSettings& s, bool crosses, LayerIds& ids) {
  const auto list = register_module("layers", std::make_shared<ModuleList>());
  for (int i = 0; i < layers; ++i) layers_.push_back(list->append(std::make_shared<ActLayer>(s, crosses, ids)));
  if (crosses || s.pre_norm) norm_ = register_module("norm", std::make_shared<LayerNorm>(s.width));
}

at::Tensor ActStack::forward(at::Tensor x, const at::Tensor& positions, const at::Tensor& mask,
                             const at::Tensor& memory, const at::Tensor& memory_positions) const {
  const at::Tensor keys = memory.defined() ? plus(memory, memory_positions) : memory;
  for (const auto& held : layers_) {
    const ActLayer& layer = *held;
    const auto run = [&layer, mask](const std::vector<at::Tensor>& in) {
      return layer.forward(in[0], in[1], mask, in.size() > 2 ? in[2] : at::Tensor(),
                           in.size() > 2 ? in[3] : at::Tensor());
    };
    x = run_segment(
        layer, run,
        memory.defined() ? std::vector<at::Tensor>{x, positions, keys, memory} : std::vector<at::Tensor>{x, positions});
  }
  return norm_ ? norm_->forward(x) : x;
}

at::Tensor ActMapProjection::forward(const at::Tensor& x_BCHW) const {
  return linear(x_BCHW.flatten(2).transpose(1, 2), weight_.flatten(1), bias_);
}

void ActMapProjection::initialise(Initialiser& initialiser) {
  initialiser.fan_in_uniform(weight_);
  initialiser.fan_in_uniform_bias(bias_, weight_);
}

at::Tensor act_sinusoid_table(std::int64_t length, std::int64_t width) {
  const auto real = at::TensorOptions(at::kDouble);
  const at::Tensor column = at::arange(width, real);
  const at::Tensor rate = at::pow(10000.0, 2.0 * at::floor(column / 2) / static_cast<double>(width));
  const at::Tensor angle = at::arange(length, real).unsqueeze(1) / rate;
  return at::where((at::remainder(column, 2) == 0).unsqueeze(0), angle.sin(), angle.cos()).to(at::kFloat);
}

at::Tensor act_map_positions(std::int64_t height, std::int64_t width_of_map, std::int64_t width, at::Device device) {
  const auto real = at::TensorOptions(at::kFloat).device(device);
  const std::int64_t half = width / 2;
  const at::Tensor rate = at::pow(10000.0, 2.0 * at::floor(at::arange(half, real) / 2) / static_cast<double>(half));
  // Rows of sines and cosines in turn, for 1 .. n brought to the end of the circle.
  const auto table = [&](std::int64_t n) {
    const at::Tensor place = at::arange(1, n + 1, real) / (static_cast<double>(n) + 1e-6) * (2 * std::numbers::pi);
    const at::Tensor angle = (place.unsqueeze(1) / rate).unflatten(1, {half / 2, 2});
    return at::stack({angle.select(2, 0).sin(), angle.select(2, 1).cos()}, 2).flatten(1);
  };
  const at::Tensor y = table(height).unsqueeze(1).expand({height, width_of_map, half}),
                   x = table(width_of_map).unsqueeze(0).expand({height, width_of_map, half});
  return at::cat({y, x}, 2).view({1, height * width_of_map, width});
}

}  // namespace cohort::models
