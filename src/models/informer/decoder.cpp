#include "models/informer/decoder.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {

DecoderLayer::DecoderLayer(const DecoderSettings& settings, LayerIds& ids)
    : gelu_(settings.gelu),
      self_attention_(
          register_module("self_attention", std::make_shared<AttentionLayer>(settings.self_attention, ids))),
      cross_attention_(
          register_module("cross_attention", std::make_shared<AttentionLayer>(settings.cross_attention, ids))),
      expand_(
          register_module("conv1", std::make_shared<PointwiseConv>(settings.self_attention.d_model, settings.d_ff))),
      contract_(
          register_module("conv2", std::make_shared<PointwiseConv>(settings.d_ff, settings.self_attention.d_model))),
      norm1_(register_module("norm1", std::make_shared<LayerNorm>(settings.self_attention.d_model))),
      norm2_(register_module("norm2", std::make_shared<LayerNorm>(settings.self_attention.d_model))),
      norm3_(register_module("norm3", std::make_shared<LayerNorm>(settings.self_attention.d_model))),
      self_dropout_{settings.dropout, ids.next()},
      cross_dropout_{settings.dropout, ids.next()},
      feed_forward_dropout_{{settings.dropout, ids.next()}, {settings.dropout, ids.next()}} {}

at::Tensor DecoderLayer::forward(const at::Tensor& x_BLM, const at::Tensor& cross_BSM, std::int64_t keep) const {
  const at::Tensor kept = x_BLM.narrow(1, x_BLM.size(1) - keep, keep);
  at::Tensor x =
      norm1_->forward(add_dropout(kept, self_attention_->forward(x_BLM, x_BLM, keep), self_dropout_, is_training()));
  x = norm2_->forward(add_dropout(x, cross_attention_->forward(x, cross_BSM, keep), cross_dropout_, is_training()));
  return feed_forward(x, *expand_, *contract_, *norm3_, gelu_, feed_forward_dropout_, is_training());
}

Decoder::Decoder(DecoderSettings settings, LayerIds& ids) {
  auto layers = register_module("layers", std::make_shared<ModuleList>());
  for (int i = 0; i < settings.layers; ++i) {
    layers_.push_back(layers->append(std::make_shared<DecoderLayer>(settings, ids)));
    ++settings.self_attention.prob.position;
  }
  norm_ = register_module("norm", std::make_shared<LayerNorm>(settings.self_attention.d_model));
}

at::Tensor Decoder::forward(const at::Tensor& x_BLM, const at::Tensor& cross_BSM, std::int64_t keep) const {
  at::Tensor x = x_BLM;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::int64_t rows = i + 1 == layers_.size() ? keep : x.size(1);
    x = run_segment(
        *layers_[i],
        [&layer = *layers_[i], rows](const std::vector<at::Tensor>& in) { return layer.forward(in[0], in[1], rows); },
        {x, cross_BSM});
  }
  return norm_->forward(x);
}

}  // namespace cohort::models
