#include "core/utf8.h"

#include <cstdint>

#include "core/format.h"

namespace cohort {
namespace {

constexpr std::uint32_t kEscapes = 0xEF00;  // + byte; bytes below 0x80 never need one

/// The code point of `size` valid bytes.
std::uint32_t decode_utf8(std::string_view text, std::size_t size) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  std::uint32_t value = size == 1 ? byte(0) : byte(0) & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) value = value << 6 | (byte(i) & 0x3F);
  return value;
}

bool is_escape(std::uint32_t value) {
  return value >= kEscapes + 0x80 && value <= kEscapes + 0xFF;
}

}  // namespace

std::size_t utf8_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t size = (lead >> 5) == 0x6 ? 2 : (lead >> 4) == 0xE ? 3 : (lead >> 3) == 0x1E ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  const std::uint32_t value = decode_utf8(text, size);
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < kSmallest[size] || value > 0x10FFFF || surrogate ? 0 : size;
}

std::size_t find_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::string bytes_to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = utf8_size(bytes.substr(at));
    if (size > 0 && !is_escape(decode_utf8(bytes.substr(at), size))) {
      text += bytes.substr(at, size);
      at += size;
      continue;
    }
    for (const std::size_t end = at + (size == 0 ? 1 : size); at < end; ++at) {
      const std::uint32_t value = kEscapes + static_cast<unsigned char>(bytes[at]);
      text += static_cast<char>(0xE0 | value >> 12);
      text += static_cast<char>(0x80 | (value >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (value & 0x3F));
    }
  }
  return text;
}

std::string utf8_to_bytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::uint32_t value = size == 3 ? decode_utf8(text, size) : 0;
    if (is_escape(value))
      bytes += static_cast<char>(value - kEscapes);
    else
      bytes += text.substr(0, size == 0 ? 1 : size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return bytes;
}

std::string quoted_bytes(std::string_view text) {
  constexpr std::size_t kLongest = 40;  // bytes
  std::string result = "'";
  std::size_t i = 0;
  while (i < text.size() && i < kLongest) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // A sequence of UTF-8 stands as it is; a byte that is not part of one is written out.
    const std::size_t length = utf8_size(text.substr(i));
    if (length > 1) {
      result += text.substr(i, length);
      i += length;
      continue;
    }
    if (text[i] == '\n')
      result += "\\n";
    else if (text[i] == '\t')
      result += "\\t";
    else if (text[i] == '\r')
      result += "\\r";
    else if (byte < 32 || byte >= 127)
      result += format("\\x{:02x}", byte);
    else
      result += text[i];
    ++i;
  }
  return result + (i < text.size() ? "...'" : "'");
}

std::string utf8_remedy(const std::string& path) {
  return format(
      "convert it first: iconv -f ENCODING -t UTF-8 {} > NEW, where ENCODING is gbk for Chinese, latin1 for Western "
      "European, shift_jis for Japanese text (iconv -l lists all)",
      path);
}

}  // namespace cohort
