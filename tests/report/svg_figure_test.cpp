// Charts where there is no gnuplot; Python's XML parser reads them.
#include "report/svg_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "report/charts.h"
#include "report/inline_svg.h"
#include "support/python.h"
#include "test_folder.h"

namespace cohort::report {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

class SvgFigure : public test::TestFolder {
 protected:
  /// Width, height, title and texts of `figure`'s picture, in the order of the alphabet.
  std::set<std::string> read_by_python(const std::string& svg) {
    write_file_atomically(folder_ / "read" / "figure.svg", svg);
    const test::CommandOutcome outcome = test::run_python("report/check_charts.py", {(folder_ / "read").string()});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::set<std::string> parts;
    std::istringstream words(std::regex_replace(outcome.output, std::regex("\\]\\s|\n"), "|"));
    for (std::string word; std::getline(words, word, '|');)
      if (!word.empty()) parts.insert(word);
    return parts;
  }
  void SetUp() override {
    TestFolder::SetUp();
    std::filesystem::create_directories(folder_ / "read");
  }
};

/// Every style, both kinds of axes, a gap, a legend of its own and characters that markup must not meet.
Figure full_figure() {
  return {
      .name = "full",
      .caption = "All \"styles\" <at once> & more",
      .panels = {{.title = "Loss <b>",
                  .x_label = "step",
                  .y_label = "loss & co.",
                  .series = {{.name = "raw", .xs = {1, 2, 3, 4}, .ys = {9, 5, 3, 2}, .style = SeriesStyle::kFaintLine},
                             {.name = "mean", .xs = {1, 2, 3, 4}, .ys = {8, kGap, 3, 2}},
                             {.name = "spread",
                              .xs = {1, 2, 3, 4},
                              .ys = {7, 4, 2, 1},
                              .ys_high = {10, 6, 4, 3},
                              .style = SeriesStyle::kBand},
                             {.name = "best", .xs = {4}, .ys = {2}, .style = SeriesStyle::kPoints},
                             {.name = "start", .xs = {1, 4}, .ys = {8, 8}, .style = SeriesStyle::kReference}},
                  .log_y = true},
                 {.title = "Residuals",
                  .x_label = "error (m)",
                  .y_label = "samples",
                  .series = {{.name = "", .ys = {1, 2, 2, 3, 3, 3, 4, 4, 5}, .style = SeriesStyle::kHistogram}}},
                 {.title = "Nothing yet", .x_label = "x", .y_label = "y"}},
      .columns = 2};
}

TEST_F(SvgFigure, HasTheSizeTheTicksAndTheTextsOfGnuplots) {
  COHORT_NEEDS_PYTHON();
  if (find_gnuplot({}).empty()) GTEST_SKIP() << gnuplot_missing_message({});
  const DrawnFigure drawn = draw(full_figure(), folder_);
  ASSERT_EQ(drawn.error, "");
  const std::set<std::string> ours = read_by_python(svg_figure(full_figure())),
                              gnuplots = read_by_python(read_file(drawn.svg));
  EXPECT_GT(ours.size(), 20u);
  EXPECT_EQ(ours, gnuplots);
}

TEST_F(SvgFigure, LinesBeginAndEndAtTheFrameAndKeepTheirGaps) {
  Figure figure = full_figure();
  figure.panels.resize(1);
  figure.columns = 1;
  figure.panels[0].log_y = false;
  figure.panels[0].series = {{.name = "", .xs = {1, 2, 3, 4, 5}, .ys = {0, 1, kGap, 1, 0}}};
  const std::string svg = svg_figure(figure);
  std::smatch path;
  const std::regex curve("d=\"M([0-9.]+),([0-9.]+) L([0-9.]+),([0-9.]+) M([0-9.]+),([0-9.]+) L([0-9.]+),([0-9.]+)\"");
  ASSERT_TRUE(std::regex_search(svg, path, curve)) << svg;
  const auto number = [&](std::size_t i) { return std::stod(path[i]); };
  // The frame of a figure of one panel goes from 68 to 858; four steps of equal width.
  EXPECT_EQ(number(1), 68);
  EXPECT_EQ(number(3), 68 + 197.5);
  EXPECT_EQ(number(5), 68 + 3 * 197.5);
  EXPECT_EQ(number(7), 858);
  EXPECT_EQ(number(2), number(8));
  EXPECT_EQ(number(4), number(6));
  EXPECT_GT(number(2), number(4)) << "up is smaller";
}

TEST_F(SvgFigure, ALogarithmicAxisHasEqualStepsForEqualRatios) {
  Figure figure = full_figure();
  figure.panels.resize(1);
  figure.columns = 1;
  figure.panels[0].series = {{.name = "", .xs = {1, 2, 3, 4}, .ys = {1, 10, 100, 0}}};
  const std::string svg = svg_figure(figure);
  std::smatch path;
  const std::regex curve("d=\"M[0-9.]+,([0-9.]+) L[0-9.]+,([0-9.]+) L[0-9.]+,([0-9.]+)\"");
  ASSERT_TRUE(std::regex_search(svg, path, curve)) << svg;
  EXPECT_NEAR(std::stod(path[1]) - std::stod(path[2]), std::stod(path[2]) - std::stod(path[3]), 0.02);
}

TEST_F(SvgFigure, ANumberBeyondAllBoundsLeavesNoNanAndNoInfinity) {
  Figure figure = full_figure();
  for (Chart& chart : figure.panels)
    for (Series& series : chart.series)
      if (series.ys.size() > 1) series.ys.back() = series.ys_high.empty() ? 1e300 : kGap;
  const std::string svg = svg_figure(figure);
  for (const char* word : {"nan", "inf"})
    EXPECT_EQ(std::regex_search(svg, std::regex(std::string("[\", L-]") + word)), false) << word;
}

TEST_F(SvgFigure, ThePagesDarkModeReachesItsColours) {
  const std::string part = inline_svg(svg_figure(full_figure()), "c3-", "a chart");
  EXPECT_EQ(part.find("#1f2328"), std::string::npos) << "every colour is a variable";
  for (const char* name : {"--ink", "--axis", "--grid", "--paper", "--reference", "--series-0"})
    EXPECT_NE(part.find(std::string("var(") + name + ")"), std::string::npos) << name;
  EXPECT_NE(part.find("clipPath id=\"c3-p0\""), std::string::npos);
  EXPECT_NE(part.find("url(#c3-p0)"), std::string::npos);
}

}  // namespace
}  // namespace cohort::report
