/// A chart's SVG file as part of a page.
#pragma once
#include <string>
#include <string_view>

namespace cohort::report {

/// The <svg> element without what comes before it in the file. Its ids get the prefix, so that several charts share a
/// page; the colours of gnuplot_script.h become CSS variables (--ink, --axis, --grid, --reference, --paper, --series-0
/// ...), so that the page's dark mode reaches them; `label` describes it to screen readers. "" when the text holds no
/// SVG.
std::string inline_svg(std::string_view svg, const std::string& id_prefix, const std::string& label);

}  // namespace cohort::report
