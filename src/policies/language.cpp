#include "policies/language.h"

#include <algorithm>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/language/word_piece.h"
#include "weights/foreign_weights.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

namespace cohort::policies {

void describe(config::Fields& fields, LanguageSettings& s) {
  fields.add("name", s.name, "what the network calls the observation");
  fields.add("weights", s.weights, "safetensors file of a DistilBERT that embeds instructions; empty: they are unused");
  fields.add("vocabulary", s.vocabulary, "its vocab.txt");
  fields.add("required", s.required, "the policy must see instructions");
  fields.section("encoder", [&] { models::describe(fields, s.encoder); });
}

std::vector<std::vector<float>> embed_instructions(const LanguageSettings& settings,
                                                   const std::vector<std::string>& texts) {
  COHORT_THROW_UNLESS(!settings.vocabulary.empty(),
                      "model.language.weights needs model.language.vocabulary, the vocab.txt of that DistilBERT");
  const models::WordPiece tokenizer = models::WordPiece::from_file(settings.vocabulary);
  COHORT_THROW_UNLESS(tokenizer.size() == settings.encoder.vocab_size,
                      "{} has {} tokens, but model.language.encoder.vocab_size is {}", settings.vocabulary,
                      tokenizer.size(), settings.encoder.vocab_size);
  models::DistilBert encoder(settings.encoder);
  // A file of a model around the encoder has heads of its own.
  weights::NamedTensors tensors;
  for (const auto& [key, tensor] : weights::read_safetensors(settings.weights).tensors)
    if (const std::string name = models::distilbert_name(weights::without_wrappers(key)); !name.empty())
      tensors.emplace_back(name, tensor);
  weights::load_weights(encoder, tensors, {}, settings.weights);
  // As the package does it, what follows the 512th token is left out; a smaller table of positions ends earlier.
  const std::int64_t longest = std::min<std::int64_t>(512, settings.encoder.max_position_embeddings);
  std::vector<std::vector<float>> rows;
  for (const std::string& text : texts) {
    const at::Tensor embedding =
        models::language_embedding(encoder, tokenizer.encode({text}, longest)).to(at::kCPU, at::kFloat).contiguous();
    const float* values = embedding.const_data_ptr<float>();
    rows.emplace_back(values, values + embedding.numel());
  }
  return rows;
}

LanguageWindows::LanguageWindows(std::shared_ptr<const data::RobotWindows> windows,
                                 std::vector<std::vector<float>> embeddings)
    : windows_(std::move(windows)), embeddings_(std::move(embeddings)) {
  COHORT_CHECK(embeddings_.size() == windows_->instructions().size(), "{} embeddings for {} instructions",
               embeddings_.size(), windows_->instructions().size());
  const auto specs = windows_->fields();
  const auto found =
      std::find_if(specs.begin(), specs.end(), [](const data::FieldSpec& spec) { return spec.name == "instruction"; });
  COHORT_CHECK(found != specs.end(), "the windows have no instructions");
  place_ = static_cast<std::size_t>(found - specs.begin());
}

std::vector<data::FieldSpec> LanguageWindows::fields() const {
  auto specs = windows_->fields();
  specs[place_] = {"language", ElementType::kFloat32, {static_cast<std::int64_t>(embeddings_.at(0).size())}};
  return specs;
}

void LanguageWindows::read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const {
  std::vector<ArrayView> inner(rows.begin(), rows.end());
  std::int64_t number = 0;
  inner[place_] = make_view(&number, {});
  windows_->read(index, epoch, inner);
  const std::vector<float>& embedding = embeddings_.at(static_cast<std::size_t>(number));
  std::copy(embedding.begin(), embedding.end(), rows[place_].span<float>().begin());
}

}  // namespace cohort::policies
