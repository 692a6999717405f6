// gnuplot is run; Python's XML parser and a PNG decoder read what it made.
#include "report/charts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"
#include "file_size_limit.h"
#include "report/tensorboard_events.h"
#include "support/python.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class Charts : public test::TestFolder {
 protected:
  void SetUp() override {
    TestFolder::SetUp();
    if (find_gnuplot({}).empty()) GTEST_SKIP() << gnuplot_missing_message({});
  }
  /// A program in place of gnuplot.
  std::string program(const std::string& shell_script) {
    const fs::path path = folder_ / "fake-gnuplot";
    std::ofstream(path) << "#!/bin/sh\n" << shell_script;
    ::chmod(path.c_str(), 0755);
    return path.string();
  }
  fs::path charts() const { return folder_ / "charts"; }
  int files_in_charts() const {
    return fs::exists(charts())
               ? static_cast<int>(std::distance(fs::directory_iterator(charts()), fs::directory_iterator()))
               : 0;
  }
};

Figure simple_figure() {
  return {.name = "simple",
          .caption = "A <simple> figure",
          .panels = {{.title = "Loss",
                      .x_label = "step",
                      .y_label = "loss",
                      .series = {{.name = "training", .xs = {1, 2, 3}, .ys = {3, 2, 1}},
                                 {.name = "validation", .xs = {1, 3}, .ys = {3, 2}}}}}};
}

TEST_F(Charts, SvgAndPngAreReadByOthersAndSayTheSame) {
  COHORT_NEEDS_PYTHON();
  const DrawnFigure drawn = draw(simple_figure(), charts());
  EXPECT_EQ(drawn.error, "");
  EXPECT_EQ(drawn.svg, charts() / "simple.svg");
  EXPECT_EQ(drawn.png, charts() / "simple.png");
  const test::CommandOutcome outcome = test::run_python("report/check_charts.py", {charts().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("simple.svg 0 0 880 380 [A <simple> figure]"), std::string::npos) << outcome.output;
  for (const char* text : {"Loss", "step", "loss", "training", "validation", "2.5"})
    EXPECT_NE(outcome.output.find(text), std::string::npos) << text << " in " << outcome.output;
  EXPECT_NE(outcome.output.find("simple.png 1760x760"), std::string::npos) << outcome.output;
  EXPECT_EQ(files_in_charts(), 2);
}

TEST_F(Charts, EveryStyleIsDrawnInItsColour) {
  COHORT_NEEDS_PYTHON();
  const std::vector<std::pair<SeriesStyle, std::string>> styles = {
      {SeriesStyle::kLine, "rgb(  0, 114, 178)"},      {SeriesStyle::kFaintLine, "rgb(  0, 114, 178)"},
      {SeriesStyle::kPoints, "rgb(  0, 114, 178)"},    {SeriesStyle::kBand, "rgb(  0, 114, 178)"},
      {SeriesStyle::kHistogram, "rgb(  0, 114, 178)"}, {SeriesStyle::kReference, "rgb( 87,  96, 106)"}};
  for (const auto& [style, color] : styles) {
    Series series{.name = "s", .xs = {1, 2, 3}, .ys = {1, 3, 2}, .ys_high = {2, 4, 3}, .style = style};
    const DrawnFigure drawn = draw({.name = "style", .panels = {{.title = "t", .series = {series}}}}, charts());
    EXPECT_EQ(drawn.error, "");
    EXPECT_NE(read_file(drawn.svg).find(color), std::string::npos) << static_cast<int>(style);
  }
}

TEST_F(Charts, TextsFromOutsideAreShownAndNeverRun) {
  COHORT_NEEDS_PYTHON();
  const std::string evil = "'; !touch pwned\n`touch pwned` $(touch pwned) <b>&amp;</b> a_b^{c} @d \xff 训练";
  Figure figure = simple_figure();
  figure.caption = evil;
  Chart& chart = figure.panels[0];
  chart.title = chart.x_label = chart.y_label = chart.series[0].name = evil;
  const DrawnFigure drawn = draw(figure, charts());
  EXPECT_EQ(drawn.error, "");
  EXPECT_FALSE(fs::exists(charts() / "pwned"));
  EXPECT_FALSE(fs::exists("pwned"));
  const test::CommandOutcome outcome = test::run_python("report/check_charts.py", {charts().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("\u2019; !touch pwned `touch pwned` $(touch pwned) <b>&amp;</b> a_b^{c} @d ? 训练"),
            std::string::npos)
      << outcome.output;
}

TEST_F(Charts, WhatIsNotFiniteIsSkippedInEveryStyle) {
  for (const bool log : {false, true})
    for (const SeriesStyle style : {SeriesStyle::kLine, SeriesStyle::kFaintLine, SeriesStyle::kPoints,
                                    SeriesStyle::kBand, SeriesStyle::kHistogram, SeriesStyle::kReference}) {
      Series mixed{
          .name = "mixed", .xs = {1, 2, 3, 4, 5, 6, kNan}, .ys = {kNan, 1, kInf, 2, -kInf, 1e300, 4}, .style = style};
      mixed.ys_high = mixed.ys;
      Series nothing{.name = "nothing", .xs = {1, 2}, .ys = {kNan, kInf}, .ys_high = {1, 2}, .style = style};
      Series empty{.name = "empty", .style = style};
      const Figure figure{.name = "x",
                          .panels = {{.title = "mixed", .series = {mixed, nothing, empty}, .log_y = log},
                                     {.title = "nothing", .series = {nothing}, .log_y = log},
                                     {.title = "empty", .log_x = log}}};
      EXPECT_EQ(draw(figure, charts()).error, "") << static_cast<int>(style) << log;
    }
}

TEST_F(Charts, AHundredThousandPointsMakeASmallFile) {
  const RandomStream random(1, RandomPurpose::kTest, 0, 0);
  Series line{.name = "line"}, cloud{.name = "cloud", .style = SeriesStyle::kPoints};
  for (std::uint64_t i = 0; i < 100000; ++i) {
    line.xs.push_back(static_cast<double>(i));
    line.ys.push_back(random.normal(i));
    cloud.xs.push_back(random.normal(2 * i) * 1000);
    cloud.ys.push_back(random.normal(2 * i + 1));
  }
  const DrawnFigure drawn =
      draw({.name = "many", .panels = {{.title = "t", .series = {line}}, {.title = "t", .series = {cloud}}}}, charts());
  EXPECT_EQ(drawn.error, "");
  EXPECT_LT(fs::file_size(drawn.svg), 400u << 10);
}

TEST_F(Charts, PanelsStandInRowsAndShareOneLegend) {
  COHORT_NEEDS_PYTHON();
  Figure figure = simple_figure();
  figure.panels.resize(3, figure.panels[0]);
  figure.columns = 2;
  figure.shared_legend = true;
  const DrawnFigure drawn = draw(figure, charts());
  EXPECT_EQ(drawn.error, "");
  const std::string svg = read_file(drawn.svg);
  const auto count = [&](const std::string& text) {
    int n = 0;
    for (std::size_t at = 0; (at = svg.find(text, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(count(">Loss<"), 3);
  EXPECT_EQ(count(">training<"), 1);
  EXPECT_EQ(count("<title>"), 1) << "gnuplot's own titles would pop up under the mouse";
  EXPECT_EQ(png_size(read_file(drawn.png)), (std::pair<std::uint32_t, std::uint32_t>(1840, 2 * (2 * 360 + 32))));
}

TEST_F(Charts, WithoutGnuplotThereIsOneMessageThatNamesThePackageAndAnSvgEach) {
  const std::vector<Figure> figures = {simple_figure(), simple_figure()};
  ::testing::internal::CaptureStderr();
  const std::vector<DrawnFigure> drawn = draw_all(figures, charts(), {.program = "no-such-gnuplot"});
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_EQ(drawn[0].svg, charts() / "simple.svg");
  EXPECT_TRUE(drawn[0].png.empty());
  EXPECT_NE(drawn[0].error.find("gnuplot-nox"), std::string::npos);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find("gnuplot-nox"), std::string::npos);
  EXPECT_EQ(files_in_charts(), 1) << "both have one name";
}

TEST_F(Charts, AFailingProgramIsReportedWithItsOwnWords) {
  const DrawnFigure drawn = draw(simple_figure(), charts(), {.program = program("echo no fonts here >&2; exit 3")});
  EXPECT_NE(drawn.error.find("exit code 3"), std::string::npos) << drawn.error;
  EXPECT_NE(drawn.error.find("no fonts here"), std::string::npos) << drawn.error;
  EXPECT_EQ(files_in_charts(), 0);
}

TEST_F(Charts, AProgramThatHangsIsKilled) {
  const DrawnFigure drawn = draw(simple_figure(), charts(), {.program = program("exec sleep 60"), .timeout = 0.2});
  EXPECT_NE(drawn.error.find("was killed after 0.2 s"), std::string::npos) << drawn.error;
}

TEST_F(Charts, AFullDiskLeavesNoHalfPicture) {
  ASSERT_EQ(draw(simple_figure(), charts()).error, "");  // a whole one, which must not be harmed
  const std::string before = read_file(charts() / "simple.svg");
  {
    const test::FileSizeLimit limit(8 << 10);  // the script has room, the pictures have not
    const DrawnFigure drawn = draw(simple_figure(), charts());
    EXPECT_NE(drawn.error, "");
    EXPECT_TRUE(drawn.svg.empty());
    EXPECT_TRUE(drawn.png.empty());
  }
  EXPECT_EQ(read_file(charts() / "simple.svg"), before);
  EXPECT_EQ(files_in_charts(), 2);
}

TEST_F(Charts, AFolderThatCannotBeMadeIsInTheResult) {
  std::ofstream(folder_ / "charts") << "a file in the way";
  const DrawnFigure drawn = draw(simple_figure(), charts());
  EXPECT_NE(drawn.error.find("charts"), std::string::npos) << drawn.error;
  EXPECT_TRUE(drawn.svg.empty());
}

TEST_F(Charts, ANameThatIsNoFileNameIsAnError) {
  Figure figure = simple_figure();
  for (const char* name : {"", "../x", "a b", "A"}) {
    figure.name = name;
    EXPECT_THROW(draw(figure, charts()), Error) << name;
  }
}

TEST_F(Charts, AMissingChineseFontIsNamedWithItsPackage) {
  const std::string path = std::getenv("PATH");
  const fs::path fonts = folder_ / "fc-list";
  const auto answer = [&](const char* body) {
    std::ofstream(fonts) << "#!/bin/sh\n" << body << "\n";
    ::chmod(fonts.c_str(), 0755);
  };
  ::setenv("PATH", (folder_.string() + ":" + path).c_str(), 1);
  Figure figure = simple_figure();
  answer("exit 0");  // no font has the character
  EXPECT_EQ(missing_font(std::vector{figure}), "") << "its texts are English";
  figure.panels[0].title = "油温 (°C)";
  EXPECT_NE(missing_font(std::vector{figure}).find("fonts-noto-cjk"), std::string::npos);
  answer("[ \"$1\" = :charset=6cb9 ] && echo 'Noto Sans CJK SC'");
  EXPECT_EQ(missing_font(std::vector{figure}), "");
  answer("exit 1");
  EXPECT_EQ(missing_font(std::vector{figure}), "") << "fontconfig cannot be asked";
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace cohort::report
