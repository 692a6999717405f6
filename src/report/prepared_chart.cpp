#include "report/prepared_chart.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "report/downsample.h"
#include "report/gnuplot_script.h"
#include "report/histogram.h"

namespace cohort::report {
namespace {

constexpr double kCharacterWidth = 7.0;    // average at kFontSize, for the legend's columns
constexpr double kLegendSample = 52;       // sample and gaps of a legend entry
constexpr std::size_t kLineBuckets = 600;  // about one per pixel of the widest panel
constexpr std::size_t kCloudPoints = 2000;
constexpr double kNearZero = 0.05;    // an axis that begins within this share of its span above 0 begins at 0
constexpr double kFaintTail = 0.005;  // share of the lowest raw values that a logarithmic axis may cut off
constexpr std::size_t kPaletteSize = std::size(kPalette);

PanelSize panel_size(int columns, bool same_axes) {
  if (columns == 1) return same_axes ? PanelSize{620, 620} : PanelSize{880, 380};
  if (columns == 2) return {460, same_axes ? 470 : 360};
  return {360, same_axes ? 390 : 300};
}

bool any_same_axes(const Figure& figure) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [](const Chart& c) { return c.same_axes; });
}

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

}  // namespace

PanelSize panel_size(const Figure& figure) {
  return panel_size(std::max(1, figure.columns), any_same_axes(figure));
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

std::vector<std::size_t> drawing_order(const std::vector<Drawn>& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return layer(all[a]) < layer(all[b]); });
  return order;
}

double point_size(const Drawn& drawn) {
  const std::size_t n = drawn.rows.size();
  return n > 500 ? 0.35 : n > 60 ? 0.5 : 0.8;
}

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

bool in_legend(const Drawn& drawn) {
  return !drawn.series->name.empty();
}

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

int legend_band(const Figure& figure) {
  return figure.shared_legend ? kLegendBand : 0;
}

FigureSize figure_size(const Figure& figure) {
  const int columns = std::max(1, figure.columns);
  const PanelSize size = panel_size(figure);
  const int rows = (static_cast<int>(figure.panels.size()) + columns - 1) / columns;
  return {size.width * columns, size.height * std::max(1, rows) + legend_band(figure)};
}

}  // namespace cohort::report
