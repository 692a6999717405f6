#include "models/language/word_piece.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "models/language/unicode_tables.h"

namespace cohort::models {
namespace {

/// Longer words are unknown as a whole.
constexpr std::size_t kLongestWord = 100;

/// Code points; bytes that are no UTF-8 are skipped.
std::u32string decode(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80                   ? 1
                               : byte >= 0xF0 && byte < 0xF5 ? 4
                               : byte >= 0xE0                ? 3
                               : byte >= 0xC2                ? 2
                                                             : 0;
    if (length == 0 || byte >= 0xF5 || i + length > text.size()) {
      ++i;
      continue;
    }
    char32_t code = length == 1 ? byte : byte & (0x7Fu >> length);
    bool valid = true;
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      valid = valid && (next & 0xC0u) == 0x80u;
      code = (code << 6) | (next & 0x3Fu);
    }
    valid = valid && !(length == 3 && code < 0x800) && !(length == 4 && (code < 0x10000 || code > 0x10FFFF)) &&
            !(code >= 0xD800 && code <= 0xDFFF);
    if (valid) out.push_back(code);
    i += valid ? length : 1;
  }
  return out;
}

void append(std::string& out, char32_t c) {
  const auto byte = [&](char32_t b) { out.push_back(static_cast<char>(static_cast<unsigned char>(b))); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | (c >> 6));
    byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | (c >> 12));
    byte(0x80 | ((c >> 6) & 0x3F));
    byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | (c >> 18));
    byte(0x80 | ((c >> 12) & 0x3F));
    byte(0x80 | ((c >> 6) & 0x3F));
    byte(0x80 | (c & 0x3F));
  }
}

bool in(const std::vector<CodeRange>& ranges, char32_t c) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t v, const CodeRange& r) { return v < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

/// The blocks that BERT takes for Chinese characters, which stand alone.
bool is_chinese(char32_t c) {
  static const std::vector<CodeRange> kBlocks{{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                              {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                              {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return in(kBlocks, c);
}

/// Without accents and in small letters.
void append_folded(std::u32string& out, char32_t c) {
  static const std::unordered_map<char32_t, std::u32string> kFolds = [] {
    std::unordered_map<char32_t, std::u32string> map;
    const std::u32string text = decode(folds());
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = std::min(text.find(U' ', i), text.size());
      map.emplace(text[i], text.substr(i + 1, end - i - 1));
      i = end + 1;
    }
    return map;
  }();
  if (in(nonspacing_marks(), c)) return;
  if (c >= 0xAC00 && c <= 0xD7A3) {
    // Hangul syllables to their letters (The Unicode Standard, section 3.12).
    const char32_t s = c - 0xAC00;
    out.push_back(0x1100 + s / 588);
    out.push_back(0x1161 + s % 588 / 28);
    if (s % 28 != 0) out.push_back(0x11A7 + s % 28);
    return;
  }
  const auto fold = kFolds.find(c);
  if (fold == kFolds.end())
    out.push_back(c);
  else
    out += fold->second;
}

/// Words and punctuation marks.
std::vector<std::u32string> words_of(std::string_view text) {
  std::u32string folded;
  for (const char32_t c : decode(text)) {
    if (c == 0xFFFD || in(removed_characters(), c)) continue;
    if (in(white_space(), c)) {
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
    if (in(white_space(), c)) {
      open = false;
    } else if (in(punctuation(), c)) {
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
