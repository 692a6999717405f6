#include "report/svg_figure.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/markup.h"
#include "report/gnuplot_script.h"
#include "report/prepared_chart.h"

namespace cohort::report {
namespace {

constexpr double kPointRadius = 5;  // of gnuplot's point of size 1, in its SVG
constexpr double kTickLength = 4;   // SVG user units, like all below
constexpr double kSample = 22;      // width of a legend's sample
constexpr double kLegendText = 30;  // from the beginning of an entry to its text
constexpr double kTextShift = 4;    // from the middle of a text of kFontSize down to its base line

/// Opacity of each style, as in gnuplot_script.cpp.
double opacity(const Drawn& drawn) {
  switch (drawn.series->style) {
    case SeriesStyle::kBand:
      return 0.25;
    case SeriesStyle::kFaintLine:
      return 0.31;
    case SeriesStyle::kHistogram:
      return 0.75;
    case SeriesStyle::kPoints:
      return drawn.rows.size() > kCloud ? 0.62 : 1;
    default:
      return 1;
  }
}

double stroke(SeriesStyle style) {
  return style == SeriesStyle::kLine ? 2 : style == SeriesStyle::kReference ? 1.5 : 1;
}

std::string text_at(double x, double y, const std::string& text, const char* more) {
  return format("<text x=\"{:.2f}\" y=\"{:.2f}\" fill=\"{}\" {}>{}</text>\n", x, y, kInkColor, more,
                html_escape(clean_utf8(text)));
}

std::string line(double x0, double y0, double x1, double y1, const std::string& color, double width,
                 const char* more = "") {
  return format("<path d=\"M{:.2f},{:.2f} L{:.2f},{:.2f}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" {}/>\n", x0,
                y0, x1, y1, color, width, more);
}

/// Entries in rows, the first one's upper left corner at (left, top).
std::string legend_at(double left, double top, double width, const Legend& legend, const std::vector<Drawn>& all) {
  std::string svg;
  int place = 0;
  const double step = width / std::max(1, legend.columns);
  for (const Drawn& drawn : all) {
    if (!in_legend(drawn)) continue;
    const double x = left + (place % legend.columns) * step, y = top + kLegendRow * (place / legend.columns) + 8;
    const std::string color = "#" + drawn.color;
    switch (drawn.series->style) {
      case SeriesStyle::kPoints:
        svg += format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"4\" fill=\"{}\"/>\n", x + kSample / 2, y, color);
        break;
      case SeriesStyle::kBand:
      case SeriesStyle::kHistogram:
        svg += format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{}\" height=\"10\" fill=\"{}\" fill-opacity=\"{}\"/>\n",
                      x, y - 5, kSample, color, opacity(drawn));
        break;
      case SeriesStyle::kReference:
        svg += line(x, y, x + kSample, y, color, 1.5, "stroke-dasharray=\"8,5\"");
        break;
      case SeriesStyle::kFaintLine:
        svg += line(x, y, x + kSample, y, color, 1.5, "stroke-opacity=\"0.44\"");
        break;
      case SeriesStyle::kLine:
        svg += line(x, y, x + kSample, y, color, 2.5);
        break;
    }
    svg += text_at(x + kLegendText, y + kTextShift, drawn.series->name, "");
    ++place;
  }
  return svg;
}

/// A panel whose upper left corner is at (left, top) of the figure.
class Panel {
 public:
  Panel(const Chart& chart, int number, double left, double top, PanelSize size, bool own_legend)
      : chart_(chart), number_(number), drawn_(prepare_all(chart)), axes_(axes_of(chart, drawn_, size)) {
    if (own_legend) legend_ = legend_of(drawn_, size.width);
    origin_x_ = left;
    origin_y_ = top;
    size_ = size;
    left_ = left + kLeftMargin;
    top_ = top + kTopMargin + kLegendRow * legend_.rows();
    right_ = left + size.width - kRightMargin;
    bottom_ = top + size.height - kBottomMargin;
    if (chart.same_axes) {  // square
      const double side = std::min(right_ - left_, bottom_ - top_);
      right_ = left_ + side;
      bottom_ = top_ + side;
    }
  }

  std::string svg() const {
    std::string text =
        text_at(left_, origin_y_ + 20 + kTextShift, chart_.title, "font-size=\"14\" font-weight=\"bold\"");
    if (legend_.entries > 0) text += legend_at(left_, origin_y_ + kTopMargin - 9, right_ - left_, legend_, drawn_);
    text += grid();
    // What a cut axis leaves out stays inside of the frame.
    text +=
        format("<clipPath id=\"p{}\"><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/></clipPath>\n",
               number_, left_, top_, right_ - left_, bottom_ - top_);
    text += format("<g clip-path=\"url(#p{})\">\n", number_);
    for (const std::size_t i : drawing_order(drawn_)) text += series(drawn_[i]);
    text += "</g>\n";
    text += line(left_, top_, left_, bottom_, kAxisColor, 1) + line(left_, bottom_, right_, bottom_, kAxisColor, 1);
    if (drawn_.empty())
      text += text_at((left_ + right_) / 2, (top_ + bottom_) / 2, "no data", "text-anchor=\"middle\"");
    text += text_at((left_ + right_) / 2, bottom_ + 42, chart_.x_label, "text-anchor=\"middle\"");
    const double middle = (top_ + bottom_) / 2;
    return text +
           text_at(origin_x_ + 16, middle, chart_.y_label,
                   format("text-anchor=\"middle\" transform=\"rotate(-90 {:.2f} {:.2f})\"", origin_x_ + 16, middle)
                       .c_str());
  }

 private:
  static double share(double value, const Axis& axis, bool logarithmic) {
    if (!logarithmic) return (value - axis.low) / (axis.high - axis.low);
    return std::log(value / axis.low) / std::log(axis.high / axis.low);
  }
  // Far outside is drawn as just outside: browsers keep single precision.
  double at_x(double x) const {
    return left_ + std::clamp(share(x, axes_.x, chart_.log_x), -4.0, 5.0) * (right_ - left_);
  }
  double at_y(double y) const {
    return bottom_ - std::clamp(share(y, axes_.y, chart_.log_y), -4.0, 5.0) * (bottom_ - top_);
  }

  std::string grid() const {
    std::string text;
    for (const Tick& tick : axes_.x.ticks) {
      if (tick.value < axes_.x.low || tick.value > axes_.x.high) continue;
      const double x = at_x(tick.value);
      text += line(x, top_, x, bottom_, kGridColor, 0.8) + line(x, bottom_, x, bottom_ + kTickLength, kAxisColor, 1);
      text += text_at(x, bottom_ + 18, tick.label, "text-anchor=\"middle\"");
    }
    for (const Tick& tick : axes_.y.ticks) {
      if (tick.value < axes_.y.low || tick.value > axes_.y.high) continue;
      const double y = at_y(tick.value);
      text += line(left_, y, right_, y, kGridColor, 0.8) + line(left_ - kTickLength, y, left_, y, kAxisColor, 1);
      text += text_at(left_ - 8, y + kTextShift, tick.label, "text-anchor=\"end\"");
    }
    return text;
  }

  bool whole(const std::array<double, 3>& row) const {
    return drawable(row[0]) && drawable(row[1]) && drawable(row[2]) && (!chart_.log_x || row[0] > 0) &&
           (!chart_.log_y || row[1] > 0);
  }

  std::string circles(const Drawn& drawn, double size) const {
    std::string text = format("<g fill=\"#{}\" fill-opacity=\"{}\">\n", drawn.color, opacity(drawn));
    for (const auto& row : drawn.rows)
      if (whole(row))
        text += format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\"/>\n", at_x(row[0]), at_y(row[1]), size);
    return text + "</g>\n";
  }

  /// The rows without a gap, one path for each stretch.
  std::string band(const Drawn& drawn) const {
    std::string text, upper, lower;
    const auto close = [&] {
      if (!upper.empty())
        text += format("<path d=\"M{}{} Z\" fill=\"#{}\" fill-opacity=\"{}\"/>\n", upper, lower, drawn.color,
                       opacity(drawn));
      upper = lower = "";
    };
    for (const auto& row : drawn.rows) {
      if (!whole(row)) {
        close();
        continue;
      }
      upper += format("{}{:.2f},{:.2f}", upper.empty() ? "" : " L", at_x(row[0]), at_y(row[2]));
      lower = format(" L{:.2f},{:.2f}", at_x(row[0]), at_y(row[1])) + lower;
    }
    close();
    return text;
  }

  std::string bars(const Drawn& drawn) const {
    std::string text =
        format("<g fill=\"#{}\" fill-opacity=\"{}\" stroke=\"{}\">\n", drawn.color, opacity(drawn), kPaperColor);
    const double floor = chart_.log_y ? axes_.y.low : 0;
    for (const auto& row : drawn.rows) {
      if (!whole(row)) continue;
      const double x0 = at_x(row[0] - row[2] / 2), x1 = at_x(row[0] + row[2] / 2), y = at_y(row[1]);
      text += format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>\n", x0, y, x1 - x0,
                     std::max(0.0, at_y(floor) - y));
    }
    return text + "</g>\n";
  }

  std::string lines(const Drawn& drawn) const {
    std::string path;
    bool pen_is_down = false;
    for (const auto& row : drawn.rows) {
      if (!whole(row)) {
        pen_is_down = false;
        continue;
      }
      path += format("{}{:.2f},{:.2f}", pen_is_down ? " L" : " M", at_x(row[0]), at_y(row[1]));
      pen_is_down = true;
    }
    std::string text;
    if (!path.empty())
      text = format(
          "<path d=\"{}\" fill=\"none\" stroke=\"#{}\" stroke-opacity=\"{}\" stroke-width=\"{}\" "
          "stroke-linejoin=\"round\"{}/>\n",
          path.substr(1), drawn.color, opacity(drawn), stroke(drawn.series->style),
          drawn.series->style == SeriesStyle::kReference ? " stroke-dasharray=\"8,5\"" : "");
    const Drawn lone = lone_points(drawn);
    return has_rows(lone) ? text + circles(lone, 0.8 * kPointRadius) : text;
  }

  std::string series(const Drawn& drawn) const {
    switch (drawn.series->style) {
      case SeriesStyle::kPoints:
        return circles(drawn, point_size(drawn) * kPointRadius);
      case SeriesStyle::kBand:
        return band(drawn);
      case SeriesStyle::kHistogram:
        return bars(drawn);
      default:
        return lines(drawn);
    }
  }

  const Chart& chart_;
  int number_;
  std::vector<Drawn> drawn_;
  Axes axes_;
  Legend legend_;
  PanelSize size_{};
  double origin_x_ = 0, origin_y_ = 0, left_ = 0, top_ = 0, right_ = 0, bottom_ = 0;
};

}  // namespace

std::string svg_figure(const Figure& figure) {
  const FigureSize total = figure_size(figure);
  const PanelSize size = panel_size(figure);
  const int columns = std::max(1, figure.columns);
  std::string svg = format(
      "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"no\"?>\n<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
      "{0} {1}\" "
      "xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"{2}\">\n",
      total.width, total.height, kFontSize);
  if (!figure.caption.empty()) svg += "<title>" + html_escape(clean_utf8(figure.caption)) + "</title>\n";
  svg += format("<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", total.width, total.height, kPaperColor);
  if (figure.shared_legend && !figure.panels.empty()) {
    const std::vector<Drawn> all = prepare_all(figure.panels.front());
    if (const Legend legend = legend_of(all, total.width); legend.entries > 0)
      svg += legend_at(kLeftMargin, 10, total.width - kLeftMargin - kRightMargin, legend, all);
  }
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const int column = static_cast<int>(i) % columns, row = static_cast<int>(i) / columns;
    svg += Panel(figure.panels[i], static_cast<int>(i), column * size.width, legend_band(figure) + row * size.height,
                 size, !figure.shared_legend)
               .svg();
  }
  return svg + "</svg>\n";
}

}  // namespace cohort::report
