/// A DistilBERT of a test's size, with the vocabulary of the language fixtures.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/format.h"
#include "models/language/distilbert.h"
#include "models/language/word_piece.h"
#include "policies/language.h"
#include "weights/weights.h"

namespace cohort::policies {

/// Weights in `folder`, embeddings of `width` numbers.
inline LanguageSettings write_small_language(const std::filesystem::path& folder, int width) {
  LanguageSettings language;
  language.vocabulary = COHORT_SOURCE_DIR "/tests/models/fixtures/diffusion/vocab.txt";
  language.weights = (folder / "language.safetensors").string();
  language.encoder = {.vocab_size = static_cast<int>(models::WordPiece::from_file(language.vocabulary).size()),
                      .dim = width,
                      .n_layers = 1,
                      .n_heads = 2,
                      .hidden_dim = 16,
                      .max_position_embeddings = 64};
  models::DistilBert encoder(language.encoder);
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  for (const at::Tensor& parameter : encoder.parameters()) at::Tensor(parameter).normal_(0.0, 0.5);
  weights::save_weights(encoder, language.weights);
  return language;
}

/// As a command line names it.
inline std::vector<std::string> overrides_of(const LanguageSettings& language) {
  const models::DistilBertSettings& encoder = language.encoder;
  return {"model.language.name=" + language.name,
          "model.language.weights=" + language.weights,
          "model.language.vocabulary=" + language.vocabulary,
          format("model.language.encoder.vocab_size={}", encoder.vocab_size),
          format("model.language.encoder.dim={}", encoder.dim),
          format("model.language.encoder.n_layers={}", encoder.n_layers),
          format("model.language.encoder.n_heads={}", encoder.n_heads),
          format("model.language.encoder.hidden_dim={}", encoder.hidden_dim),
          format("model.language.encoder.max_position_embeddings={}", encoder.max_position_embeddings)};
}

}  // namespace cohort::policies
