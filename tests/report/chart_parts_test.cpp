// The parts of a chart that need no gnuplot.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "core/markup.h"
#include "core/philox.h"
#include "report/chart_ticks.h"
#include "report/downsample.h"
#include "report/gnuplot_script.h"
#include "report/histogram.h"
#include "report/inline_svg.h"
#include "report/standard_figures.h"

namespace cohort::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> found;
  for (const Tick& tick : axis.ticks) found.push_back(tick.label);
  return found;
}

using Labels = std::vector<std::string>;

TEST(ChartTicks, AreRoundNumbersInOneUnit) {
  EXPECT_EQ(labels(linear_axis(std::vector<double>{0, 1}, 0, 5)), (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1"}));
  EXPECT_EQ(labels(linear_axis(std::vector<double>{-3, 4}, 0, 4)), (Labels{"-2", "0", "2", "4"}));
  EXPECT_EQ(labels(linear_axis(std::vector<double>{0, 20000}, 0, 4)), (Labels{"0", "5k", "10k", "15k", "20k"}));
  EXPECT_EQ(labels(linear_axis(std::vector<double>{0, 2e6}, 0, 4)), (Labels{"0", "0.5M", "1M", "1.5M", "2M"}));
  EXPECT_EQ(labels(linear_axis(std::vector<double>{0, 1e-4}, 0, 5)),
            (Labels{"0", "2e-5", "4e-5", "6e-5", "8e-5", "1e-4"}));
  EXPECT_EQ(labels(linear_axis(std::vector<double>{1e12, 2e12}, 0, 2)), (Labels{"1e12", "1.5e12", "2e12"}));
}

TEST(ChartTicks, NeighboursNeverShareALabel) {
  const RandomStream random(5, RandomPurpose::kTest, 0, 0);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const double scale = std::pow(10.0, 24.0 * random.uniform(3 * i) - 12);
    const double low = random.normal(3 * i + 1) * scale * (i % 3 == 0 ? 1000 : 1),
                 span = scale * (0.01 + random.uniform(3 * i + 2));
    for (const Axis& axis :
         {linear_axis(std::vector<double>{low, low + span}, 0.05, 5),
          log_axis(std::vector<double>{scale, scale * (1.01 + std::pow(10.0, 9.0 * random.uniform(3 * i)))}, 0.05)}) {
      const Labels found = labels(axis);
      EXPECT_GE(found.size(), 2u) << low << " " << span;
      EXPECT_LE(found.size(), 14u) << low << " " << span;
      EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), found.size())
          << low << " " << span << ": " << ::testing::PrintToString(found);
      for (const Tick& tick : axis.ticks) EXPECT_LE(tick.label.size(), 16u) << tick.label;
    }
  }
}

TEST(ChartTicks, HaveRoomAroundOneValueAndStandWithoutAny) {
  const Axis one = linear_axis(std::vector<double>{5, 5, kNan}, 0.05, 5);
  EXPECT_LT(one.low, 5);
  EXPECT_GT(one.high, 5);
  EXPECT_GE(one.ticks.size(), 2u);
  const Axis none = linear_axis(std::vector<double>{kNan, kInf, 1e300}, 0.05, 5);
  EXPECT_LT(none.low, none.high);
  const Axis log_none = log_axis(std::vector<double>{-1, 0}, 0.05);
  EXPECT_GT(log_none.low, 0);
  EXPECT_LT(log_none.low, log_none.high);
}

TEST(ChartTicks, ALogarithmicAxisShowsPowersOverManyDecadesAndStepsWithinFew) {
  EXPECT_EQ(labels(log_axis(std::vector<double>{1e-5, 1}, 0)), (Labels{"1e-5", "1e-4", "0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(labels(log_axis(std::vector<double>{0.1, 5}, 0)), (Labels{"0.1", "0.2", "0.5", "1", "2", "5"}));
}

TEST(Downsample, ALineKeepsEveryPeakItsEndsAndItsOrder) {
  std::vector<double> xs(100000), ys(100000);
  std::iota(xs.begin(), xs.end(), 0.0);
  for (std::size_t i = 0; i < ys.size(); ++i) ys[i] = std::sin(static_cast<double>(i) / 1000);
  ys[54321] = 100;
  ys[12345] = -100;
  const Points thin = thin_line(xs, ys, 500);
  EXPECT_LE(thin.xs.size(), 1002u);
  EXPECT_TRUE(std::is_sorted(thin.xs.begin(), thin.xs.end()));
  EXPECT_EQ(thin.xs.front(), 0);
  EXPECT_EQ(thin.xs.back(), 99999);
  EXPECT_EQ(*std::max_element(thin.ys.begin(), thin.ys.end()), 100);
  EXPECT_EQ(*std::min_element(thin.ys.begin(), thin.ys.end()), -100);
  for (std::size_t i = 0; i < thin.xs.size(); ++i) EXPECT_EQ(thin.ys[i], ys[static_cast<std::size_t>(thin.xs[i])]);
}

TEST(Downsample, AGapInALineStaysAGap) {
  std::vector<double> xs(10000), ys(10000, 1.0);
  std::iota(xs.begin(), xs.end(), 0.0);
  ys[5000] = kNan;
  ys[7000] = kInf;
  const Points thin = thin_line(xs, ys, 100);
  EXPECT_EQ(std::count_if(thin.ys.begin(), thin.ys.end(), [](double y) { return std::isnan(y); }), 2);
  EXPECT_EQ(thin_line({1, 2}, {kInf, 1}, 100).ys.size(), 2u);
  EXPECT_TRUE(thin_line({}, {}, 100).xs.empty());
}

TEST(Downsample, ACloudKeepsItsOutlinePointsAsTheyAreAndOutliers) {
  const RandomStream random(5, RandomPurpose::kTest, 1, 0);
  std::vector<double> xs, ys;
  for (std::uint64_t i = 0; i < 50000; ++i) {
    xs.push_back(random.normal(2 * i));
    ys.push_back(random.normal(2 * i + 1));
  }
  xs.push_back(50);
  ys.push_back(-50);
  xs.push_back(kNan);
  ys.push_back(1);
  const Points thin = thin_cloud(xs, ys, 2000);
  EXPECT_LE(thin.xs.size(), 2000u);
  EXPECT_GE(thin.xs.size(), 200u);
  EXPECT_EQ(*std::max_element(thin.xs.begin(), thin.xs.end()), 50);
  const std::set<std::pair<double, double>> all = [&] {
    std::set<std::pair<double, double>> points;
    for (std::size_t i = 0; i < xs.size() - 1; ++i) points.insert({xs[i], ys[i]});
    return points;
  }();
  for (std::size_t i = 0; i < thin.xs.size(); ++i) EXPECT_TRUE(all.contains({thin.xs[i], thin.ys[i]}));
  EXPECT_EQ(thin_cloud({1, 1, 1}, {2, 2, 2}, 1).xs.size(), 1u);
}

TEST(Histogram, CountsEveryDrawableValueOnce) {
  const RandomStream random(5, RandomPurpose::kTest, 2, 0);
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 5000; ++i) values.push_back(random.normal(i));
  values.push_back(kNan);
  values.push_back(1000);  // would leave one bar and a needle
  const Histogram h = make_histogram(values);
  EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), 0.0), 5001);
  EXPECT_GE(h.counts.size(), 20u);
  EXPECT_LE(h.counts.size(), 80u);
  EXPECT_LT(h.low + h.width * static_cast<double>(h.counts.size()), 10);
  // The share within one standard deviation is that of a normal distribution, up to a bin.
  double inside = 0;
  for (std::size_t i = 0; i < h.counts.size(); ++i)
    if (std::abs(h.low + (static_cast<double>(i) + 0.5) * h.width) < 1) inside += h.counts[i];
  EXPECT_NEAR(inside / 5000, 0.6827, 0.06);
}

TEST(Histogram, OneValueAndNoneAreNoProblem) {
  const Histogram one = make_histogram(std::vector<double>{3, 3, 3});
  EXPECT_EQ(std::accumulate(one.counts.begin(), one.counts.end(), 0.0), 3);
  EXPECT_LT(one.low, 3);
  EXPECT_GT(one.width, 0);
  EXPECT_TRUE(make_histogram(std::vector<double>{kNan, kInf}).counts.empty());
}

TEST(Text, HtmlEscapesEverythingThatMarkupIsMadeOf) {
  EXPECT_EQ(html_escape("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
  EXPECT_EQ(html_escape("a\nb\x1b[31m"), "a\nb [31m");
}

TEST(Text, CleaningKeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(clean_utf8("训练 Größe 😀"), "训练 Größe 😀");
  EXPECT_EQ(clean_utf8("a\xff\xc0\x80z"), "a???z");  // no lead byte; an overlong NUL
  EXPECT_EQ(clean_utf8("\xed\xa0\x80"), "???");      // a surrogate
  EXPECT_EQ(clean_utf8("\xe8\xae"), "??");           // cut off
  EXPECT_EQ(clean_utf8(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(clean_utf8("\xef\xbf\xbf"), "???");  // U+FFFF, which XML does not allow
}

TEST(Text, PathsBecomeUrls) {
  EXPECT_EQ(percent_encode("a b/ü#?%.svg"), "a%20b/%C3%BC%23%3F%25.svg");
  EXPECT_EQ(percent_encode("javascript:x"), "javascript%3Ax");
}

TEST(GnuplotScript, TextsCannotLeaveTheirQuotes) {
  EXPECT_EQ(gnuplot_quote("it's"), "'it\u2019s'");
  EXPECT_EQ(gnuplot_quote("'; !rm -rf / #"), "'\u2019; !rm -rf / #'");
  EXPECT_EQ(gnuplot_quote("a\nb\r!x"), "'a b !x'");
  const std::string evil = "'\n!touch pwned\n`id` @x $y {/:Bold z} \\";
  Figure figure{
      .name = "x",
      .panels = {{.title = evil,
                  .x_label = evil,
                  .y_label = evil,
                  .series = {{.name = evil, .xs = {1, 2}, .ys = {1, 2}}, {.name = evil, .xs = {1, 2}, .ys = {2, 2}}}}}};
  const std::string script = gnuplot_script(figure, "x.svg", "x.png");
  EXPECT_EQ(script.find("\n!"), std::string::npos);
  for (std::size_t at = 0; (at = script.find("touch pwned", at)) != std::string::npos; ++at) {
    const std::size_t line = script.rfind('\n', at) + 1;
    const auto quotes = std::count(script.begin() + static_cast<std::ptrdiff_t>(line),
                                   script.begin() + static_cast<std::ptrdiff_t>(at), '\'');
    EXPECT_EQ(quotes % 2, 1) << script.substr(line, 200);  // inside a literal
  }
}

TEST(InlineSvg, ColoursBecomeVariablesAndIdsGetAPrefix) {
  const std::string svg =
      "<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 880 380\" xmlns=\"http://www.w3.org/2000/svg\">"
      "<rect id='a' fill=\"#ffffff\" stroke='rgb( 31,  35, 40)'/><use xlink:href='#a' color=\"rgb(0,114,178)\"/>"
      "<g style=\"filter:url(#a)\" fill=\"#123456\"/><text>rgb(31,35,40) id='a' #ffffff</text></svg>\n";
  const std::string inlined = inline_svg(svg, "c0-", "a \"label\"");
  EXPECT_TRUE(
      inlined.starts_with("<svg role=\"img\" aria-label=\"a &quot;label&quot;\" style=\"max-width:880px\" viewBox="))
      << inlined;
  EXPECT_NE(inlined.find("<rect id='c0-a' fill=\"var(--paper)\" stroke='var(--ink)'/>"), std::string::npos) << inlined;
  EXPECT_NE(inlined.find("<use xlink:href='#c0-a' color=\"var(--series-0)\"/>"), std::string::npos) << inlined;
  EXPECT_NE(inlined.find("url(#c0-a)\" fill=\"#123456\""), std::string::npos) << inlined;
  EXPECT_NE(inlined.find("<text>rgb(31,35,40) id='a' #ffffff</text></svg>"), std::string::npos) << "text is no markup";
  EXPECT_EQ(inline_svg("no picture", "c0-", ""), "");
}

TEST(StandardFigures, ASmoothedLineDoesNotLagAndSkipsWhatIsNotFinite) {
  const std::vector<double> out = smoothed({4, 4, kNan, 4, kInf, 8}, 3);
  EXPECT_DOUBLE_EQ(out[0], 4);  // no pull towards 0
  EXPECT_DOUBLE_EQ(out[1], 4);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_DOUBLE_EQ(out[3], 4);
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_DOUBLE_EQ(out[5], 8) << "the last value is what there is now";
  // Of a straight line the mean around each value is the value, wherever blocks of sums begin.
  for (const std::size_t window : {1u, 3u, 7u, 11u, 99u}) {
    std::vector<double> line(50);
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<double>(i);
    const std::vector<double> same = smoothed(line, window);
    for (std::size_t i = 0; i < line.size(); ++i) EXPECT_NEAR(same[i], line[i], 1e-12) << window << " at " << i;
  }
  std::vector<double> spike(200, 1.0);
  spike[20] = 1e100;
  EXPECT_DOUBLE_EQ(smoothed(spike, 11)[100], 1) << "one huge value spoils its neighbours alone";
}

TEST(StandardFigures, EveryValueIsDrawnAndTheLegendSaysWhichLineIsSmoothed) {
  MetricsHistory history;
  MetricSeries& loss = history.series["train/loss"];
  for (int i = 0; i < 1000; ++i) loss.steps.push_back(i), loss.values.push_back(i % 2 ? 1.0 : 1.5);
  const Chart chart = loss_figure(history, "mean squared error").panels[0];
  EXPECT_EQ(chart.series[0].ys, loss.values);
  EXPECT_EQ(chart.series[0].name, "training");
  EXPECT_EQ(chart.series[1].name, "training, mean of 21");
  // Success and return are what was measured, however many there are.
  history.series["rollout/success"] = history.series["rl/mean_return"] = loss;
  for (const Figure& figure : {rollout_figure(history), return_figure(history)}) {
    ASSERT_EQ(figure.panels[0].series.size(), 1u);
    EXPECT_EQ(figure.panels[0].series[0].ys, loss.values);
  }
}

TEST(StandardFigures, AShareIsDrawnFromZeroToOne) {
  MetricsHistory history;
  history.series["rollout/success"] = {{1, 2, 3}, {0, 0, 0}};
  const std::string script = gnuplot_script(rollout_figure(history), "a.svg", "a.png");
  EXPECT_NE(script.find("set yrange [0:1]"), std::string::npos) << script;
}

TEST(StandardFigures, ReinforcementLearningShowsTermsLengthSuccessNoiseAndKl) {
  MetricsHistory history;
  for (const char* name :
       {"rl/mean_return", "rl/mean_episode_length", "rl/success", "rl/value_loss", "rl/surrogate_loss", "rl/entropy",
        "rl/kl", "rl/noise_std", "rl/reward/alive", "rl/reward/linear"})
    history.series[name] = {{1, 2}, {0.25, 0.5}};
  std::vector<std::string> titles;
  for (const Figure& figure : {return_figure(history), reward_terms_figure(history), learning_figure(history)})
    for (const Chart& panel : figure.panels) titles.push_back(panel.title);
  EXPECT_EQ(titles, (std::vector<std::string>{"Return", "Success", "Episode length", "alive", "linear", "Value loss",
                                              "Surrogate loss", "Action noise", "Entropy", "KL divergence"}));
  history.series["rl/success"].values = {0, 0};
  EXPECT_EQ(return_figure(history).panels.size(), 2u) << "a task without a goal has no success to show";
}

TEST(StandardFigures, TheLossIsLogarithmicOnlyWhenItFallsFarAndTheBestIsMarked) {
  MetricsHistory history;
  history.series["train/loss"] = {{1, 2, 3}, {1.0, 0.5, 0.4}};
  history.series["validation/loss"] = {{1, 2, 3}, {1.0, 0.6, kNan}};
  Figure figure = loss_figure(history, "mean squared error");
  EXPECT_FALSE(figure.panels[0].log_y);
  const Series& best = figure.panels[0].series.back();
  EXPECT_EQ(best.xs, std::vector<double>{2});
  EXPECT_EQ(best.ys, std::vector<double>{0.6});
  history.series["train/loss"].values[2] = 0.01;
  EXPECT_TRUE(loss_figure(history, "x").panels[0].log_y);
  history.series["train/loss"].values[2] = -0.01;
  EXPECT_FALSE(loss_figure(history, "x").panels[0].log_y);
}

TEST(StandardFigures, TargetsAreTakenFromTheLastDimension) {
  std::vector<float> truth = {1, 10, 2, 20, 3, 30}, prediction = {1, 11, 2, 22, 3, 33};
  const Predictions p{{"a", "b"}, make_view(truth.data(), {3, 1, 2}), make_view(prediction.data(), {3, 1, 2})};
  const Figure clouds = prediction_figure(p);
  ASSERT_EQ(clouds.panels.size(), 2u);
  EXPECT_EQ(clouds.panels[1].series[0].xs, (std::vector<double>{10, 20, 30}));
  EXPECT_EQ(clouds.panels[1].series[0].ys, (std::vector<double>{11, 22, 33}));
  const Figure residuals = residual_figure(p);
  ASSERT_EQ(residuals.panels.size(), 4u);
  EXPECT_EQ(residuals.panels[2].series[0].ys, (std::vector<double>{-1, -2, -3}));
}

TEST(StandardFigures, ManyTargetsAreCutAndTheCaptionSaysSo) {
  std::vector<float> values(2 * 21);
  const Predictions p{std::vector<std::string>(21, "t"), make_view(values.data(), {2, 21}),
                      make_view(values.data(), {2, 21})};
  EXPECT_EQ(prediction_figure(p).panels.size(), 6u);
  EXPECT_NE(prediction_figure(p).caption.find("The first 6 of 21 targets."), std::string::npos);
}

TEST(StandardFigures, TheTargetThatMattersMostIsShownThoughItStandsLast) {
  std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6};
  const Predictions p{{"a", "b", "c", "d", "e", "f", "OT"},
                      make_view(values.data(), {2, 7}),
                      make_view(values.data(), {2, 7}),
                      /*first=*/6};
  const Figure clouds = prediction_figure(p);
  ASSERT_EQ(clouds.panels.size(), 6u);
  EXPECT_EQ(clouds.panels[0].title, "OT");
  EXPECT_EQ(clouds.panels[0].series[0].xs, (std::vector<double>{6, 6}));
  EXPECT_EQ(clouds.panels[1].title, "a");
  EXPECT_NE(clouds.caption.find("OT and the first 5 of 6 other targets."), std::string::npos) << clouds.caption;
  const Figure residuals = residual_figure(p);
  ASSERT_EQ(residuals.panels.size(), 8u);
  EXPECT_EQ(residuals.panels[0].title, "OT");
  EXPECT_EQ(residuals.panels[2].title, "a");
}

TEST(StandardFigures, AForecastContinuesFromTheLastKnownValue) {
  const std::vector<ForecastWindow> windows = {
      {.title = "w", .y_label = "y", .history = {1, 2, 3}, .truth = {4, 5}, .prediction = {4.5, 5.5}}};
  const Figure figure = forecast_figure(windows, "steps from the forecast");
  const std::vector<Series>& series = figure.panels[0].series;
  EXPECT_EQ(series[0].xs, (std::vector<double>{-2, -1, 0}));
  EXPECT_EQ(series[1].xs, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(series[1].ys, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(series[2].ys, (std::vector<double>{3, 4.5, 5.5}));
  EXPECT_NE(figure.caption.find("Forecasts from the test set."), std::string::npos);
}

TEST(StandardFigures, ACourseWithoutAPastShowsWhatThereIs) {
  const std::vector<ForecastWindow> windows = {
      {.title = "w", .y_label = "y", .history = {}, .truth = {4, 5}, .prediction = {4.5, 5.5}}};
  const Figure figure = forecast_figure(windows, "actions of the chunk", "validation data");
  const std::vector<Series>& series = figure.panels[0].series;
  ASSERT_EQ(series.size(), 2u) << "no history, no moment of a forecast";
  EXPECT_EQ(series[0].xs, (std::vector<double>{1, 2}));
  EXPECT_EQ(series[1].ys, (std::vector<double>{4.5, 5.5}));
  EXPECT_NE(figure.caption.find("from the validation data."), std::string::npos);
}

}  // namespace
}  // namespace cohort::report
