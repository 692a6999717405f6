/// What a person sees on a terminal after these bytes: enough of ECMA-48 for a progress bar (CR, LF, CSI K, CSI m).
#pragma once
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::test {

/// The lines of a screen that scrolls without end and is `width` columns wide (every character counts as one column).
/// Throws on an escape sequence that it does not know.
inline std::vector<std::string> screen_after(std::string_view bytes, int width) {
  using Line = std::vector<std::string>;
  std::vector<Line> lines(1);
  std::size_t row = 0, column = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const char c = bytes[i];
    if (c == '\r') {
      column = 0;
      ++i;
    } else if (c == '\n') {
      if (++row == lines.size()) lines.emplace_back();
      ++i;
    } else if (c == '\x1b') {
      std::size_t end = i + 1;
      if (end >= bytes.size() || bytes[end] != '[') throw std::runtime_error("an escape that is no CSI");
      for (++end; end < bytes.size() && !(bytes[end] >= 0x40 && bytes[end] <= 0x7E); ++end) {
      }
      if (bytes[end] == 'K') {
        lines[row].resize(std::min(lines[row].size(), column));
      } else if (bytes[end] != 'm') {
        throw std::runtime_error("unknown escape sequence");
      }
      i = end + 1;
    } else {
      std::size_t size = 1;
      while (i + size < bytes.size() && (static_cast<unsigned char>(bytes[i + size]) & 0xC0) == 0x80) ++size;
      if (column == static_cast<std::size_t>(width)) {  // wraps
        column = 0;
        if (++row == lines.size()) lines.emplace_back();
      }
      if (lines[row].size() <= column) lines[row].resize(column + 1, " ");
      lines[row][column++] = std::string(bytes.substr(i, size));
      i += size;
    }
  }
  std::vector<std::string> text;
  for (const Line& line : lines) {
    std::string joined;
    for (const std::string& cell : line) joined += cell;
    text.push_back(joined.substr(0, joined.find_last_not_of(' ') + 1));
  }
  while (!text.empty() && text.back().empty()) text.pop_back();
  return text;
}

}  // namespace cohort::test
