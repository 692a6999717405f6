/// Figures to files: charts/<name>.svg and charts/<name>.png, drawn by gnuplot; where there is none, the SVG alone (svg_figure.h).
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/gnuplot.h"

namespace cohort::report {

/// What became of a figure.
struct DrawnFigure {
  std::string name;
  std::string caption;
  std::filesystem::path svg;  ///< empty when it could not be made
  std::filesystem::path png;  ///< likewise
  std::string error;          ///< why, when one is missing
};

/// Draws one figure into `folder` (created with its parents). Files appear whole or not at all; old ones of that name
/// are replaced. Throws Error for a name that is no file name; everything else that goes wrong is in the result.
DrawnFigure draw(const Figure& figure, const std::filesystem::path& folder, const GnuplotSettings& settings = {});

/// What to install where titles or names of these figures hold Chinese, Japanese or Korean characters and no font of
/// this machine has them; "": nothing is missing, or fontconfig cannot be asked.
std::string missing_font(std::span<const Figure> figures);

/// Draws all of them, with one warning where a font is missing. Without gnuplot, one line in the log that names the package, and
/// SVG files alone.
std::vector<DrawnFigure> draw_all(std::span<const Figure> figures, const std::filesystem::path& folder,
                                  const GnuplotSettings& settings = {});

}  // namespace cohort::report
