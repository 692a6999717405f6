#include "models/language/sentence_piece.h"

#include <algorithm>

#include <sentencepiece_processor.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort::models {
namespace {

constexpr std::int64_t kPad = 0, kEnd = 1, kUnknown = 2;

void refuse_marks(std::string_view text) {
  for (const std::string_view mark : {"</s>", "<pad>", "<unk>", "<extra_id_"})
    COHORT_THROW_UNLESS(text.find(mark) == std::string_view::npos,
                        "\"{}\" holds {}, a mark of T5's tokenizer and no text: leave it out", text, mark);
}

}  // namespace

struct SentencePiece::Impl {
  sentencepiece::SentencePieceProcessor processor;
};

bool has_sentence_piece() {
  return true;
}

SentencePiece::SentencePiece(const std::string& path) : impl_(std::make_unique<Impl>()) {
  // Read here: the library would write what it thinks of a missing file to standard error.
  const std::string bytes = read_file(path);
  const auto status = impl_->processor.LoadFromSerializedProto(bytes);
  COHORT_THROW_UNLESS(status.ok() && impl_->processor.GetPieceSize() > 0,
                      "{}: is no SentencePiece model: it is damaged, cut off or of another format", path);
  const auto& p = impl_->processor;
  COHORT_THROW_UNLESS(p.pad_id() == kPad && p.eos_id() == kEnd && p.unk_id() == kUnknown,
                      "{}: is not T5's vocabulary: <pad>, </s> and <unk> are its pieces {}, {} and {}, not 0, 1 and 2",
                      path, p.pad_id(), p.eos_id(), p.unk_id());
}
SentencePiece::~SentencePiece() = default;
SentencePiece::SentencePiece(SentencePiece&&) noexcept = default;

std::int64_t SentencePiece::size() const {
  return impl_->processor.GetPieceSize();
}

std::vector<std::string> SentencePiece::tokenize(std::string_view text) const {
  refuse_marks(text);
  std::vector<std::string> pieces;
  const auto status = impl_->processor.Encode(text, &pieces);
  COHORT_THROW_UNLESS(status.ok(), "\"{}\": {}", text, status.ToString());
  return pieces;
}

std::vector<std::int64_t> SentencePiece::ids(std::string_view text, std::int64_t max_length) const {
  COHORT_THROW_UNLESS(max_length >= 1, "a text may have {} tokens: at least 1, its end, is needed", max_length);
  refuse_marks(text);
  std::vector<int> numbers;
  const auto status = impl_->processor.Encode(text, &numbers);
  COHORT_THROW_UNLESS(status.ok(), "\"{}\": {}", text, status.ToString());
  const auto kept = std::min(numbers.size(), static_cast<std::size_t>(max_length - 1));
  std::vector<std::int64_t> ids(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(kept));
  ids.push_back(kEnd);
  return ids;
}

TokenBatch SentencePiece::encode(const std::vector<std::string>& texts, std::int64_t max_length,
                                 std::int64_t pad_to) const {
  COHORT_THROW_UNLESS(!texts.empty(), "no text is to be tokenized");
  std::vector<std::vector<std::int64_t>> rows;
  std::size_t length = static_cast<std::size_t>(std::max<std::int64_t>(pad_to, 0));
  for (const std::string& text : texts) {
    rows.push_back(ids(text, max_length));
    length = std::max(length, rows.back().size());
  }
  const auto n = static_cast<std::int64_t>(rows.size()), columns = static_cast<std::int64_t>(length);
  TokenBatch batch{at::full({n, columns}, kPad, at::kLong), at::zeros({n, columns}, at::kLong)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i * length);
    std::copy(rows[i].begin(), rows[i].end(), batch.ids.mutable_data_ptr<std::int64_t>() + at);
    std::fill_n(batch.mask.mutable_data_ptr<std::int64_t>() + at, rows[i].size(), 1);
  }
  return batch;
}

}  // namespace cohort::models
