#include "policies/diffusion/transformer.h"

#include <cmath>
#include <limits>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/module_list.h"
#include "models/segment.h"
#include "policies/diffusion/attention_layers.h"

namespace cohort::models {

void NormalLinear::initialise(Initialiser& initialiser) {
  initialiser.normal(weight(), 0.02);
  initialiser.constant(bias(), 0.0);
}

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t heads, double dropout, LayerIds& ids)
    : width_(width),
      heads_(heads),
      dropout_layer_{.p = dropout, .id = ids.next()},
      in_weight_(register_parameter("in_proj_weight", at::empty({3 * width, width}))),
      in_bias_(register_parameter("in_proj_bias", at::empty({3 * width}))),
      out_(register_module("out_proj", std::make_shared<NormalLinear>(width, width))) {}

at::Tensor MultiheadAttention::forward(const at::Tensor& queries_BTE, const at::Tensor& keys_BSE,
                                       const at::Tensor& mask_TS) const {
  const auto project = [&](const at::Tensor& x, std::int64_t part) {
    const at::Tensor y =
        at::linear(x, in_weight_.narrow(0, part * width_, width_), in_bias_.narrow(0, part * width_, width_));
    return y.view({x.size(0), x.size(1), heads_, width_ / heads_}).transpose(1, 2);
  };
  const at::Tensor q = project(queries_BTE, 0), k = project(keys_BSE, 1), v = project(keys_BSE, 2);
  at::Tensor context;
  if (is_training() && dropout_layer_.p > 0) {
    at::Tensor scores = at::matmul(q * (1.0 / std::sqrt(static_cast<double>(width_ / heads_))), k.transpose(2, 3));
    if (mask_TS.defined()) scores = scores + mask_TS;
    context = at::matmul(dropout(at::softmax(scores, -1), dropout_layer_, true), v);
  } else {
    context = at::scaled_dot_product_attention(
        q, k, v, mask_TS.defined() ? std::optional<at::Tensor>(mask_TS.to(q.scalar_type())) : std::nullopt);
  }
  return out_->forward(context.transpose(1, 2).flatten(2));
}

void MultiheadAttention::initialise(Initialiser& initialiser) {
  initialiser.normal(in_weight_, 0.02);
  initialiser.constant(in_bias_, 0.0);
}

AttentionBlock::AttentionBlock(std::int64_t width, std::int64_t heads, double dropout, bool crosses, LayerIds& ids) {
  self_attention_ = register_module("self_attn", std::make_shared<MultiheadAttention>(width, heads, dropout, ids));
  if (crosses)
    cross_attention_ =
        register_module("multihead_attn", std::make_shared<MultiheadAttention>(width, heads, dropout, ids));
  expand_ = register_module("linear1", std::make_shared<NormalLinear>(width, 4 * width));
  contract_ = register_module("linear2", std::make_shared<NormalLinear>(4 * width, width));
  norm1_ = register_module("norm1", std::make_shared<LayerNorm>(width));
  norm2_ = register_module("norm2", std::make_shared<LayerNorm>(width));
  if (crosses) norm3_ = register_module("norm3", std::make_shared<LayerNorm>(width));
  for (DropoutLayer* layer : {&self_dropout_, &cross_dropout_, &inside_dropout_, &result_dropout_})
    *layer = {.p = dropout, .id = ids.next()};
}

at::Tensor AttentionBlock::forward(const at::Tensor& x_BTE, const at::Tensor& memory_BSE, const at::Tensor& mask_TT,
                                   const at::Tensor& memory_mask_TS) const {
  const bool training = is_training();
  at::Tensor y = norm1_->forward(x_BTE);
  at::Tensor x = add_dropout(x_BTE, self_attention_->forward(y, y, mask_TT), self_dropout_, training);
  if (cross_attention_)
    x = add_dropout(x, cross_attention_->forward(norm2_->forward(x), memory_BSE, memory_mask_TS), cross_dropout_,
                    training);
  y = at::gelu(expand_->forward((norm3_ ? norm3_ : norm2_)->forward(x)));
  return add_dropout(x, contract_->forward(dropout(y, inside_dropout_, training)), result_dropout_, training);
}

namespace {

/// 0 where `seen`, else -inf.
at::Tensor additive(const at::Tensor& seen) {
  return at::zeros(seen.sizes()).masked_fill(~seen, -std::numeric_limits<float>::infinity());
}

/// Linear, Mish, Linear. Weights: 0.*, 2.*.
class ConditionMlp : public ModuleList {
 public:
  explicit ConditionMlp(std::int64_t width) : expand_(append(std::make_shared<NormalLinear>(width, 4 * width))) {
    append(std::make_shared<ModuleList>());  // Mish
    contract_ = append(std::make_shared<NormalLinear>(4 * width, width));
  }
  at::Tensor forward(const at::Tensor& x) const { return contract_->forward(at::mish(expand_->forward(x))); }

 private:
  std::shared_ptr<NormalLinear> expand_, contract_;
};

/// Weights: layers.<i>.*.
class Stack : public torch::nn::Module {
 public:
  Stack(int layers, const TransformerSettings& s, bool crosses, LayerIds& ids) {
    const auto list = register_module("layers", std::make_shared<ModuleList>());
    for (int i = 0; i < layers; ++i)
      layers_.push_back(list->append(std::make_shared<AttentionBlock>(s.n_emb, s.n_head, s.p_drop_attn, crosses, ids)));
  }
  at::Tensor forward(at::Tensor x, const at::Tensor& memory, const at::Tensor& mask,
                     const at::Tensor& memory_mask) const {
    for (const auto& held : layers_) {
      const AttentionBlock& layer = *held;
      const auto run = [&layer, mask, memory_mask](const std::vector<at::Tensor>& in) {
        return layer.forward(in[0], in.size() > 1 ? in[1] : at::Tensor(), mask, memory_mask);
      };
      x = run_segment(layer, run, memory.defined() ? std::vector<at::Tensor>{x, memory} : std::vector<at::Tensor>{x});
    }
    return x;
  }

 private:
  std::vector<std::shared_ptr<AttentionBlock>> layers_;
};

class Transformer : public Denoiser, public Initialised {
 public:
  Transformer(const TransformerSettings& s, int chunk, int action_width, int observations, int features)
      : Denoiser("Transformer"), width_(s.n_emb), observations_(observations), features_(features) {
    LayerIds ids;
    const std::int64_t seen = 1 + observations;  // the timestep and the observations
    // The reference has it as an empty parameter, from which it reads its device; a parameter that no loss depends on
    // would stop DistributedDataParallel.
    register_buffer("_dummy_variable", at::empty({0}));
    positions_ = register_parameter("pos_emb", at::empty({1, chunk, width_}));
    condition_positions_ = register_parameter("cond_pos_emb", at::empty({1, seen, width_}));
    action_in_ = register_module("input_emb", std::make_shared<NormalLinear>(action_width, width_));
    observation_in_ = register_module("cond_obs_emb", std::make_shared<NormalLinear>(features, width_));
    if (s.n_cond_layers > 0)
      encoder_ = register_module("encoder", std::make_shared<Stack>(s.n_cond_layers, s, false, ids));
    else
      mlp_ = register_module("encoder", std::make_shared<ConditionMlp>(width_));
    decoder_ = register_module("decoder", std::make_shared<Stack>(s.n_layer, s, true, ids));
    if (s.causal_attn) {
      const at::Tensor t = at::arange(chunk).unsqueeze(1);
      mask_ = register_buffer("mask", additive(t >= at::arange(chunk).unsqueeze(0)));
      // The timestep comes first, then the observations from the chunk's first row on.
      memory_mask_ = register_buffer("memory_mask", additive(t >= at::arange(seen).unsqueeze(0) - 1));
    }
    last_norm_ = register_module("ln_f", std::make_shared<LayerNorm>(width_));
    head_ = register_module("head", std::make_shared<NormalLinear>(width_, action_width));
    for (DropoutLayer* layer : {&condition_dropout_, &action_dropout_}) *layer = {.p = s.p_drop_emb, .id = ids.next()};
  }

  at::Tensor forward(const at::Tensor& actions_BTA, const at::Tensor& timesteps_B,
                     const at::Tensor& features_BOF) const override {
    COHORT_CHECK(features_BOF.dim() == 3 && features_BOF.size(1) == observations_ && features_BOF.size(2) == features_,
                 "transformer: observations have shape {}, but must be (samples, {}, {})",
                 c10::str(features_BOF.sizes()), observations_, features_);
    COHORT_CHECK(actions_BTA.size(1) == positions_.size(1), "transformer: {} rows of actions, but must be {}",
                 actions_BTA.size(1), positions_.size(1));
    const bool training = is_training();
    const at::Tensor time = timestep_embedding(timesteps_B, width_).unsqueeze(1);
    at::Tensor memory = at::cat({time, observation_in_->forward(features_BOF)}, 1) + condition_positions_;
    memory = dropout(memory, condition_dropout_, training);
    memory = encoder_ ? encoder_->forward(memory, {}, {}, {}) : mlp_->forward(memory);
    at::Tensor x = dropout(action_in_->forward(actions_BTA) + positions_, action_dropout_, training);
    x = decoder_->forward(x, memory, mask_, memory_mask_);
    return head_->forward(last_norm_->forward(x));
  }

  void initialise(Initialiser& initialiser) override {
    initialiser.normal(positions_, 0.02);
    initialiser.normal(condition_positions_, 0.02);
  }

 private:
  std::int64_t width_;
  int observations_, features_;
  at::Tensor positions_, condition_positions_, mask_, memory_mask_;
  std::shared_ptr<NormalLinear> action_in_, observation_in_, head_;
  std::shared_ptr<Stack> encoder_, decoder_;
  std::shared_ptr<ConditionMlp> mlp_;
  std::shared_ptr<LayerNorm> last_norm_;
  DropoutLayer condition_dropout_, action_dropout_;
};

}  // namespace

void describe(config::Fields& fields, TransformerSettings& s) {
  fields.add("n_layer", s.n_layer, "decoder layers");
  fields.add("n_head", s.n_head, "attention heads; divides n_emb");
  fields.add("n_emb", s.n_emb, "width");
  fields.add("p_drop_emb", s.p_drop_emb, "dropout of the embedded tokens");
  fields.add("p_drop_attn", s.p_drop_attn, "dropout inside the layers");
  fields.add("causal_attn", s.causal_attn, "an action sees actions and observations up to its own time only");
  fields.add("n_cond_layers", s.n_cond_layers, "encoder layers over timestep and observations; 0: a small MLP instead");
}

void check(const TransformerSettings& s) {
  COHORT_THROW_UNLESS(s.n_layer >= 1 && s.n_cond_layers >= 0,
                      "transformer: n_layer = {} and n_cond_layers = {}, but must be at least 1 and 0", s.n_layer,
                      s.n_cond_layers);
  COHORT_THROW_UNLESS(s.n_head >= 1 && s.n_emb >= 4 && s.n_emb % s.n_head == 0 && s.n_emb % 2 == 0,
                      "transformer: n_emb = {}, but must be even, at least 4, and a multiple of n_head = {}", s.n_emb,
                      s.n_head);
  const std::pair<const char*, double> rates[] = {{"p_drop_emb", s.p_drop_emb}, {"p_drop_attn", s.p_drop_attn}};
  for (const auto& [name, p] : rates)
    COHORT_THROW_UNLESS(p >= 0.0 && p < 1.0, "transformer: {} = {}, but must be in [0, 1)", name, p);
}

std::shared_ptr<Denoiser> make_transformer(const TransformerSettings& s, int chunk, int action_width, int observations,
                                           int features) {
  check(s);
  COHORT_THROW_UNLESS(chunk >= 1 && action_width >= 1 && observations >= 1 && features >= 1,
                      "transformer: chunks of {} x {} from {} observations of {} numbers: none of these may be zero",
                      chunk, action_width, observations, features);
  return std::make_shared<Transformer>(s, chunk, action_width, observations, features);
}

}  // namespace cohort::models
