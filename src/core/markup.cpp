#include "core/markup.h"

#include "core/utf8.h"

namespace cohort {
namespace {

/// Bytes of the code point at the beginning of `text`, or 0 when it is no valid UTF-8, or not allowed in XML.
std::size_t valid_bytes(std::string_view text) {
  const std::string_view front = text.substr(0, 3);
  return front == "\xEF\xBF\xBE" || front == "\xEF\xBF\xBF" ? 0 : utf8_size(text);  // U+FFFE, U+FFFF
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

}  // namespace cohort
