#include "tables/grouped_number.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tables/number_text.h"

namespace cohort::tables {

namespace {

std::vector<std::string_view> marks_of(std::string_view thousands) {
  if (thousands == "space") return {" ", "\u00a0", "\u202f"};
  if (thousands == "apostrophe") return {"'", "\u2019"};
  return {thousands};
}

}  // namespace

bool parse_grouped_number(std::string_view text, char decimal, std::string_view thousands, double& value) {
  if (thousands == std::string_view(&decimal, 1)) return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string plain;
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) plain += text[at++];
  int digits = 0;
  for (; at < text.size() && is_digit(text[at]); ++digits) plain += text[at++];
  for (const std::string_view mark : marks_of(thousands)) {
    // Before the first mark stand one to three digits, behind each three: 12.34 is none of thousands.
    if (digits > 3 || !text.substr(at).starts_with(mark)) continue;
    while (text.substr(at).starts_with(mark)) {
      at += mark.size();
      if (digits == 0 || text.size() < at + 3 || !std::all_of(text.data() + at, text.data() + at + 3, is_digit))
        return false;
      plain.append(text.substr(at, 3));
      at += 3;
    }
    if (at < text.size() && is_digit(text[at])) return false;
    break;
  }
  plain.append(text.substr(at));
  return parse_number(std::string_view(plain), decimal, value);
}

}  // namespace cohort::tables
