/// What the uncased WordPiece tokenizer needs to know of Unicode.
#pragma once
#include <vector>

namespace cohort::models {

struct CodeRange {
  char32_t first, last;  ///< both included
};

/// Rising ranges of characters.
const std::vector<CodeRange>& removed_characters();  ///< control, format, private use; not tab, line feed, return
const std::vector<CodeRange>& white_space();
const std::vector<CodeRange>& punctuation();       ///< ASCII's symbols, too
const std::vector<CodeRange>& nonspacing_marks();  ///< accents and the like

/// Characters that lose their accents or their capital form: "<from><to>" in UTF-8, separated by spaces.
const char* folds();

}  // namespace cohort::models
