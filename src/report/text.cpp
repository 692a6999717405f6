#include "report/text.h"

#include <cstdint>

namespace cohort::report {
namespace {

/// Bytes of the code point at the beginning of `text`, or 0 when it is no valid UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF).
std::size_t valid_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = (lead >> 5) == 0x6 ? 2 : (lead >> 4) == 0xE ? 3 : (lead >> 3) == 0x1E ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  std::uint32_t value = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  const bool noncharacter = value == 0xFFFE || value == 0xFFFF;  // not allowed in XML
  return value < kSmallest[size] || value > 0x10FFFF || surrogate || noncharacter ? 0 : size;
}

}  // namespace

std::string clean_utf8(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = valid_bytes(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    if (size == 0) {
      out += '?';
      text.remove_prefix(1);
      continue;
    }
    const bool c1_control = size == 2 && lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (keep_lines && (lead == '\n' || lead == '\t'))
      out += static_cast<char>(lead);
    else if (lead < 0x20 || lead == 0x7F || c1_control)
      out += ' ';
    else
      out += text.substr(0, size);
    text.remove_prefix(size);
  }
  return out;
}

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : clean_utf8(text, true)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string percent_encode(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~/";
  std::string out;
  for (const char c : path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace cohort::report
