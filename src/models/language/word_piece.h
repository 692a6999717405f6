/// The uncased WordPiece tokenizer of BERT and DistilBERT (Devlin et al. 2019; Wu et al. 2016), from a vocabulary file
/// with one token per line.
///
///   const WordPiece tokenizer = WordPiece::from_file("vocab.txt");
///   const TokenBatch batch = tokenizer.encode({"put the marker in the pot", "open the drawer"});
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/language/token_batch.h"

namespace cohort::models {

class WordPiece {
 public:
  /// Tokens by their ids. Throws Error where [PAD], [UNK], [CLS] or [SEP] is missing or a token comes twice.
  explicit WordPiece(std::vector<std::string> vocabulary);
  /// Throws Error naming the file.
  static WordPiece from_file(const std::string& path);

  std::int64_t size() const { return static_cast<std::int64_t>(vocabulary_.size()); }

  /// The pieces of a text without [CLS] and [SEP]. Invalid UTF-8 is skipped.
  std::vector<std::string> tokenize(std::string_view text) const;
  /// [CLS], the pieces, [SEP]; at most max_length in all.
  std::vector<std::int64_t> ids(std::string_view text, std::int64_t max_length = 512) const;
  /// All texts, padded to the longest. Throws Error without a text.
  TokenBatch encode(const std::vector<std::string>& texts, std::int64_t max_length = 512) const;

 private:
  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string, std::int64_t> id_of_;
  std::int64_t pad_ = 0, unknown_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace cohort::models
