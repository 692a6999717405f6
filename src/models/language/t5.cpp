#include "models/language/t5.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/initialise.h"
#include "models/linear.h"
#include "models/module_group.h"
#include "models/module_list.h"

namespace cohort::models {
namespace {

/// The score of what a text has not: of every type's range, and far below every other score.
constexpr double kHidden = -1e38;

/// A parameter's tensor; without memory, one number stands for all of them until the file's take their place.
at::Tensor t5_weight(at::IntArrayRef shape, bool memory) {
  return memory ? at::empty(shape) : at::zeros({1}).expand(shape);
}

/// weight (out, in); no bias.
class T5Linear : public torch::nn::Module, public Initialised {
 public:
  T5Linear(std::int64_t in, std::int64_t out, bool memory)
      : weight_(register_parameter("weight", t5_weight({out, in}, memory), memory)) {}
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight_); }
  void initialise(Initialiser& initialiser) override {
    initialiser.normal(weight_, 1.0 / std::sqrt(static_cast<double>(weight_.size(1))));
  }

 private:
  at::Tensor weight_;
};

/// weight (rows, width).
class T5Table : public torch::nn::Module, public Initialised {
 public:
  T5Table(std::int64_t rows, std::int64_t width, bool memory)
      : weight_(register_parameter("weight", t5_weight({rows, width}, memory), memory)) {}
  at::Tensor forward(const at::Tensor& ids) const { return at::embedding(weight_, ids); }
  void initialise(Initialiser& initialiser) override { initialiser.normal(weight_, 1.0); }

 private:
  at::Tensor weight_;
};

/// x / sqrt(mean(x²) + 1e-6) · weight.
class T5Norm : public torch::nn::Module, public Initialised {
 public:
  T5Norm(std::int64_t width, bool memory) : weight_(register_parameter("weight", t5_weight({width}, memory), memory)) {}
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
    return (wide * at::rsqrt(wide.square().mean(-1, true) + 1e-6)).to(x.scalar_type()) * weight_;
  }
  void initialise(Initialiser& initialiser) override { initialiser.constant(weight_, 1.0); }

 private:
  at::Tensor weight_;
};

/// Weights layer.0.SelfAttention.{q,k,v,o}[.relative_attention_bias], layer.0.layer_norm, layer.1.DenseReluDense.{wi_0,
/// wi_1, wo}, layer.1.layer_norm.
class T5Block : public torch::nn::Module {
 public:
  T5Block(const T5Settings& s, bool first, bool memory) : heads_(s.num_heads) {
    const std::int64_t inner = std::int64_t{s.num_heads} * s.d_kv;
    const auto layers = register_module("layer", std::make_shared<ModuleList>());
    const auto attention = layers->append(std::make_shared<ModuleGroup>());
    const auto parts = attention->hold("SelfAttention", std::make_shared<ModuleGroup>());
    q_ = parts->hold("q", std::make_shared<T5Linear>(s.d_model, inner, memory));
    k_ = parts->hold("k", std::make_shared<T5Linear>(s.d_model, inner, memory));
    v_ = parts->hold("v", std::make_shared<T5Linear>(s.d_model, inner, memory));
    o_ = parts->hold("o", std::make_shared<T5Linear>(inner, s.d_model, memory));
    if (first)
      bias_ = parts->hold("relative_attention_bias",
                          std::make_shared<T5Table>(s.relative_attention_num_buckets, s.num_heads, memory));
    attention_norm_ = attention->hold("layer_norm", std::make_shared<T5Norm>(s.d_model, memory));
    const auto feed = layers->append(std::make_shared<ModuleGroup>());
    const auto dense = feed->hold("DenseReluDense", std::make_shared<ModuleGroup>());
    gate_ = dense->hold("wi_0", std::make_shared<T5Linear>(s.d_model, s.d_ff, memory));
    up_ = dense->hold("wi_1", std::make_shared<T5Linear>(s.d_model, s.d_ff, memory));
    down_ = dense->hold("wo", std::make_shared<T5Linear>(s.d_ff, s.d_model, memory));
    feed_norm_ = feed->hold("layer_norm", std::make_shared<T5Norm>(s.d_model, memory));
  }

  const std::shared_ptr<T5Table>& bias() const { return bias_; }

  /// bias (texts, heads, length, length): of places, and of what a text has not. T5 does not scale its scores.
  at::Tensor forward(const at::Tensor& x_BLD, const at::Tensor& bias_BHLL) const {
    const at::Tensor y = attention_norm_->forward(x_BLD);
    const auto heads = [&](const T5Linear& map) { return map.forward(y).unflatten(-1, {heads_, -1}).transpose(1, 2); };
    const at::Tensor scores = at::matmul(heads(*q_), heads(*k_).transpose(2, 3)) + bias_BHLL;
    const at::Tensor seen = at::matmul(at::softmax(scores, -1), heads(*v_)).transpose(1, 2).flatten(2);
    const at::Tensor x = x_BLD + o_->forward(seen);
    const at::Tensor z = feed_norm_->forward(x);
    return x + down_->forward(at::gelu(gate_->forward(z), "tanh") * up_->forward(z));
  }

 private:
  std::int64_t heads_;
  std::shared_ptr<T5Linear> q_, k_, v_, o_, gate_, up_, down_;
  std::shared_ptr<T5Table> bias_;
  std::shared_ptr<T5Norm> attention_norm_, feed_norm_;
};

}  // namespace

struct T5Encoder::Layers {
  std::shared_ptr<T5Table> words;
  std::vector<std::shared_ptr<T5Block>> blocks;
  std::shared_ptr<T5Norm> norm;
};

void describe(config::Fields& fields, T5Settings& s) {
  fields.add("vocab_size", s.vocab_size, "tokens");
  fields.add("d_model", s.d_model, "numbers per token");
  fields.add("d_kv", s.d_kv, "numbers per head");
  fields.add("d_ff", s.d_ff, "width inside the feed-forward part");
  fields.add("num_layers", s.num_layers, "transformer layers");
  fields.add("num_heads", s.num_heads, "attention heads");
  fields.add("relative_attention_num_buckets", s.relative_attention_num_buckets, "kinds of distances between tokens");
  fields.add("relative_attention_max_distance", s.relative_attention_max_distance, "tokens; farther ones are alike");
}

void check(const T5Settings& s) {
  COHORT_THROW_UNLESS(
      s.vocab_size >= 1 && s.d_model >= 1 && s.d_kv >= 1 && s.d_ff >= 1 && s.num_layers >= 1 && s.num_heads >= 1,
      "t5: vocab_size = {}, d_model = {}, d_kv = {}, d_ff = {}, num_layers = {}, num_heads = {}: none "
      "may be zero",
      s.vocab_size, s.d_model, s.d_kv, s.d_ff, s.num_layers, s.num_heads);
  COHORT_THROW_UNLESS(
      s.relative_attention_num_buckets >= 4 && s.relative_attention_max_distance > s.relative_attention_num_buckets / 4,
      "t5: relative_attention_num_buckets = {} and relative_attention_max_distance = {}: at least 4, and "
      "more than a quarter of it",
      s.relative_attention_num_buckets, s.relative_attention_max_distance);
}

at::Tensor t5_position_buckets(std::int64_t length, int buckets, int max_distance) {
  const int half = buckets / 2, near = half / 2;
  at::Tensor table = at::empty({length, length}, at::kLong);
  std::int64_t* out = table.mutable_data_ptr<std::int64_t>();
  for (std::int64_t query = 0; query < length; ++query)
    for (std::int64_t key = 0; key < length; ++key) {
      const std::int64_t distance = std::abs(key - query);
      std::int64_t bucket = distance;
      if (distance >= near) {
        // In float32, as the reference's tensors are.
        const float share = std::log(static_cast<float>(distance) / static_cast<float>(near)) /
                            static_cast<float>(std::log(static_cast<double>(max_distance) / near)) *
                            static_cast<float>(half - near);
        bucket = std::min<std::int64_t>(half - 1, near + static_cast<std::int64_t>(share));
      }
      *out++ = bucket + (key > query ? half : 0);
    }
  return table;
}

T5Encoder::T5Encoder(const T5Settings& s, bool with_memory) : settings_(s), layers_(std::make_unique<Layers>()) {
  check(s);
  layers_->words = register_module("shared", std::make_shared<T5Table>(s.vocab_size, s.d_model, with_memory));
  const auto encoder = register_module("encoder", std::make_shared<ModuleGroup>());
  const auto blocks = encoder->hold("block", std::make_shared<ModuleList>());
  for (int i = 0; i < s.num_layers; ++i)
    layers_->blocks.push_back(blocks->append(std::make_shared<T5Block>(s, i == 0, with_memory)));
  layers_->norm = encoder->hold("final_layer_norm", std::make_shared<T5Norm>(s.d_model, with_memory));
}

T5Encoder::~T5Encoder() = default;

at::Tensor T5Encoder::forward(const at::Tensor& ids, const at::Tensor& mask) const {
  COHORT_CHECK(ids.dim() == 2 && ids.sizes() == mask.sizes(), "ids {} and mask {} must be (texts, tokens)",
               c10::str(ids.sizes()), c10::str(mask.sizes()));
  at::Tensor x = layers_->words->forward(ids);
  const at::Tensor places = t5_position_buckets(ids.size(1), settings_.relative_attention_num_buckets,
                                                settings_.relative_attention_max_distance)
                                .to(ids.device());
  at::Tensor bias = layers_->blocks.front()->bias()->forward(places).permute({2, 0, 1}).unsqueeze(0);
  const at::Tensor hidden = (mask == 0).view({mask.size(0), 1, 1, mask.size(1)});
  bias = bias.expand({ids.size(0), -1, -1, -1}).masked_fill(hidden, kHidden);
  for (const auto& block : layers_->blocks) x = block->forward(x, bias);
  return layers_->norm->forward(x);
}

std::string t5_name(const std::string& key) {
  if (key == "encoder.embed_tokens.weight") return "shared.weight";
  return key.starts_with("encoder.") || key == "shared.weight" ? key : "";
}

}  // namespace cohort::models
