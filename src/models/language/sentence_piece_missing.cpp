// Stands in where the build has no SentencePiece.
#include "core/error.h"
#include "models/language/sentence_piece.h"

namespace cohort::models {

struct SentencePiece::Impl {};

bool has_sentence_piece() {
  return false;
}

SentencePiece::SentencePiece(const std::string& path) {
  throw Error(format(
      "{}: this build has no SentencePiece, which T5's tokens need: install libsentencepiece-dev and build again",
      path));
}
SentencePiece::~SentencePiece() = default;
SentencePiece::SentencePiece(SentencePiece&&) noexcept = default;
std::int64_t SentencePiece::size() const {
  return 0;
}
std::vector<std::string> SentencePiece::tokenize(std::string_view) const {
  return {};
}
std::vector<std::int64_t> SentencePiece::ids(std::string_view, std::int64_t) const {
  return {};
}
TokenBatch SentencePiece::encode(const std::vector<std::string>&, std::int64_t, std::int64_t) const {
  return {};
}

}  // namespace cohort::models
