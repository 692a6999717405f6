#include "models/language/word_piece.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include <utf8proc.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort::models {
namespace {

/// Longer words are unknown as a whole.
constexpr std::size_t kLongestWord = 100;

/// Code points; bytes that are no UTF-8 are skipped.
std::u32string decode(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), &code);
    if (size > 0) out.push_back(static_cast<char32_t>(code));
    text.remove_prefix(size > 0 ? static_cast<std::size_t>(size) : 1);
  }
  return out;
}

void append(std::string& out, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_tab_or_line_end(char32_t c) {
  return c == U'\t' || c == U'\n' || c == U'\r';
}

/// Control, format and private use.
bool is_removed(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return !is_tab_or_line_end(c) && (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                                    category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS);
}

/// The property White_Space, without control characters that are removed.
bool is_space(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return is_tab_or_line_end(c) || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

/// ASCII's symbols, too.
bool is_punctuation(char32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7F && !std::isalnum(static_cast<int>(c));
  const utf8proc_category_t category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/// The blocks that BERT takes for Chinese characters, which stand alone.
bool is_chinese(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                                       {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                                       {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [c](const auto& block) { return c >= block.first && c <= block.second; });
}

/// Without accents (canonical decomposition without nonspacing marks) and in small letters.
void append_folded(std::u32string& out, char32_t c) {
  constexpr int kLongest = 18;  // code points of a decomposition (Unicode Standard Annex 15)
  utf8proc_int32_t parts[kLongest];
  int last_class = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kLongest,
                              static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &last_class);
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    if (const auto part = static_cast<char32_t>(parts[i]); category_of(part) != UTF8PROC_CATEGORY_MN)
      out.push_back(static_cast<char32_t>(utf8proc_tolower(parts[i])));
}

/// Words and punctuation marks.
std::vector<std::u32string> words_of(std::string_view text) {
  std::u32string folded;
  for (const char32_t c : decode(text)) {
    if (c == 0xFFFD || is_removed(c)) continue;
    if (is_space(c)) {
      folded.push_back(U' ');
    } else if (is_chinese(c)) {
      folded.push_back(U' ');
      append_folded(folded, c);
      folded.push_back(U' ');
    } else {
      append_folded(folded, c);
    }
  }
  std::vector<std::u32string> words;
  bool open = false;
  for (const char32_t c : folded) {
    if (is_space(c)) {
      open = false;
    } else if (is_punctuation(c)) {
      words.emplace_back(1, c);
      open = false;
    } else {
      if (!open) words.emplace_back();
      words.back().push_back(c);
      open = true;
    }
  }
  return words;
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> vocabulary) : vocabulary_(std::move(vocabulary)) {
  for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
    const auto [at, is_new] = id_of_.emplace(vocabulary_[i], static_cast<std::int64_t>(i));
    COHORT_THROW_UNLESS(is_new, "vocabulary: token \"{}\" stands on lines {} and {}", vocabulary_[i], at->second + 1,
                        i + 1);
  }
  const std::pair<const char*, std::int64_t*> special[] = {
      {"[PAD]", &pad_}, {"[UNK]", &unknown_}, {"[CLS]", &begin_}, {"[SEP]", &end_}};
  for (const auto& [token, id] : special) {
    const auto found = id_of_.find(token);
    COHORT_THROW_UNLESS(found != id_of_.end(), "vocabulary: token {} is missing; is this a BERT vocab.txt?", token);
    *id = found->second;
  }
}

WordPiece WordPiece::from_file(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t next = end + 1;
    if (end > begin && text[end - 1] == '\r') --end;
    lines.push_back(text.substr(begin, end - begin));
    begin = next;
  }
  try {
    return WordPiece(std::move(lines));
  } catch (const Error& error) {
    throw Error(format("{}: {}", path, error.what()));
  }
}

std::vector<std::string> WordPiece::tokenize(std::string_view text) const {
  std::vector<std::string> pieces;
  for (const std::u32string& word : words_of(text)) {
    if (word.size() > kLongestWord) {
      pieces.push_back(vocabulary_[static_cast<std::size_t>(unknown_)]);
      continue;
    }
    std::vector<std::string> of_word;
    std::size_t begin = 0;
    while (begin < word.size()) {
      // The longest piece of the vocabulary that begins here.
      std::size_t end = word.size();
      for (; end > begin; --end) {
        std::string piece = begin == 0 ? "" : "##";
        for (std::size_t i = begin; i < end; ++i) append(piece, word[i]);
        if (!id_of_.contains(piece)) continue;
        of_word.push_back(std::move(piece));
        break;
      }
      if (end == begin) break;
      begin = end;
    }
    if (begin < word.size())
      pieces.push_back(vocabulary_[static_cast<std::size_t>(unknown_)]);
    else
      pieces.insert(pieces.end(), of_word.begin(), of_word.end());
  }
  return pieces;
}

std::vector<std::int64_t> WordPiece::ids(std::string_view text, std::int64_t max_length) const {
  COHORT_CHECK(max_length >= 2, "a text has at least [CLS] and [SEP], but max_length = {}", max_length);
  std::vector<std::int64_t> ids{begin_};
  for (const std::string& piece : tokenize(text)) {
    if (static_cast<std::int64_t>(ids.size()) == max_length - 1) break;
    ids.push_back(id_of_.at(piece));
  }
  ids.push_back(end_);
  return ids;
}

TokenBatch WordPiece::encode(const std::vector<std::string>& texts, std::int64_t max_length) const {
  COHORT_THROW_UNLESS(!texts.empty(), "there is no text to encode");
  std::vector<std::vector<std::int64_t>> rows;
  std::size_t longest = 0;
  for (const std::string& text : texts) {
    rows.push_back(ids(text, max_length));
    longest = std::max(longest, rows.back().size());
  }
  const auto count = static_cast<std::int64_t>(rows.size()), length = static_cast<std::int64_t>(longest);
  TokenBatch batch{at::full({count, length}, pad_, at::kLong), at::zeros({count, length}, at::kLong)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i), used = static_cast<std::int64_t>(rows[i].size());
    batch.ids[row].narrow(0, 0, used).copy_(torch::tensor(rows[i]));
    batch.mask[row].narrow(0, 0, used).fill_(1);
  }
  return batch;
}

}  // namespace cohort::models
