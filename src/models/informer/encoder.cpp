#include "models/informer/encoder.h"

#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {

EncoderLayer::EncoderLayer(const EncoderSettings& settings, LayerIds& ids)
    : gelu_(settings.gelu),
      attention_(register_module("attention", std::make_shared<AttentionLayer>(settings.attention, ids))),
      expand_(register_module("conv1", std::make_shared<PointwiseConv>(settings.attention.d_model, settings.d_ff))),
      contract_(register_module("conv2", std::make_shared<PointwiseConv>(settings.d_ff, settings.attention.d_model))),
      norm1_(register_module("norm1", std::make_shared<LayerNorm>(settings.attention.d_model))),
      norm2_(register_module("norm2", std::make_shared<LayerNorm>(settings.attention.d_model))),
      attention_dropout_{settings.dropout, ids.next()},
      feed_forward_dropout_{{settings.dropout, ids.next()}, {settings.dropout, ids.next()}} {}

at::Tensor EncoderLayer::forward(const at::Tensor& x_BLM) const {
  const at::Tensor attended =
      add_dropout(x_BLM, attention_->forward(x_BLM, x_BLM, x_BLM.size(1)), attention_dropout_, is_training());
  return feed_forward(norm1_->forward(attended), *expand_, *contract_, *norm2_, gelu_, feed_forward_dropout_,
                      is_training());
}

DistilLayer::DistilLayer(std::int64_t channels)
    : conv_(register_module("downConv",
                            std::make_shared<CircularConv>(channels, channels, CircularConv::Start::kFanInUniform))),
      norm_(register_module("norm", std::make_shared<BatchNorm>(channels))) {}

at::Tensor DistilLayer::forward(const at::Tensor& x_BLM) const {
  // Seen as an image (B, C, L, 1) in channels-last memory, which is how (B, L, C) lies there: nothing is transposed.
  const at::Tensor image = conv_->forward(x_BLM).unsqueeze(2).permute({0, 3, 1, 2});
  // ELU rises strictly, so it may follow the maximum: half as many elements.
  const at::Tensor pooled = at::max_pool2d(norm_->forward(image), {3, 1}, {2, 1}, {1, 0});
  return at::elu(pooled).permute({0, 2, 3, 1}).squeeze(2).contiguous();
}

Encoder::Encoder(EncoderSettings settings, LayerIds& ids) {
  auto layers = register_module("attn_layers", std::make_shared<ModuleList>());
  for (int i = 0; i < settings.layers; ++i) {
    layers_.push_back(layers->append(std::make_shared<EncoderLayer>(settings, ids)));
    ++settings.attention.prob.position;
  }
  if (settings.distil) {
    auto distils = register_module("conv_layers", std::make_shared<ModuleList>());
    for (int i = 0; i + 1 < settings.layers; ++i)
      distils_.push_back(distils->append(std::make_shared<DistilLayer>(settings.attention.d_model)));
  }
  if (settings.final_norm) norm_ = register_module("norm", std::make_shared<LayerNorm>(settings.attention.d_model));
}

at::Tensor Encoder::forward(const at::Tensor& x_BLM) const {
  at::Tensor x = x_BLM;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = run_segment(*layers_[i],
                    [&layer = *layers_[i]](const std::vector<at::Tensor>& in) { return layer.forward(in[0]); }, {x});
    if (i < distils_.size())
      x = run_segment(*distils_[i],
                      [&layer = *distils_[i]](const std::vector<at::Tensor>& in) { return layer.forward(in[0]); }, {x});
  }
  return norm_ ? norm_->forward(x) : x;
}

EncoderStack::EncoderStack(EncoderSettings settings, const std::vector<int>& layers, LayerIds& ids) {
  auto encoders = register_module("encoders", std::make_shared<ModuleList>());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    settings.layers = layers[i];
    encoders_.push_back(encoders->append(std::make_shared<Encoder>(settings, ids)));
    settings.attention.prob.position += layers[i];
  }
}

at::Tensor EncoderStack::forward(const at::Tensor& x_BLM) const {
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i < encoders_.size(); ++i) {
    const std::int64_t rows = x_BLM.size(1) >> i;
    outputs.push_back(encoders_[i]->forward(x_BLM.narrow(1, x_BLM.size(1) - rows, rows).contiguous()));
  }
  return at::cat(outputs, 1);
}

}  // namespace cohort::models
