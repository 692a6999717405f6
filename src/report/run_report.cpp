#include "report/run_report.h"

#include "core/error.h"
#include "core/log.h"
#include "report/metric_names.h"
#include "report/metrics_history.h"

namespace cohort::report {

bool write_run_report(const RunFolder& run, RunResults results, std::int64_t step, MetricsWriter* writer,
                      const GnuplotSettings& gnuplot) {
  try {
    const MetricsHistory history = read_metrics(run.metrics_file());
    if (history.damaged_lines > 0)
      log::warning("{}: {} lines cannot be read and are left out of the charts", run.metrics_file().string(),
                   history.damaged_lines);
    const std::string& of = results.content.test_name;
    std::vector<Figure> figures;
    if (!history[metric::kMeanReturn].values.empty()) figures.push_back(return_figure(history));
    figures.push_back(loss_figure(history, results.loss_name));
    if (history.series.contains(metric::kRolloutSuccess)) figures.push_back(rollout_figure(history));
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
