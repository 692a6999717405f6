// Instructions: the tokenizer against the tokenizers package, DistilBERT against transformers.
#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/initialise.h"
#include "models/language/distilbert.h"
#include "models/language/word_piece.h"

namespace cohort::models {
namespace {

// The reference ran in float64, ours in float32: two layers.
constexpr double kLanguageTolerance = 1e-5;

std::string vocabulary_path() {
  return std::string(COHORT_SOURCE_DIR) + "/tests/models/fixtures/diffusion/vocab.txt";
}

TEST(WordPiece, GivesTheReferencesPiecesInEveryScript) {
  const auto facts = read_facts("language");
  const WordPiece tokenizer = WordPiece::from_file(vocabulary_path());
  ASSERT_GE(facts.at("texts").size(), 15u);
  for (const auto& expected : facts.at("texts")) {
    const std::string text = expected.at("text");
    EXPECT_EQ(tokenizer.tokenize(text), expected.at("pieces").get<std::vector<std::string>>()) << text;
    EXPECT_EQ(tokenizer.ids(text), expected.at("ids").get<std::vector<std::int64_t>>()) << text;
  }
}

TEST(WordPiece, CutsLongTextsAndSkipsBytesThatAreNoUtf8) {
  const WordPiece tokenizer = WordPiece::from_file(vocabulary_path());
  const auto all = tokenizer.ids("put the cup on the table"), cut = tokenizer.ids("put the cup on the table", 5);
  EXPECT_EQ(cut.size(), 5u);
  EXPECT_EQ(cut.back(), all.back()) << "[SEP] stays";
  EXPECT_EQ(tokenizer.ids("put \xff\xc3 the\xe2\x82 cup \xf8"), tokenizer.ids("put the cup"));
  EXPECT_EQ(message_of([] {
              WordPiece({"[PAD]", "[UNK]", "[CLS]"});
            }),
            "vocabulary: token [SEP] is missing; is this a BERT vocab.txt?");
  EXPECT_EQ(message_of([] {
              WordPiece({"[PAD]", "[UNK]", "[PAD]"});
            }),
            "vocabulary: token \"[PAD]\" stands on lines 1 and 3");
}

TEST(DistilBert, HiddenStatesAndEmbeddingsAreTheReferences) {
  const auto facts = read_facts("language");
  DistilBertSettings settings;
  apply_settings(settings, facts.at("config"));
  DistilBert encoder(settings);
  fill(encoder);
  std::vector<std::string> names;
  for (const auto& item : encoder.named_parameters()) names.push_back(item.key());
  EXPECT_EQ(names, facts.at("names").get<std::vector<std::string>>());
  const WordPiece tokenizer = WordPiece::from_file(vocabulary_path());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 3; ++i) texts.push_back(facts.at("texts")[i].at("text"));
  const TokenBatch batch = tokenizer.encode(texts);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(batch.ids[static_cast<std::int64_t>(i)],
                          torch::tensor(facts.at("ids")[i].get<std::vector<std::int64_t>>())));
    EXPECT_TRUE(at::equal(batch.mask[static_cast<std::int64_t>(i)],
                          torch::tensor(facts.at("mask")[i].get<std::vector<std::int64_t>>())));
  }
  const at::Tensor states = encoder.forward(batch.ids, batch.mask);
  EXPECT_LE(relative_difference(states.flatten(), tensor_of(facts.at("states")), 1.0), kLanguageTolerance);
  EXPECT_LE(relative_difference(language_embedding(encoder, batch, EmbeddedTokens::kAll).flatten(),
                                tensor_of(facts.at("sum")), 1.0),
            kLanguageTolerance);
  const at::Tensor embedding = language_embedding(encoder, batch);
  EXPECT_LE(relative_difference(embedding[1], tensor_of(facts.at("sum_alone")), 1.0), kLanguageTolerance)
      << "as if the text stood alone";
  EXPECT_FALSE(embedding.requires_grad());
}

TEST(DistilBert, HasTheSizeAndNamesOfThePublishedModel) {
  const DistilBert encoder{DistilBertSettings{}};
  std::int64_t count = 0;
  for (const auto& p : encoder.parameters()) count += p.numel();
  EXPECT_EQ(count, read_facts("language").at("default_parameters").get<std::int64_t>());
  EXPECT_EQ(distilbert_name("distilbert.transformer.layer.5.ffn.lin1.weight"), "transformer.layer.5.ffn.lin1.weight");
  EXPECT_EQ(distilbert_name("embeddings.LayerNorm.bias"), "embeddings.LayerNorm.bias");
  EXPECT_EQ(distilbert_name("vocab_transform.weight"), "");
}

TEST(DistilBert, NamesWhatIsWrong) {
  DistilBertSettings settings{
      .vocab_size = 10, .dim = 8, .n_layers = 1, .n_heads = 2, .hidden_dim = 8, .max_position_embeddings = 4};
  DistilBert encoder(settings);
  initialise(encoder, 1);
  EXPECT_EQ(message_of([&] {
              encoder.forward(at::zeros({1, 5}, at::kLong), at::ones({1, 5}, at::kLong));
            }),
            "distilbert: 5 tokens, but the position table ends at 4");
  EXPECT_EQ(message_of([&] {
              language_embedding(encoder, {at::full({1, 2}, 10, at::kLong), at::ones({1, 2}, at::kLong)});
            }),
            "distilbert: token 10, but vocab_size = 10: vocabulary and weights do not belong together");
  settings.n_heads = 3;
  EXPECT_EQ(message_of([&] { DistilBert e(settings); }), "distilbert: n_heads = 3 does not divide dim = 8");
}

}  // namespace
}  // namespace cohort::models
