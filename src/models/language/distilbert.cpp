#include "models/language/distilbert.h"

#include <limits>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/initialise.h"
#include "models/layers.h"
#include "models/module_group.h"
#include "models/module_list.h"

namespace cohort::models {
namespace {

/// A table of vectors. Weight (rows, width).
class Embedding : public torch::nn::Module, public Initialised {
 public:
  Embedding(std::int64_t rows, std::int64_t width) : weight_(register_parameter("weight", at::empty({rows, width}))) {}
  at::Tensor forward(const at::Tensor& ids) const { return at::embedding(weight_, ids); }
  at::Tensor first(std::int64_t rows) const { return weight_.narrow(0, 0, rows); }
  void initialise(Initialiser& initialiser) override { initialiser.normal(weight_, 0.02); }

 private:
  at::Tensor weight_;
};

constexpr double kLayerNormEps = 1e-12;

/// Weights: attention.{q,k,v,out}_lin, sa_layer_norm, ffn.lin1, ffn.lin2, output_layer_norm.
class BertBlock : public torch::nn::Module {
 public:
  explicit BertBlock(const DistilBertSettings& s) : heads_(s.n_heads) {
    const auto attention = register_module("attention", std::make_shared<ModuleGroup>());
    q_ = attention->hold("q_lin", std::make_shared<Linear>(s.dim, s.dim));
    k_ = attention->hold("k_lin", std::make_shared<Linear>(s.dim, s.dim));
    v_ = attention->hold("v_lin", std::make_shared<Linear>(s.dim, s.dim));
    out_ = attention->hold("out_lin", std::make_shared<Linear>(s.dim, s.dim));
    attention_norm_ = register_module("sa_layer_norm", std::make_shared<LayerNorm>(s.dim, kLayerNormEps));
    const auto ffn = register_module("ffn", std::make_shared<ModuleGroup>());
    expand_ = ffn->hold("lin1", std::make_shared<Linear>(s.dim, s.hidden_dim));
    contract_ = ffn->hold("lin2", std::make_shared<Linear>(s.hidden_dim, s.dim));
    output_norm_ = register_module("output_layer_norm", std::make_shared<LayerNorm>(s.dim, kLayerNormEps));
  }

  at::Tensor forward(const at::Tensor& x_BLD, const at::Tensor& mask_B11L) const {
    const auto heads = [&](const Linear& map) {
      return map.forward(x_BLD).unflatten(-1, {heads_, -1}).transpose(1, 2);
    };
    const at::Tensor context = at::scaled_dot_product_attention(heads(*q_), heads(*k_), heads(*v_), mask_B11L);
    const at::Tensor y = attention_norm_->forward(out_->forward(context.transpose(1, 2).flatten(2)) + x_BLD);
    return output_norm_->forward(contract_->forward(at::gelu(expand_->forward(y))) + y);
  }

 private:
  std::int64_t heads_;
  std::shared_ptr<Linear> q_, k_, v_, out_, expand_, contract_;
  std::shared_ptr<LayerNorm> attention_norm_, output_norm_;
};

}  // namespace

struct DistilBert::Layers {
  DistilBertSettings settings;
  std::shared_ptr<Embedding> words, positions;
  std::shared_ptr<LayerNorm> norm;
  std::vector<std::shared_ptr<BertBlock>> blocks;
};

void describe(config::Fields& fields, DistilBertSettings& s) {
  fields.add("vocab_size", s.vocab_size, "tokens");
  fields.add("dim", s.dim, "width");
  fields.add("n_layers", s.n_layers, "transformer layers");
  fields.add("n_heads", s.n_heads, "attention heads; divides dim");
  fields.add("hidden_dim", s.hidden_dim, "width inside the feed-forward part");
  fields.add("max_position_embeddings", s.max_position_embeddings, "longest text, in tokens");
}

DistilBert::DistilBert(const DistilBertSettings& s) : layers_(std::make_unique<Layers>()) {
  COHORT_THROW_UNLESS(
      s.vocab_size >= 1 && s.dim >= 1 && s.n_layers >= 1 && s.hidden_dim >= 1 && s.max_position_embeddings >= 2,
      "distilbert: vocab_size = {}, dim = {}, n_layers = {}, hidden_dim = {}, max_position_embeddings = {}: none may "
      "be "
      "zero",
      s.vocab_size, s.dim, s.n_layers, s.hidden_dim, s.max_position_embeddings);
  COHORT_THROW_UNLESS(s.n_heads >= 1 && s.dim % s.n_heads == 0, "distilbert: n_heads = {} does not divide dim = {}",
                      s.n_heads, s.dim);
  layers_->settings = s;
  const auto embeddings = register_module("embeddings", std::make_shared<ModuleGroup>());
  layers_->words = embeddings->hold("word_embeddings", std::make_shared<Embedding>(s.vocab_size, s.dim));
  layers_->positions =
      embeddings->hold("position_embeddings", std::make_shared<Embedding>(s.max_position_embeddings, s.dim));
  layers_->norm = embeddings->hold("LayerNorm", std::make_shared<LayerNorm>(s.dim, kLayerNormEps));
  const auto list =
      register_module("transformer", std::make_shared<ModuleGroup>())->hold("layer", std::make_shared<ModuleList>());
  for (int i = 0; i < s.n_layers; ++i) layers_->blocks.push_back(list->append(std::make_shared<BertBlock>(s)));
}

DistilBert::~DistilBert() = default;

const DistilBertSettings& DistilBert::settings() const {
  return layers_->settings;
}

at::Tensor DistilBert::forward(const at::Tensor& ids_BL, const at::Tensor& mask_BL) const {
  const DistilBertSettings& s = layers_->settings;
  COHORT_CHECK(ids_BL.dim() == 2 && ids_BL.sizes() == mask_BL.sizes(), "ids {} and mask {} must be (texts, tokens)",
               c10::str(ids_BL.sizes()), c10::str(mask_BL.sizes()));
  const std::int64_t length = ids_BL.size(1);
  COHORT_THROW_UNLESS(length <= s.max_position_embeddings, "distilbert: {} tokens, but the position table ends at {}",
                      length, s.max_position_embeddings);
  at::Tensor x = layers_->norm->forward(layers_->words->forward(ids_BL) + layers_->positions->first(length));
  const at::Tensor hidden = (mask_BL == 0).view({mask_BL.size(0), 1, 1, length});
  const at::Tensor mask =
      at::zeros(hidden.sizes(), x.options()).masked_fill(hidden, std::numeric_limits<float>::lowest());
  for (const auto& block : layers_->blocks) x = block->forward(x, mask);
  return x;
}

at::Tensor language_embedding(const DistilBert& encoder, const TokenBatch& batch, EmbeddedTokens tokens) {
  const at::NoGradGuard no_grad;
  COHORT_THROW_UNLESS(batch.ids.max().item<std::int64_t>() < encoder.settings().vocab_size,
                      "distilbert: token {}, but vocab_size = {}: vocabulary and weights do not belong together",
                      batch.ids.max().item<std::int64_t>(), encoder.settings().vocab_size);
  const at::Device device = encoder.parameters().front().device();
  const at::Tensor ids = batch.ids.to(device), mask = batch.mask.to(device);
  const at::Tensor states = encoder.forward(ids, mask);
  return (tokens == EmbeddedTokens::kAll ? states : states * mask.unsqueeze(-1)).sum(1);
}

std::string distilbert_name(const std::string& key) {
  for (const char* head : {"vocab_", "pre_classifier.", "classifier.", "qa_outputs."})
    if (key.starts_with(head)) return "";
  return key.starts_with("distilbert.") ? key.substr(11) : key;
}

}  // namespace cohort::models
