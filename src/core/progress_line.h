/// The text of a progress display: one line that fits a terminal, or one line of a log. No input or output here.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// A figure beside the bar, as text: {"loss", "0.4231"}.
struct ProgressField {
  std::string name;
  std::string value;
};

enum class ProgressPhase { kRunning, kFinished, kStopped };

/// What a line says.
struct ProgressState {
  std::string label;
  std::int64_t done = 0;
  std::int64_t total = 0;       ///< at most 0: unknown
  std::string unit = "it";      ///< of the rate: "12.3 it/s"
  double per_second = 0;        ///< units per second; not finite or 0: unknown
  double samples_per_unit = 0;  ///< above 0: "samples/s" is shown too
  double elapsed = 0;           ///< s
  double left = 0;              ///< s; not finite: unknown, shown as --:--
  ProgressPhase phase = ProgressPhase::kRunning;
  std::span<const ProgressField> fields;  ///< the first are the last to be left out of a narrow terminal
};

struct ProgressStyle {
  int width = 80;       ///< columns that the line may take
  bool unicode = true;  ///< block characters; otherwise ASCII
  bool color = true;    ///< ANSI colours of the terminal's own palette
};

/// "train  37% ▕██████▍        ▏ 370/1000  12.3 it/s  loss 0.4231  394 samples/s  01:05, left 02:41"
/// Never wider than style.width columns; what does not fit is left out, fields from the last one on, then the bar.
std::string progress_bar_line(const ProgressState& state, const ProgressStyle& style);

/// The same for a log: everything, separated by commas, ASCII apart from the caller's texts.
std::string progress_plain_line(const ProgressState& state);

/// "12.3 it/s", or "4.20 s/it" below one per second; "- it/s" when unknown.
std::string format_rate(double per_second, const std::string& unit);

/// Terminal columns of a UTF-8 text (2 for East Asian wide characters, 0 for combining marks).
int display_width(std::string_view text);

/// The text without control characters (they would move the cursor), cut to `width` columns.
std::string clip_to_width(std::string_view text, int width);

/// True when LC_ALL, LC_CTYPE or LANG (the first that is set) names UTF-8.
bool locale_is_utf8();

}  // namespace cohort
