#include "report/run_report.h"

#include "core/error.h"
#include "core/log.h"
#include "report/metric_names.h"
#include "report/metrics_history.h"

namespace cohort::report {

namespace {

/// Whether a policy does its task says more than its errors on recorded actions: the last rollouts, and the best ones
/// where those were others, come first.
void lead_with_success(const MetricsHistory& history, ReportContent& content) {
  const MetricSeries& rates = history[metric::kRolloutSuccess];
  if (rates.values.empty()) return;
  const std::size_t last = rates.values.size() - 1;
  std::size_t best = last;
  for (std::size_t i = 0; i < last; ++i)
    if (rates.values[i] > rates.values[best]) best = i;
  NamedTexts tiles{
      {format("success of rollouts, step {:.0f}", rates.steps[last]), format("{:.1f} %", 100 * rates.values[last])}};
  if (best != last)
    tiles.emplace_back(format("best success of rollouts, step {:.0f}", rates.steps[best]),
                       format("{:.1f} %", 100 * rates.values[best]));
  content.highlights.insert(content.highlights.begin(), tiles.begin(), tiles.end());
}

}  // namespace

bool write_run_report(const RunFolder& run, RunResults results, std::int64_t step, MetricsWriter* writer,
                      const GnuplotSettings& gnuplot) {
  try {
    const MetricsHistory history = read_metrics(run.metrics_file());
    if (history.damaged_lines > 0)
      log::warning("{}: {} lines cannot be read and are left out of the charts", run.metrics_file().string(),
                   history.damaged_lines);
    lead_with_success(history, results.content);
    const std::string& of = results.content.test_name;
    std::vector<Figure> figures;
    // What a run is judged by comes first.
    if (history.series.contains(metric::kRolloutSuccess)) figures.push_back(rollout_figure(history));
    if (!history[metric::kMeanReturn].values.empty()) figures.push_back(return_figure(history));
    for (Figure figure : {reward_terms_figure(history), task_metrics_figure(history), learning_figure(history)})
      if (!figure.panels.empty()) figures.push_back(std::move(figure));
    // Of PPO it is a sum that says nothing; its parts are above.
    if (!history.series.contains(metric::kSurrogateLoss)) figures.push_back(loss_figure(history, results.loss_name));
    if (results.predictions) figures.push_back(prediction_figure(*results.predictions, of));
    if (!results.windows.empty()) figures.push_back(forecast_figure(results.windows, results.time_label, of));
    if (results.predictions) figures.push_back(residual_figure(*results.predictions, of));
    figures.push_back(speed_figure(history));
    results.content.figures = draw_all(figures, run.charts(), gnuplot);
    if (writer != nullptr)
      for (const DrawnFigure& figure : results.content.figures)
        if (!figure.png.empty()) writer->image("charts/" + figure.name, step, figure.png);
    write_html_report(run, results.content);
    return true;
  } catch (const Error& e) {
    log::warning("no report: {}", e.what());
    return false;
  }
}

}  // namespace cohort::report
