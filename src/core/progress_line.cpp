#include "core/progress_line.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "core/format.h"

namespace cohort {
namespace {

constexpr int kShortestBar = 8;  // columns, without its ends
constexpr int kLongestBar = 30;

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kCyan = "\x1b[36m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kReset = "\x1b[0m";

/// A piece of the line: what is written, and the columns it takes (escape sequences take none).
struct Piece {
  std::string text;
  int columns = 0;
};

/// The next code point of a UTF-8 text; a byte that is no valid start stands for itself.
struct CodePoint {
  std::uint32_t value;
  std::size_t bytes;
};

CodePoint next_code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = lead < 0x80           ? 1
                            : (lead >> 5) == 0x6  ? 2
                            : (lead >> 4) == 0xE  ? 3
                            : (lead >> 3) == 0x1E ? 4
                                                  : 1;
  if (bytes == 1 || bytes > text.size()) return {lead, 1};
  std::uint32_t value = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {lead, 1};
    value = (value << 6) | (byte & 0x3F);
  }
  return {value, bytes};
}

int columns_of(std::uint32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
  if ((c >= 0x300 && c <= 0x36F) || c == 0x200B || c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F)) return 0;
  // Unicode Standard Annex 11, class W and F, to the block.
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF && c != 0x303F) ||
                    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) ||
                    (c >= 0xFF00 && c <= 0xFF60) || (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
                    (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

std::string clean(std::string_view text) {
  return clip_to_width(text, std::numeric_limits<int>::max());
}

Piece plain(std::string_view text) {
  std::string shown = clean(text);
  const int columns = display_width(shown);
  return {std::move(shown), columns};
}

Piece colored(std::string_view text, const char* code, const ProgressStyle& style) {
  Piece piece = plain(text);
  if (style.color && !piece.text.empty()) piece.text = code + piece.text + kReset;
  return piece;
}

bool total_known(const ProgressState& s) {
  return s.total > 0;
}

/// done/total of `steps`, rounded down, in whole numbers: the last step means done.
int filled(const ProgressState& s, int steps) {
  constexpr std::int64_t kNoOverflow = std::int64_t{1} << 50;  // times 240 eighths stays below 2^63
  const std::int64_t scale = std::max<std::int64_t>(1, s.total / kNoOverflow);
  const std::int64_t total = s.total / scale;
  return static_cast<int>(std::clamp<std::int64_t>(s.done / scale, 0, total) * steps / total);
}

std::string count_text(const ProgressState& s) {
  return total_known(s) ? format("{}/{}", s.done, s.total) : format("{} {}", s.done, s.unit);
}

/// Rounded down: 100 % means done.
int percent(const ProgressState& s) {
  return filled(s, 100);
}

std::string time_text(const ProgressState& s) {
  const std::string elapsed = format_duration(s.elapsed);
  switch (s.phase) {
    case ProgressPhase::kFinished:
      return "took " + elapsed;
    case ProgressPhase::kStopped:
      return "stopped after " + elapsed;
    case ProgressPhase::kRunning:
      break;
  }
  return total_known(s) ? format("{}, left {}", elapsed, format_duration(s.left)) : elapsed;
}

bool rate_known(const ProgressState& s) {
  return std::isfinite(s.per_second) && s.per_second > 0;
}

std::string samples_text(const ProgressState& s) {
  const double rate = s.per_second * s.samples_per_unit;
  return format("{:.{}f} samples/s", rate, rate >= 100 ? 0 : 1);
}

Piece bar(const ProgressState& s, int length, const ProgressStyle& style) {
  const char* code = s.phase == ProgressPhase::kFinished  ? kGreen
                     : s.phase == ProgressPhase::kStopped ? kYellow
                                                          : kCyan;
  std::string blocks, rest;
  if (style.unicode) {
    static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int eighths = filled(s, length * 8);
    for (int i = 0; i < eighths / 8; ++i) blocks += "█";
    blocks += kEighths[eighths % 8];
    rest.assign(static_cast<std::size_t>(length - eighths / 8 - (eighths % 8 != 0)), ' ');
  } else {
    const int full = filled(s, length);
    blocks.assign(static_cast<std::size_t>(full), '#');
    rest.assign(static_cast<std::size_t>(length - full), '.');
  }
  if (style.color && !blocks.empty()) blocks = code + blocks + kReset;
  return {(style.unicode ? "▕" : "[") + blocks + rest + (style.unicode ? "▏" : "]"), length + 2};
}

/// The pieces after the count, most wanted first: 80 columns hold the rate and the first field.
std::vector<Piece> optional_pieces(const ProgressState& s, const ProgressStyle& style) {
  std::vector<Piece> pieces;
  if (rate_known(s)) pieces.push_back(plain(format_rate(s.per_second, s.unit)));
  for (const ProgressField& field : s.fields) {
    Piece name = colored(field.name, kDim, style);
    const Piece value = plain(field.value);
    pieces.push_back({name.text + " " + value.text, name.columns + 1 + value.columns});
  }
  if (rate_known(s) && s.samples_per_unit > 0)
    pieces.insert(pieces.begin() + std::min<std::ptrdiff_t>(2, std::ssize(pieces)), plain(samples_text(s)));
  return pieces;
}

constexpr int kGap = 2;  // columns between pieces

std::string join(const std::vector<Piece>& pieces) {
  std::string line;
  for (const Piece& piece : pieces) {
    if (!line.empty()) line += std::string(kGap, ' ');
    line += piece.text;
  }
  return line;
}

int joined_columns(const std::vector<Piece>& pieces) {
  int columns = 0;
  for (const Piece& piece : pieces) columns += piece.columns;
  return columns + kGap * std::max(0, static_cast<int>(pieces.size()) - 1);
}

}  // namespace

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const CodePoint c = next_code_point(text);
    columns += columns_of(c.value);
    text.remove_prefix(c.bytes);
  }
  return columns;
}

std::string clip_to_width(std::string_view text, int width) {
  std::string out;
  int columns = 0;
  while (!text.empty()) {
    const CodePoint c = next_code_point(text);
    const bool control = c.value < 0x20 || (c.value >= 0x7F && c.value < 0xA0);
    const int wanted = control ? 1 : columns_of(c.value);
    if (columns + wanted > width) break;
    columns += wanted;
    if (control)
      out += ' ';
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string lower;
    for (const char* p = value; *p != '\0'; ++p)
      lower.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(*p))));
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

std::string format_rate(double per_second, const std::string& unit) {
  if (!std::isfinite(per_second) || per_second <= 0) return "- " + unit + "/s";
  if (per_second < 1) return format("{:.2f} s/{}", 1 / per_second, unit);
  return format("{:.{}f} {}/s", per_second, per_second >= 100 ? 0 : 1, unit);
}

std::string progress_bar_line(const ProgressState& s, const ProgressStyle& style) {
  const Piece label = colored(s.label, kBold, style);
  const Piece count = plain(count_text(s));
  const Piece time = plain(time_text(s));
  std::vector<Piece> before, after;
  if (label.columns > 0) before.push_back(label);
  if (total_known(s)) before.push_back(plain(format("{:3d}%", percent(s))));
  after.push_back(count);

  const auto columns = [&](int bar_length) {
    std::vector<Piece> all = before;
    if (bar_length > 0) all.push_back({"", bar_length + 2});
    all.insert(all.end(), after.begin(), after.end());
    all.push_back(time);
    return joined_columns(all);
  };

  int bar_length = total_known(s) ? kShortestBar : 0;
  if (columns(bar_length) > style.width) bar_length = 0;
  if (columns(bar_length) > style.width) {
    // Too narrow for anything but the essence.
    return clip_to_width(total_known(s) ? format("{:3d}% {}", percent(s), time_text(s)) : count_text(s), style.width);
  }
  for (Piece& piece : optional_pieces(s, style)) {
    after.push_back(std::move(piece));
    if (columns(bar_length) > style.width) {
      after.pop_back();
      break;
    }
  }
  if (bar_length > 0) bar_length = std::min(kLongestBar, bar_length + style.width - columns(bar_length));

  std::vector<Piece> all = std::move(before);
  if (bar_length > 0) all.push_back(bar(s, bar_length, style));
  for (Piece& piece : after) all.push_back(std::move(piece));
  all.push_back(time);
  return join(all);
}

std::string progress_plain_line(const ProgressState& s) {
  std::string line = clean(s.label);
  if (!line.empty()) line += ' ';
  line += count_text(s);
  if (total_known(s)) line += format(" ({} %)", percent(s));
  if (rate_known(s)) {
    line += ", " + format_rate(s.per_second, s.unit);
    if (s.samples_per_unit > 0) line += ", " + samples_text(s);
  }
  for (const ProgressField& field : s.fields) line += ", " + clean(field.name) + " " + clean(field.value);
  if (s.phase != ProgressPhase::kRunning) return line + ", " + time_text(s);
  line += format(", {} elapsed", format_duration(s.elapsed));
  if (total_known(s)) line += format(", {} left", format_duration(s.left));
  return line;
}

}  // namespace cohort
