#include "report/gnuplot_script.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/markup.h"
#include "report/prepared_chart.h"

namespace cohort::report {
namespace {

constexpr double kPngFontScale = 1.5;  // pngcairo's sizes are points, 4/3 of a unit; times 1.5 is twice the SVG's size

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

std::string style_command(const Drawn& drawn) {
  const std::string& c = drawn.color;
  switch (drawn.series->style) {
    case SeriesStyle::kLine:
      return format("using 1:2 with lines lw 2 lc rgb '#{}'", c);
    case SeriesStyle::kFaintLine:
      return format("using 1:2 with lines lw 1 lc rgb '#b0{}'", c);
    case SeriesStyle::kPoints: {
      return format("using 1:2 with points pt 7 ps {} lc rgb '#{}{}'", point_size(drawn),
                    drawn.rows.size() > kCloud ? "60" : "", c);
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
class ScriptPanel {
 public:
  ScriptPanel(const Chart& chart, std::string block_prefix, int left, int top, PanelSize size, FigureSize figure,
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
    std::string text;
    for (const std::size_t i : drawing_order(drawn_)) {
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

}  // namespace

std::string gnuplot_quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : clean_utf8(text)) quoted += c == '\'' ? "\u2019" : std::string(1, c);
  return quoted + "'";
}

std::string gnuplot_script(const Figure& figure, const std::string& svg, const std::string& png) {
  const FigureSize total = figure_size(figure);
  const int columns = std::max(1, figure.columns);
  const PanelSize size = panel_size(figure);
  std::string data, commands = "set multiplot\n";
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
    const ScriptPanel panel(figure.panels[i], format("p{}", i), column * size.width,
                            legend_band(figure) + row * size.height, size, total, !figure.shared_legend);
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
