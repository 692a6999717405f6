/// A figure as a gnuplot script (gnuplot 5.4 manual). Nothing in a title or a name can run a command: texts stand in
/// single quotes, where gnuplot substitutes nothing, without enhanced markup; data are numbers in here-documents.
#pragma once
#include <string>
#include <string_view>

#include "report/chart.h"

namespace cohort::report {

/// Colours by role. The report replaces these very colours in the SVG by CSS variables, for its dark mode.
inline constexpr const char* kInkColor = "#1f2328";
inline constexpr const char* kAxisColor = "#8b949e";
inline constexpr const char* kGridColor = "#e6e8eb";
inline constexpr const char* kReferenceColor = "#57606a";
inline constexpr const char* kPaperColor = "#ffffff";

/// Okabe and Ito, "Color universal design" (2008), without its yellow, which is too faint on white: told apart by
/// readers with any common colour blindness.
inline constexpr const char* kPalette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

/// Size of a figure in SVG user units; the PNG has twice as many pixels each way.
struct FigureSize {
  int width;
  int height;
};
FigureSize figure_size(const Figure& figure);

/// Writes `svg` and then `png` (names in gnuplot's working folder).
std::string gnuplot_script(const Figure& figure, const std::string& svg, const std::string& png);

/// A gnuplot string literal in single quotes. An apostrophe within becomes a typographic one (U+2019): gnuplot's own
/// way to write it, two in a row, ends the text early when it stands first. Control characters become blanks, bytes
/// that are not UTF-8 '?'.
std::string gnuplot_quote(std::string_view text);

}  // namespace cohort::report
