#include "report/gnuplot_script.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/format.h"
#include "report/chart_ticks.h"
#include "report/downsample.h"
#include "report/histogram.h"
#include "report/text.h"

namespace cohort::report {
namespace {

// Layout in SVG user units (pixels at 96 dpi).
constexpr int kFontSize = 12;
constexpr int kTitleSize = 14;
constexpr double kPngFontScale = 1.5;  // pngcairo's sizes are points, 4/3 of a unit; times 1.5 is twice the SVG's size
constexpr int kLeftMargin = 68;
constexpr int kRightMargin = 22;
constexpr int kTopMargin = 42;
constexpr int kLegendRow = 20;
constexpr int kBottomMargin = 62;
constexpr int kLegendBand = 32;            // above all panels, for a shared legend
constexpr double kCharacterWidth = 7.0;    // average at kFontSize, for the legend's columns
constexpr double kLegendSample = 52;       // sample and gaps of a legend entry
constexpr std::size_t kLineBuckets = 600;  // about one per pixel of the widest panel
constexpr std::size_t kCloudPoints = 2000;
constexpr double kNearZero = 0.05;    // an axis that begins within this share of its span above 0 begins at 0
constexpr double kFaintTail = 0.005;  // share of the lowest raw values that a logarithmic axis may cut off

constexpr std::size_t kPaletteSize = std::size(kPalette);

struct PanelSize {
  int width;
  int height;
};

PanelSize panel_size(int columns, bool same_axes) {
  if (columns == 1) return same_axes ? PanelSize{620, 620} : PanelSize{880, 380};
  if (columns == 2) return {460, same_axes ? 470 : 360};
  return {360, same_axes ? 390 : 300};
}

bool any_same_axes(const Figure& figure) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [](const Chart& c) { return c.same_axes; });
}

/// One series as it will be plotted.
struct Drawn {
  const Series* series;
  std::string color;                        ///< "rrggbb"
  std::vector<std::array<double, 3>> rows;  ///< x, y and a third column (band, bin); NaN in y: a gap
};

/// Drawn in this order, the first at the back. A few points mark something; many are a cloud, on which lines must be
/// seen.
int layer(const Drawn& drawn) {
  constexpr std::size_t kMarks = 10;
  switch (drawn.series->style) {
    case SeriesStyle::kBand:
    case SeriesStyle::kHistogram:
      return 0;
    case SeriesStyle::kFaintLine:
      return 1;
    case SeriesStyle::kPoints:
      return drawn.rows.size() <= kMarks ? 5 : 2;
    case SeriesStyle::kReference:
      return 3;
    case SeriesStyle::kLine:
      return 4;
  }
  return 4;
}

double not_drawable() {
  return std::nan("");
}

void add_histogram(const Series& series, Drawn& drawn) {
  const Histogram h = make_histogram(series.ys);
  for (std::size_t i = 0; i < h.counts.size(); ++i)
    drawn.rows.push_back({h.low + (static_cast<double>(i) + 0.5) * h.width, h.counts[i], h.width});
}

void add_band(const Series& series, Drawn& drawn) {
  COHORT_CHECK(series.ys_high.size() == series.ys.size(), "band {}: {} low and {} high values", series.name,
               series.ys.size(), series.ys_high.size());
  const std::size_t stride = std::max<std::size_t>(1, series.xs.size() / (2 * kLineBuckets));
  for (std::size_t i = 0; i < series.xs.size(); i += stride) {
    const bool whole = drawable(series.ys[i]) && drawable(series.ys_high[i]);
    drawn.rows.push_back({series.xs[i], whole ? series.ys[i] : not_drawable(), series.ys_high[i]});
  }
}

Drawn prepare(const Series& series, const Chart& chart, std::string color) {
  Drawn drawn{&series, std::move(color), {}};
  if (series.style == SeriesStyle::kHistogram) {
    add_histogram(series, drawn);
    return drawn;
  }
  COHORT_CHECK(series.xs.size() == series.ys.size(), "series {}: {} xs and {} ys", series.name, series.xs.size(),
               series.ys.size());
  if (series.style == SeriesStyle::kBand) {
    add_band(series, drawn);
    return drawn;
  }
  // What a logarithmic axis cannot show becomes a gap before thinning, so that no extreme of a bucket is lost to it.
  std::vector<double> xs, ys = series.ys;
  for (std::size_t i = 0; i < ys.size(); ++i)
    if (chart.log_y && ys[i] <= 0) ys[i] = not_drawable();
  xs = series.xs;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (chart.log_x && xs[i] <= 0) ys[i] = not_drawable();
  const Points points =
      series.style == SeriesStyle::kPoints ? thin_cloud(xs, ys, kCloudPoints) : thin_line(xs, ys, kLineBuckets);
  for (std::size_t i = 0; i < points.xs.size(); ++i) drawn.rows.push_back({points.xs[i], points.ys[i], 0.0});
  return drawn;
}

bool has_rows(const Drawn& drawn) {
  return std::any_of(drawn.rows.begin(), drawn.rows.end(),
                     [](const auto& row) { return drawable(row[0]) && drawable(row[1]); });
}

std::vector<Drawn> prepare_all(const Chart& chart) {
  std::array<bool, kPaletteSize> taken{};
  for (const Series& s : chart.series)
    if (s.color >= 0) taken[static_cast<std::size_t>(s.color) % kPaletteSize] = true;
  std::size_t next = 0;
  const auto next_color = [&] {
    for (std::size_t tries = 0; tries < kPaletteSize && taken[next % kPaletteSize]; ++tries) ++next;
    return next++ % kPaletteSize;
  };
  std::vector<Drawn> all;
  for (const Series& s : chart.series) {
    std::string color = kReferenceColor;
    if (s.style != SeriesStyle::kReference)
      color = kPalette[s.color >= 0 ? static_cast<std::size_t>(s.color) % kPaletteSize : next_color()];
    Drawn drawn = prepare(s, chart, color.substr(1));
    if (has_rows(drawn)) all.push_back(std::move(drawn));
  }
  return all;
}

struct Axes {
  Axis x;
  Axis y;
};

Axes axes_of(const Chart& chart, const std::vector<Drawn>& all, const PanelSize& size) {
  std::vector<double> xs, ys;
  bool from_zero = false, lines = false;
  for (const Drawn& drawn : all) {
    const SeriesStyle style = drawn.series->style;
    std::vector<double> its_ys;
    for (const auto& [x, y, third] : drawn.rows) {
      if (!drawable(y)) continue;
      its_ys.push_back(y);
      const double half_bin = style == SeriesStyle::kHistogram ? third / 2 : 0;
      xs.push_back(x - half_bin);
      xs.push_back(x + half_bin);
      if (style == SeriesStyle::kBand) its_ys.push_back(third);
    }
    from_zero = from_zero || style == SeriesStyle::kHistogram;
    lines = lines || style == SeriesStyle::kLine || style == SeriesStyle::kFaintLine || style == SeriesStyle::kBand;
    if (chart.log_y && style == SeriesStyle::kFaintLine) {
      // One lucky batch with nearly no loss would take half of the axis.
      std::sort(its_ys.begin(), its_ys.end());
      its_ys.erase(its_ys.begin(),
                   its_ys.begin() + static_cast<std::ptrdiff_t>(kFaintTail * static_cast<double>(its_ys.size())));
    }
    ys.insert(ys.end(), its_ys.begin(), its_ys.end());
  }
  if (lines && !chart.log_x && !xs.empty()) {
    const auto [low, high] = std::minmax_element(xs.begin(), xs.end());
    if (*low > 0 && *low < kNearZero * (*high - *low)) xs.push_back(0);
  }
  const int wanted_x = std::max(3, size.width / 80), wanted_y = std::max(3, size.height / 55);
  if (chart.same_axes) {
    xs.insert(xs.end(), ys.begin(), ys.end());
    const Axis axis = linear_axis(xs, 0.03, wanted_y);
    return {axis, axis};
  }
  // Lines begin at the frame; clouds and bars need room around them.
  const double x_padding = lines ? 0.0 : 0.03;
  Axes axes{chart.log_x ? log_axis(xs, x_padding) : linear_axis(xs, x_padding, wanted_x),
            chart.log_y ? log_axis(ys, 0.05) : linear_axis(ys, 0.06, wanted_y)};
  if (from_zero && !chart.log_y) axes.y.low = 0;
  if (chart.share && !chart.log_y) axes.y = linear_axis(std::array{0.0, 1.0}, 0, wanted_y);
  return axes;
}

std::string tics_command(const char* name, const Axis& axis) {
  std::string list;
  for (const Tick& tick : axis.ticks) {
    if (tick.value < axis.low || tick.value > axis.high) continue;
    list += format("{}{} {:.17g}", list.empty() ? "" : ", ", gnuplot_quote(tick.label), tick.value);
  }
  return format("set {} ({}) noenhanced\n", name, list);
}

std::string data_block(const std::string& name, const Drawn& drawn) {
  std::string text = format("${} << EOD\n", name);
  bool gap = true;
  for (const auto& [x, y, third] : drawn.rows) {
    if (!drawable(x) || !drawable(y) || !drawable(third)) {
      if (!gap) text += "\n";
      gap = true;
      continue;
    }
    text += format("{:.9g} {:.9g} {:.9g}\n", x, y, third);
    gap = false;
  }
  return text + "EOD\n";
}

/// Points of a line that have no neighbour to be joined with (the only validation so far, a value between two gaps).
Drawn lone_points(const Drawn& drawn) {
  Drawn lone{drawn.series, drawn.color, {}};
  const SeriesStyle style = drawn.series->style;
  if (style != SeriesStyle::kLine && style != SeriesStyle::kFaintLine) return lone;
  const auto whole = [&](std::size_t i) {
    return i < drawn.rows.size() && drawable(drawn.rows[i][0]) && drawable(drawn.rows[i][1]);
  };
  for (std::size_t i = 0; i < drawn.rows.size(); ++i)
    if (whole(i) && !whole(i + 1) && (i == 0 || !whole(i - 1))) lone.rows.push_back(drawn.rows[i]);
  return lone;
}

std::string style_command(const Drawn& drawn) {
  const std::string& c = drawn.color;
  switch (drawn.series->style) {
    case SeriesStyle::kLine:
      return format("using 1:2 with lines lw 2 lc rgb '#{}'", c);
    case SeriesStyle::kFaintLine:
      return format("using 1:2 with lines lw 1 lc rgb '#b0{}'", c);
    case SeriesStyle::kPoints: {
      const std::size_t n = drawn.rows.size();
      const double point_size = n > 500 ? 0.35 : n > 60 ? 0.5 : 0.8;
      return format("using 1:2 with points pt 7 ps {} lc rgb '#{}{}'", point_size, n > 200 ? "60" : "", c);
    }
    case SeriesStyle::kBand:
      return format("using 1:2:3 with filledcurves lc rgb '#c0{}'", c);
    case SeriesStyle::kHistogram:
      return format("using 1:2:3 with boxes fill solid 1 border rgb '{}' lc rgb '#40{}'", kPaperColor, c);
    case SeriesStyle::kReference:
      return format("using 1:2 with lines lw 1.5 dt (8,5) lc rgb '#{}'", c);
  }
  return "";
}

/// Drawn apart from the data, so that thin or pale series are recognised in the legend.
std::string legend_entry(const Drawn& drawn) {
  const std::string title = gnuplot_quote(drawn.series->name);
  const std::string& c = drawn.color;
  switch (drawn.series->style) {
    case SeriesStyle::kPoints:
      return format("keyentry with points pt 7 ps 0.9 lc rgb '#{}' title {}", c, title);
    case SeriesStyle::kBand:
      return format("keyentry with boxes fill solid 1 noborder lc rgb '#c0{}' title {}", c, title);
    case SeriesStyle::kHistogram:
      return format("keyentry with boxes fill solid 1 noborder lc rgb '#40{}' title {}", c, title);
    case SeriesStyle::kFaintLine:
      return format("keyentry with lines lw 1.5 lc rgb '#90{}' title {}", c, title);
    case SeriesStyle::kReference:
      return format("keyentry with lines lw 1.5 dt (8,5) lc rgb '#{}' title {}", c, title);
    default:
      return format("keyentry with lines lw 2.5 lc rgb '#{}' title {}", c, title);
  }
}

bool in_legend(const Drawn& drawn) {
  return !drawn.series->name.empty();
}

/// Rows and columns of the legend; a legend of one entry repeats the title or the axis, so it is left out.
struct Legend {
  int entries = 0;
  int columns = 1;
  int rows() const { return entries == 0 ? 0 : (entries + columns - 1) / columns; }
};

Legend legend_of(const std::vector<Drawn>& all, int width) {
  Legend legend;
  double widest = 0;
  for (const Drawn& drawn : all)
    if (in_legend(drawn)) {
      ++legend.entries;
      widest = std::max(widest, kLegendSample + kCharacterWidth * static_cast<double>(drawn.series->name.size()));
    }
  if (legend.entries < 2) return {};
  legend.columns = std::clamp(static_cast<int>((width - kLeftMargin - kRightMargin) / widest), 1, legend.entries);
  return legend;
}

std::string legend_entries(const std::vector<Drawn>& all) {
  std::string text;
  for (const Drawn& drawn : all)
    if (in_legend(drawn)) text += ", " + legend_entry(drawn);
  return text;
}

/// A legend with its left edge at `left` and its upper edge at `top` (shares of the figure).
std::string key_command(double left, double top, const Legend& legend) {
  return format(
      "set key at screen {:.6f},{:.6f} left top horizontal Left reverse noenhanced samplen 1.5 spacing 1.1 maxcols {} "
      "textcolor rgb '{}'\n",
      left, top, legend.columns, kInkColor);
}

/// The legend of all panels, in a plot without axes that is as wide as the figure (gnuplot fits legends to their plot).
std::string shared_legend(const Chart& chart, FigureSize figure) {
  const std::vector<Drawn> all = prepare_all(chart);
  const Legend legend = legend_of(all, figure.width);
  if (legend.entries == 0) return "";
  const double left = static_cast<double>(kLeftMargin) / figure.width;
  const auto up = [&](double y) { return 1.0 - y / figure.height; };
  return "reset\nset encoding utf8\nunset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\n" +
         format("set lmargin at screen {:.6f}\nset rmargin at screen 1\nset tmargin at screen {:.6f}\n", left, up(2)) +
         format("set bmargin at screen {:.6f}\n", up(kLegendBand)) + key_command(left, up(10), legend) +
         "plot NaN notitle" + legend_entries(all) + "\n";
}

/// A panel whose upper left corner is at (left, top) of a figure of this size.
class Panel {
 public:
  Panel(const Chart& chart, std::string block_prefix, int left, int top, PanelSize size, FigureSize figure,
        bool own_legend)
      : chart_(chart),
        prefix_(std::move(block_prefix)),
        left_(left),
        top_(top),
        size_(size),
        figure_(figure),
        drawn_(prepare_all(chart)),
        axes_(axes_of(chart, drawn_, size)) {
    if (own_legend) legend_ = legend_of(drawn_, size.width);
  }

  std::string data() const {
    std::string text;
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      text += data_block(block(i), drawn_[i]);
      if (has_rows(lone_points(drawn_[i]))) text += data_block(lone_block(i), lone_points(drawn_[i]));
    }
    return text;
  }

  std::string commands() const {
    std::string text = "reset\n";
    text += "set datafile missing NaN\nset encoding utf8\n";
    text += margins() + decoration() + axes();
    text += "plot " + plots() + "\n";
    return text;
  }

 private:
  std::string block(std::size_t i) const { return format("{}s{}", prefix_, i); }
  std::string lone_block(std::size_t i) const { return format("{}l{}", prefix_, i); }
  double across(double x) const { return (left_ + x) / figure_.width; }
  double up(double y) const { return 1.0 - (top_ + y) / figure_.height; }
  double plot_top() const { return kTopMargin + kLegendRow * legend_.rows(); }

  std::string margins() const {
    double right = size_.width - kRightMargin;
    double bottom = size_.height - kBottomMargin;
    if (chart_.same_axes) {  // square
      const double side = std::min(right - kLeftMargin, bottom - plot_top());
      right = kLeftMargin + side;
      bottom = plot_top() + side;
    }
    return format(
        "set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\nset tmargin at screen {:.6f}\n"
        "set bmargin at screen {:.6f}\n",
        across(kLeftMargin), across(right), up(plot_top()), up(bottom));
  }

  std::string decoration() const {
    std::string text =
        format("set label 1 {} at screen {:.6f},{:.6f} left font 'sans-serif:Bold,{}' noenhanced tc rgb '{}'\n",
               gnuplot_quote(chart_.title), across(kLeftMargin), up(20), kTitleSize, kInkColor);
    text += format("set xlabel {} noenhanced tc rgb '{}'\n", gnuplot_quote(chart_.x_label), kInkColor);
    text += format("set ylabel {} noenhanced tc rgb '{}'\n", gnuplot_quote(chart_.y_label), kInkColor);
    text += legend_.entries == 0 ? "unset key\n" : key_command(across(kLeftMargin - 10), up(kTopMargin - 9), legend_);
    if (drawn_.empty())
      text += format("set label 2 'no data' at graph 0.5,0.5 center noenhanced tc rgb '{}'\n", kAxisColor);
    return text;
  }

  std::string axes() const {
    std::string text = format("set border 3 lc rgb '{}' lw 1\n", kAxisColor);
    text += format("set tics nomirror out scale 0.5 textcolor rgb '{}'\n", kInkColor);
    text += format("set grid xtics ytics back lt 1 lw 0.8 lc rgb '{}'\n", kGridColor);
    if (chart_.log_x) text += "set logscale x\n";
    if (chart_.log_y) text += "set logscale y\n";
    text += "unset mxtics\nunset mytics\n";
    text += format("set xrange [{:.17g}:{:.17g}] noextend\n", axes_.x.low, axes_.x.high);
    text += format("set yrange [{:.17g}:{:.17g}] noextend\n", axes_.y.low, axes_.y.high);
    return text + tics_command("xtics", axes_.x) + tics_command("ytics", axes_.y);
  }

  std::string plots() const {
    if (drawn_.empty()) return "NaN notitle";
    std::vector<std::size_t> order(drawn_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return layer(drawn_[a]) < layer(drawn_[b]); });
    std::string text;
    for (const std::size_t i : order) {
      text += format("{}${} {} notitle", text.empty() ? "" : ", ", block(i), style_command(drawn_[i]));
      if (has_rows(lone_points(drawn_[i])))
        text += format(", ${} using 1:2 with points pt 7 ps 0.8 lc rgb '#{}' notitle", lone_block(i), drawn_[i].color);
    }
    return legend_.entries > 0 ? text + legend_entries(drawn_) : text;
  }

  const Chart& chart_;
  std::string prefix_;
  int left_, top_;
  PanelSize size_;
  FigureSize figure_;
  std::vector<Drawn> drawn_;
  Axes axes_;
  Legend legend_;
};

/// Height of the band above all panels.
int legend_band(const Figure& figure) {
  return figure.shared_legend ? kLegendBand : 0;
}

}  // namespace

std::string gnuplot_quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : clean_utf8(text)) quoted += c == '\'' ? "\u2019" : std::string(1, c);
  return quoted + "'";
}

FigureSize figure_size(const Figure& figure) {
  const int columns = std::max(1, figure.columns);
  const PanelSize size = panel_size(columns, any_same_axes(figure));
  const int rows = (static_cast<int>(figure.panels.size()) + columns - 1) / columns;
  return {size.width * columns, size.height * std::max(1, rows) + legend_band(figure)};
}

std::string gnuplot_script(const Figure& figure, const std::string& svg, const std::string& png) {
  const FigureSize total = figure_size(figure);
  const int columns = std::max(1, figure.columns);
  const PanelSize size = panel_size(columns, any_same_axes(figure));
  std::string data, commands = "set multiplot\n";
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
    const Panel panel(figure.panels[i], format("p{}", i), column * size.width, legend_band(figure) + row * size.height,
                      size, total, !figure.shared_legend);
    data += panel.data();
    commands += panel.commands();
  }
  if (figure.shared_legend && !figure.panels.empty()) commands += shared_legend(figure.panels.front(), total);
  commands += "unset multiplot\nset output\n";
  const std::string svg_terminal =
      format("set terminal svg size {},{} dynamic enhanced font 'sans-serif,{}' background '{}'\n", total.width,
             total.height, kFontSize, kPaperColor);
  const std::string png_terminal = format(
      "set terminal pngcairo size {},{} enhanced font 'sans-serif,{}' fontscale {} linewidth 2 pointscale 2 "
      "background '{}'\n",
      2 * total.width, 2 * total.height, kFontSize, kPngFontScale, kPaperColor);
  return "set encoding utf8\n" + data + svg_terminal + "set output " + gnuplot_quote(svg) + "\n" + commands +
         png_terminal + "set output " + gnuplot_quote(png) + "\n" + commands;
}

}  // namespace cohort::report
