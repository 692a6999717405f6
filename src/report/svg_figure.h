/// A figure as an SVG picture, without gnuplot: what report.html shows on a machine that has none.
#pragma once
#include <string>

#include "report/chart.h"

namespace cohort::report {

/// A whole file (SVG 1.1), of the size, colours, axes and legends that gnuplot's has (gnuplot_script.h), with the caption as its
/// title. Texts are set by whoever shows it, in its sans-serif font. What is NaN is a gap.
std::string svg_figure(const Figure& figure);

}  // namespace cohort::report
