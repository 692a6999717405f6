/// What a chart is drawn from, however it is drawn (gnuplot_script.h, svg_figure.h): series thinned and coloured, axes, legend, and
/// where all of it stands.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/chart_ticks.h"

namespace cohort::report {

// Layout in SVG user units (pixels at 96 dpi).
inline constexpr int kFontSize = 12;
inline constexpr int kTitleSize = 14;
inline constexpr int kLeftMargin = 68;
inline constexpr int kRightMargin = 22;
inline constexpr int kTopMargin = 42;
inline constexpr int kLegendRow = 20;
inline constexpr int kBottomMargin = 62;
inline constexpr int kLegendBand = 32;  ///< above all panels, for a shared legend

struct PanelSize {
  int width;
  int height;
};
PanelSize panel_size(const Figure& figure);

/// One series as it will be plotted.
struct Drawn {
  const Series* series;
  std::string color;                        ///< "rrggbb"
  std::vector<std::array<double, 3>> rows;  ///< x, y and a third column (band, bin); NaN in y: a gap
};

/// The series that have something to show, in the chart's order.
std::vector<Drawn> prepare_all(const Chart& chart);
/// As places in `all`, in the order of drawing: the first at the back.
std::vector<std::size_t> drawing_order(const std::vector<Drawn>& all);
bool has_rows(const Drawn& drawn);
/// Points of a line that have no neighbour to be joined with (the only validation so far, a value between two gaps).
Drawn lone_points(const Drawn& drawn);
bool in_legend(const Drawn& drawn);
/// More points than this are drawn so that those behind show through.
inline constexpr std::size_t kCloud = 200;
/// Of the points of a cloud, in units of gnuplot's: smaller where there are many.
double point_size(const Drawn& drawn);

struct Axes {
  Axis x;
  Axis y;
};
Axes axes_of(const Chart& chart, const std::vector<Drawn>& all, const PanelSize& size);

/// Rows and columns of the legend; a legend of one entry repeats the title or the axis, so it is left out.
struct Legend {
  int entries = 0;
  int columns = 1;
  int rows() const { return entries == 0 ? 0 : (entries + columns - 1) / columns; }
};
Legend legend_of(const std::vector<Drawn>& all, int width);

/// Height of the band above all panels.
int legend_band(const Figure& figure);

}  // namespace cohort::report
