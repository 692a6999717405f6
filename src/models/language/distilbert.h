/// DistilBERT (Sanh et al. 2019), which turns an instruction into an embedding: frozen, with the names of the
/// transformers package's DistilBertModel. Load its weights by those names (distilbert_name() for files of models
/// around it):
///
///   DistilBert encoder(settings);                       // distilbert-base-uncased has the default sizes
///   train::load_weights(encoder, "model.safetensors");  // names without "distilbert.", see distilbert_name
///   at::Tensor embedding = language_embedding(encoder, tokenizer.encode(texts));  // (B, 768)
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "core/config.h"
#include "models/language/word_piece.h"

namespace cohort::models {

/// Under the names of its config.json.
struct DistilBertSettings {
  int vocab_size = 30522;
  int dim = 768;
  int n_layers = 6;
  int n_heads = 12;  ///< divides dim
  int hidden_dim = 3072;
  int max_position_embeddings = 512;
};

void describe(config::Fields& fields, DistilBertSettings& settings);

class DistilBert : public torch::nn::Module {
 public:
  /// Throws Error for settings out of range.
  explicit DistilBert(const DistilBertSettings& settings);
  ~DistilBert() override;
  /// ids, mask (B, L) int64 on the model's device -> last hidden state (B, L, dim). Tokens with mask 0 are attended to
  /// by none. Without dropout, whatever the mode: the encoder is not trained. Throws Error for L beyond the positions
  /// or an id beyond the vocabulary.
  at::Tensor forward(const at::Tensor& ids_BL, const at::Tensor& mask_BL) const;
  const DistilBertSettings& settings() const;

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

enum class EmbeddedTokens {
  kAll,             ///< the DROID fork's: padding counts, so that an embedding depends on the longest text of its batch
  kWithoutPadding,  ///< what kAll gives for a text alone, whatever stands beside it
};

/// (B, dim): the sum of the last hidden state over the tokens, which the DROID fork takes for an embedding. Without a
/// graph. The batch may lie on the CPU.
at::Tensor language_embedding(const DistilBert& encoder, const TokenBatch& batch,
                              EmbeddedTokens tokens = EmbeddedTokens::kWithoutPadding);

/// Our name for a key of a file that holds a DistilBERT: "distilbert." in front goes; empty for the heads of other
/// tasks (vocab_*, pre_classifier, classifier, qa_outputs).
std::string distilbert_name(const std::string& key);

}  // namespace cohort::models
