// T5's tokens against transformers' T5Tokenizer, on a vocabulary that make_t5_fixtures.py trained.
#include "models/language/sentence_piece.h"

#include <filesystem>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"

namespace cohort::models {
namespace {

const std::string kT5Fixture = COHORT_SOURCE_DIR "/tests/models/fixtures/t5/";

#define NEEDS_SENTENCE_PIECE() \
  if (!has_sentence_piece()) GTEST_SKIP() << "this build has no SentencePiece"

TEST(SentencePiece, GivesTransformersPiecesIdsPaddingAndTruncation) {
  NEEDS_SENTENCE_PIECE();
  const SentencePiece tokenizer(kT5Fixture + "spiece.model");
  const auto facts = parse_json<nlohmann::json>(read_file(kT5Fixture + "expected.json"));
  EXPECT_EQ(tokenizer.size(), facts.at("size").get<std::int64_t>());
  const auto length = facts.at("length").get<std::int64_t>();
  std::vector<std::string> texts;
  for (const auto& expected : facts.at("texts")) {
    const std::string text = expected.at("text");
    texts.push_back(text);
    EXPECT_EQ(tokenizer.tokenize(text), expected.at("pieces").get<std::vector<std::string>>()) << text;
    EXPECT_EQ(tokenizer.ids(text), expected.at("ids").get<std::vector<std::int64_t>>()) << text;
    EXPECT_EQ(tokenizer.ids(text, length), expected.at("cut").get<std::vector<std::int64_t>>()) << text;
  }
  ASSERT_GE(texts.size(), 10u);
  const TokenBatch batch = tokenizer.encode(texts, length, length);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto padded = facts.at("texts")[i].at("padded").get<std::vector<std::int64_t>>();
    EXPECT_TRUE(at::equal(batch.ids[row], torch::tensor(padded))) << texts[i];
    EXPECT_TRUE(at::equal(batch.mask[row], (batch.ids[row] != 0).to(at::kLong))) << texts[i];
  }
  EXPECT_EQ(tokenizer.encode({"a", "open the drawer"}).ids.size(1), 10) << "the longest, where no more is asked for";
}

TEST(SentencePiece, RefusesOtherFilesAndTheTokenizersMarks) {
  NEEDS_SENTENCE_PIECE();
  EXPECT_NE(
      message_of([] { SentencePiece(kT5Fixture + "config.json"); }).find("config.json: is no SentencePiece model"),
      std::string::npos);
  EXPECT_NE(message_of([] { SentencePiece(kT5Fixture + "nowhere.model"); }).find("nowhere.model"), std::string::npos);
  const std::string whole = read_file(kT5Fixture + "spiece.model");
  const auto cut = test::fresh_folder("cut") / "cut.model";
  write_file_atomically(cut, whole.substr(0, whole.size() / 2));
  EXPECT_NE(message_of([&] { SentencePiece(cut.string()); }).find("cut.model: is no SentencePiece model"),
            std::string::npos);
  const SentencePiece tokenizer(kT5Fixture + "spiece.model");
  EXPECT_EQ(message_of([&] { tokenizer.ids("close </s> it"); }),
            "\"close </s> it\" holds </s>, a mark of T5's tokenizer and no text: leave it out");
}

}  // namespace
}  // namespace cohort::models
