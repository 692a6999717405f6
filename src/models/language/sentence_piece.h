/// T5's tokenizer: SentencePiece (Kudo and Richardson 2018) on the model's own spiece.model, with T5's marks, as
/// transformers' T5Tokenizer has them: </s> (1) ends every text, <pad> (0) fills up the shorter ones.
///
///   const SentencePiece tokenizer("t5-v1_1-xxl/spiece.model");
///   const TokenBatch batch = tokenizer.encode({"open the drawer", "close it"}, 1024);
///
/// Needs Debian's libsentencepiece-dev at build time; without it the constructor throws Error saying so.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/language/token_batch.h"

namespace cohort::models {

/// Whether this build has it.
bool has_sentence_piece();

class SentencePiece {
 public:
  /// Throws Error naming the file: it cannot be read, is no SentencePiece model, or is not T5's (its marks have other
  /// numbers).
  explicit SentencePiece(const std::string& path);
  ~SentencePiece();
  SentencePiece(SentencePiece&&) noexcept;

  /// Pieces in the file; T5's hundred <extra_id_*> come behind them.
  std::int64_t size() const;
  /// The pieces of a text without </s>. Throws Error for a text that holds one of T5's marks (</s>, <pad>, <unk>,
  /// <extra_id_...>): transformers takes them for the marks themselves.
  std::vector<std::string> tokenize(std::string_view text) const;
  /// The pieces and </s>; at most max_length in all: what is behind them is cut off.
  std::vector<std::int64_t> ids(std::string_view text, std::int64_t max_length = 1024) const;
  /// All texts, padded to the longest, or to pad_to where that is more. Throws Error without a text.
  TokenBatch encode(const std::vector<std::string>& texts, std::int64_t max_length = 1024,
                    std::int64_t pad_to = 0) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::models
