#include "models/vision/siglip.h"

#include <algorithm>
#include <cmath>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/initialise.h"
#include "models/layers.h"
#include "models/linear.h"
#include "models/module_group.h"
#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {
namespace {

constexpr double kLayerNormEps = 1e-6;

/// Xavier's uniform distribution, biases of zero.
class SiglipLinear : public Linear {
 public:
  using Linear::Linear;
  void initialise(Initialiser& initialiser) override {
    initialiser.uniform(weight(), std::sqrt(6.0 / static_cast<double>(weight().size(0) + weight().size(1))));
    initialiser.constant(bias(), 0.0);
  }
};

/// A convolution whose kernel is its stride, as a linear map of each patch. weight (out, 3, p, p), bias (out).
class PatchEmbedding : public torch::nn::Module, public Initialised {
 public:
  PatchEmbedding(std::int64_t patch, std::int64_t width)
      : weight_(register_parameter("weight", at::empty({width, 3, patch, patch}))),
        bias_(register_parameter("bias", at::empty({width}))) {}
  at::Tensor forward(const at::Tensor& pixels) const {
    const std::int64_t p = weight_.size(2), rows = pixels.size(2) / p, columns = pixels.size(3) / p;
    const at::Tensor patches = pixels.narrow(2, 0, rows * p)
                                   .narrow(3, 0, columns * p)
                                   .reshape({pixels.size(0), 3, rows, p, columns, p})
                                   .permute({0, 2, 4, 1, 3, 5})
                                   .reshape({pixels.size(0), rows * columns, 3 * p * p});
    return linear(patches, weight_.flatten(1), bias_);
  }
  void initialise(Initialiser& initialiser) override {
    initialiser.normal(weight_, 1.0 / std::sqrt(static_cast<double>(fan_in_of(weight_))));
    initialiser.constant(bias_, 0.0);
  }

 private:
  at::Tensor weight_, bias_;
};

/// weight (places, d).
class PositionTable : public torch::nn::Module, public Initialised {
 public:
  PositionTable(std::int64_t places, std::int64_t width)
      : weight_(register_parameter("weight", at::empty({places, width}))) {}
  const at::Tensor& table() const { return weight_; }
  void initialise(Initialiser& initialiser) override {
    initialiser.normal(weight_, 1.0 / std::sqrt(static_cast<double>(weight_.size(1))));
  }

 private:
  at::Tensor weight_;
};

/// Weights layer_norm1, self_attn.{k,v,q,out}_proj, layer_norm2, mlp.fc1, mlp.fc2.
class SiglipLayer : public torch::nn::Module {
 public:
  explicit SiglipLayer(const SiglipVisionSettings& s) : heads_(s.num_attention_heads) {
    const std::int64_t width = s.hidden_size;
    const auto attention = register_module("self_attn", std::make_shared<ModuleGroup>());
    k_ = attention->hold("k_proj", std::make_shared<SiglipLinear>(width, width));
    v_ = attention->hold("v_proj", std::make_shared<SiglipLinear>(width, width));
    q_ = attention->hold("q_proj", std::make_shared<SiglipLinear>(width, width));
    out_ = attention->hold("out_proj", std::make_shared<SiglipLinear>(width, width));
    norm1_ = register_module("layer_norm1", std::make_shared<LayerNorm>(width, kLayerNormEps));
    const auto mlp = register_module("mlp", std::make_shared<ModuleGroup>());
    fc1_ = mlp->hold("fc1", std::make_shared<SiglipLinear>(width, s.intermediate_size));
    fc2_ = mlp->hold("fc2", std::make_shared<SiglipLinear>(s.intermediate_size, width));
    norm2_ = register_module("layer_norm2", std::make_shared<LayerNorm>(width, kLayerNormEps));
  }
  at::Tensor forward(const at::Tensor& x_NPD) const {
    const at::Tensor y = norm1_->forward(x_NPD);
    const auto heads = [&](const Linear& map) { return map.forward(y).unflatten(-1, {heads_, -1}).transpose(1, 2); };
    const at::Tensor seen = at::scaled_dot_product_attention(heads(*q_), heads(*k_), heads(*v_));
    const at::Tensor x = x_NPD + out_->forward(seen.transpose(1, 2).flatten(2));
    return x + fc2_->forward(at::gelu(fc1_->forward(norm2_->forward(x)), "tanh"));
  }

 private:
  std::int64_t heads_;
  std::shared_ptr<SiglipLinear> k_, v_, q_, out_, fc1_, fc2_;
  std::shared_ptr<LayerNorm> norm1_, norm2_;
};

}  // namespace

struct SiglipVision::Layers {
  std::shared_ptr<PatchEmbedding> patches;
  std::shared_ptr<PositionTable> positions;
  std::vector<std::shared_ptr<SiglipLayer>> blocks;
  std::shared_ptr<LayerNorm> norm;
};

void describe(config::Fields& fields, SiglipVisionSettings& s) {
  fields.add("image_size", s.image_size, "pixels of a side that images are resized to");
  fields.add("patch_size", s.patch_size, "pixels of a side of a patch, which becomes a token");
  fields.add("hidden_size", s.hidden_size, "numbers per token");
  fields.add("num_hidden_layers", s.num_hidden_layers, "transformer layers");
  fields.add("num_attention_heads", s.num_attention_heads, "attention heads; divides hidden_size");
  fields.add("intermediate_size", s.intermediate_size, "width inside the feed-forward part");
}

void check(const SiglipVisionSettings& s) {
  COHORT_THROW_UNLESS(s.patch_size >= 1 && s.image_size >= s.patch_size,
                      "vision: image_size = {} holds no patch of patch_size = {}", s.image_size, s.patch_size);
  COHORT_THROW_UNLESS(s.num_attention_heads >= 1 && s.hidden_size >= 1 && s.hidden_size % s.num_attention_heads == 0,
                      "vision: hidden_size = {}, but must be a multiple of num_attention_heads = {}", s.hidden_size,
                      s.num_attention_heads);
  COHORT_THROW_UNLESS(s.num_hidden_layers >= 1 && s.intermediate_size >= 1,
                      "vision: num_hidden_layers = {} and intermediate_size = {}, but must be at least 1",
                      s.num_hidden_layers, s.intermediate_size);
}

SiglipVision::SiglipVision(const SiglipVisionSettings& s) : settings_(s), layers_(std::make_unique<Layers>()) {
  check(s);
  const auto model = register_module("vision_model", std::make_shared<ModuleGroup>());
  const auto embeddings = model->hold("embeddings", std::make_shared<ModuleGroup>());
  layers_->patches = embeddings->hold("patch_embedding", std::make_shared<PatchEmbedding>(s.patch_size, s.hidden_size));
  layers_->positions =
      embeddings->hold("position_embedding", std::make_shared<PositionTable>(s.patches(), s.hidden_size));
  const auto list =
      model->hold("encoder", std::make_shared<ModuleGroup>())->hold("layers", std::make_shared<ModuleList>());
  for (int i = 0; i < s.num_hidden_layers; ++i)
    layers_->blocks.push_back(list->append(std::make_shared<SiglipLayer>(s)));
  layers_->norm = model->hold("post_layernorm", std::make_shared<LayerNorm>(s.hidden_size, kLayerNormEps));
}

SiglipVision::~SiglipVision() = default;

at::Tensor SiglipVision::forward(const at::Tensor& pixels) const {
  const std::int64_t side = settings_.image_size;
  COHORT_CHECK(pixels.dim() == 4 && pixels.size(1) == 3 && pixels.size(2) == side && pixels.size(3) == side,
               "siglip: pixels have shape {}, but must be (images, 3, {}, {})", c10::str(pixels.sizes()), side, side);
  at::Tensor x = layers_->patches->forward(pixels) + layers_->positions->table();
  for (const auto& held : layers_->blocks) {
    const SiglipLayer& layer = *held;
    const auto run = [&layer](const std::vector<at::Tensor>& in) { return layer.forward(in[0]); };
    x = run_segment(layer, run, {x});
  }
  return layers_->norm->forward(x);
}

at::Tensor siglip_pixels(const at::Tensor& images, std::int64_t size) {
  constexpr double kGrey = 127.0 / 255.0;  // int(0.5 · 255), as the reference pads
  at::Tensor x = images;
  const std::int64_t height = x.size(2), width = x.size(3), side = std::max(height, width);
  if (height != width) {
    const std::int64_t top = (side - height) / 2, left = (side - width) / 2;
    x = at::constant_pad_nd(x, {left, side - width - left, top, side - height - top}, kGrey);
  }
  if (side != size) x = at::_upsample_bicubic2d_aa(x, {size, size}, /*align_corners=*/false).clamp(0.0, 1.0);
  return x * 2.0 - 1.0;
}

std::string siglip_vision_name(const std::string& key) {
  const std::string inside = "vision_model.";
  const std::size_t at = key.find(inside);
  if (at == std::string::npos || (at > 0 && key[at - 1] != '.')) return "";
  const std::string name = key.substr(at);
  return name.starts_with(inside + "head.") ? "" : name;
}

}  // namespace cohort::models
